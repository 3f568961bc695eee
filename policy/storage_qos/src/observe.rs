//! Sampling of counters and delivered operations, every half second while a store is in use.

use core::time::Duration;

use suimon_quantity::{DiskId, Time};

use crate::minimum_monitor::{MinimumChange, MinimumMonitor};
use crate::{
    DeliveryStats, DiskQosCounters, DiskSlot, Limits, LimitsOwner, QueueCause, ServedDisk,
    StoreEvent, StoreScheduler, UNMET_REPORT_DELAY, UnmetMinimum, UnmetReason, Window,
};

/// Limits and delivered operations of a disk, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DiskQosStatus {
    /// Identifier of the disk that this state describes.
    pub disk: DiskId,
    /// Disk or policy that owns the limits.
    #[serde(rename = "holder")]
    pub owner: LimitsOwner,
    /// Limits in effect for the disk.
    pub limits: Limits,
    /// Number of queued requests of the disk.
    pub waiting: u32,
    /// Number of requests in flight. Loans (grants for future requests) are not counted.
    pub in_flight: u32,
    /// Counters of operations and queueing time since the disk was added.
    #[serde(rename = "done")]
    pub counters: DiskQosCounters,
    /// Delivered, demanded and guaranteed operations over the last five seconds.
    pub short: DeliveryStats,
    /// Delivered, demanded and guaranteed operations over the last five minutes.
    pub long: DeliveryStats,
}

impl StoreScheduler {
    /// Samples the counters of all disks, and returns events for minimums that become unmet or met
    /// and for the store's capacity. Must be called every [`crate::SAMPLE_INTERVAL`] while there
    /// are requests. Calls may pause while there are none.
    pub fn observe(&mut self, now: Time) -> Vec<StoreEvent> {
        for flow in &mut self.flows {
            flow.account_guaranteed(now);
        }
        let mut histories = core::mem::take(&mut self.histories);
        for (index, history) in histories.iter_mut().enumerate() {
            let Some(disk) = self.disks.get_mut(index).filter(|disk| disk.id.is_some()) else {
                continue;
            };
            let Some(flow) = self.flows.get(disk.flow_index as usize) else { continue };
            disk.account(now, flow.throttled_by.unwrap_or(self.contention));
            let totals = disk.totals;
            history.sample(now, &totals, &self.flow_totals(flow));
        }
        self.histories = histories;
        let mut findings = Vec::new();
        for (flow_index, (flow, watch)) in
            self.flows.iter_mut().zip(&mut self.minimum_monitors).enumerate()
        {
            if flow.limits.min_iops.is_none() {
                *watch = MinimumMonitor::default();
                continue;
            }
            let finding = watch.sample(now, &flow.totals(), flow.cost_max, UNMET_REPORT_DELAY);
            flow.cost_max -= flow.cost_max / 8;
            findings.extend(finding.map(|finding| (flow_index, finding)));
        }
        let emitted = findings
            .into_iter()
            .filter_map(|(flow_index, finding)| self.emit(now, flow_index, finding));
        let mut events: Vec<StoreEvent> = emitted.collect();
        events.extend(self.check_capacity(now));
        events
    }

    /// Compares the estimated capacity of the store with the requirement of its minimums, and
    /// returns an event if the result changed.
    fn check_capacity(&mut self, now: Time) -> Option<StoreEvent> {
        let is_new = self.estimate.sample(now, self.depth.limit());
        let estimate = self.estimate.estimate()?;
        let minimums = self.flows.iter().filter(|flow| flow.owner.is_some());
        let minimums = minimums.filter_map(|flow| flow.limits.min_iops);
        let promised = minimums.fold(0u64, |sum, min| sum.saturating_add(min.per_second()));
        self.shortage.evaluate(now, estimate, is_new, promised)
    }

    /// Returns the state of the disk in a slot; `None` if the slot has no disk.
    pub fn view(&self, now: Time, slot: DiskSlot) -> Option<DiskQosStatus> {
        let disk = self.disks.get(slot.0 as usize)?;
        let flow = self.flows.get(disk.flow_index as usize)?;
        let history = self.histories.get(slot.0 as usize)?;
        let flow_totals = self.flow_totals(flow);
        let cause = flow.throttled_by.unwrap_or(self.contention);
        let totals = disk.totals_at(now, cause);
        let delivery = |window| history.delivery(window, now, &totals, &flow_totals);
        Some(DiskQosStatus {
            disk: disk.id?,
            owner: flow.owner?,
            limits: flow.limits,
            waiting: disk.waiting,
            in_flight: disk.in_flight_for_report(),
            counters: disk.qos_counters(now, cause, flow.busy_ns(now)),
            short: delivery(Window::Short),
            long: delivery(Window::Long),
        })
    }

    /// Returns the request time of a disk since it was added.
    #[cfg(test)]
    pub(crate) fn time_of(&self, slot: DiskSlot) -> crate::RequestTime {
        self.disks.get(slot.0 as usize).map(|disk| disk.totals.time).unwrap_or_default()
    }

    fn emit(&self, now: Time, flow_index: usize, finding: MinimumChange) -> Option<StoreEvent> {
        let holder = self.owner(flow_index)?;
        let (lasting, guaranteed, demanded, delivered) = match finding {
            MinimumChange::Met { lasted } => {
                return Some(StoreEvent::MinimumMet { owner: holder, unmet_for: lasted });
            }
            MinimumChange::Unmet {
                lasting,
                guaranteed_operations: guaranteed,
                demanded_operations: demanded,
                delivered_operations: delivered,
            } => (lasting, guaranteed, demanded, delivered),
        };
        let (displaced_by, total) = self.served_beside(now, flow_index);
        let external_iops = self.capacity.unwrap_or_default().saturating_sub(total);
        Some(StoreEvent::MinimumUnmet(UnmetMinimum {
            owner: holder,
            unmet_for: lasting,
            guaranteed_iops: rate(guaranteed, lasting),
            demanded_iops: rate(demanded, lasting),
            delivered_iops: rate(delivered, lasting),
            reason: self.shortfall(flow_index, external_iops),
            displaced_by,
            device_latency_ns: self.depth.latency_ns,
            external_iops,
        }))
    }

    /// Returns the disks of other flows that were served within the last five seconds, and the
    /// throughput of all disks in normalised operations per second.
    fn served_beside(&self, now: Time, flow_index: usize) -> (Vec<ServedDisk>, u64) {
        let mut displacers = Vec::new();
        let mut total = 0u64;
        for (disk, history) in self.disks.iter().zip(&self.histories) {
            let Some(id) = disk.id else { continue };
            let Some(flow) = self.flows.get(disk.flow_index as usize) else { continue };
            let short = history.delivery(Window::Short, now, &disk.totals, &flow.totals());
            let delivered_iops = short.per_second(short.delivered_operations);
            total = total.saturating_add(delivered_iops);
            if disk.flow_index as usize != flow_index && delivered_iops > 0 {
                displacers.push(ServedDisk { disk: id, delivered_iops });
            }
        }
        displacers.sort_by_key(|displacer| core::cmp::Reverse(displacer.delivered_iops));
        displacers.truncate(crate::DISPLACED_BY_MAX);
        (displacers, total)
    }

    fn shortfall(&self, flow_index: usize, external_iops: u64) -> UnmetReason {
        let Some(flow) = self.flows.get(flow_index) else { return UnmetReason::ExternalLoad };
        let is_held = flow.throttled_by.is_some_and(|cause| {
            matches!(
                cause,
                QueueCause::OwnMaximum | QueueCause::OwnBandwidth | QueueCause::SharedPolicy
            )
        });
        if is_held {
            UnmetReason::OwnMaximum
        } else if flow.waiting == 0
            && (flow.hold_back_suspension_s > 0 || flow.behind_since.is_some())
        {
            UnmetReason::DeviceLatency
        } else if self.capacity.is_some_and(|iops| external_iops > iops / 10) {
            UnmetReason::ExternalLoad
        } else {
            UnmetReason::OtherDisks
        }
    }
}

fn rate(operations: u64, span: Duration) -> u64 {
    let ns = span.as_nanos().max(1);
    u64::try_from(u128::from(operations) * 1_000_000_000 / ns).unwrap_or(u64::MAX)
}
