//! Guaranteed, demanded and delivered rates of disks, as API types and events.

use std::collections::BTreeMap;

use suimon_contract::{
    EventKind, Name, QosDelivery, QosFlowStatus, QosLimitingFactor, QosTimeShare,
};
use suimon_quantity::{DiskId, StoreId};
use suimon_storage::{StoreView, disk_of_copy};
use suimon_storage_qos::{
    CapacityLow, DeliveryStats, DiskQosStatus, LimitingFactor, LimitsOwner, QueueCause, StoreEvent,
    TimeShare, UnmetMinimum, UnmetReason,
};

use super::Disks;
use super::limits::limits_status;
use crate::events::EventDraft;

impl Disks {
    /// Returns the QoS status of every disk in service.
    pub(crate) fn flows(&self, stores: &[StoreView]) -> BTreeMap<DiskId, QosFlowStatus> {
        let views = stores.iter().flat_map(|view| view.flows.iter().map(move |flow| (view, flow)));
        let flows = views.filter_map(|(view, flow)| {
            Some((flow.disk, self.flow((view.store, !view.is_current), flow)?))
        });
        flows.collect()
    }

    fn flow(&self, (store, stale): (StoreId, bool), view: &DiskQosStatus) -> Option<QosFlowStatus> {
        Some(QosFlowStatus {
            disk: self.disk_name(view.disk)?,
            store: self.store_name(store)?,
            holder: self.holder(view.owner),
            limits: limits_status(&view.limits),
            queued: view.waiting,
            in_flight: view.in_flight,
            stale,
            last_5_s: delivery(&view.short),
            last_5_min: delivery(&view.long),
        })
    }

    /// Returns the user of a store with this number: a disk, or the copy of a disk.
    pub(crate) fn disk_or_copy_name(&self, number: DiskId) -> Option<String> {
        match disk_of_copy(number) {
            None => Some(self.disk_name(number)?.to_string()),
            Some(disk) => Some(format!("the mirror of {}", self.disk_name(disk)?)),
        }
    }

    fn holder(&self, holder: LimitsOwner) -> String {
        let name_or_unknown =
            |name: Option<Name>| name.map_or_else(|| "?".to_owned(), |name| name.to_string());
        match holder {
            LimitsOwner::Disk(disk) => format!("disk/{}", name_or_unknown(self.disk_name(disk))),
            LimitsOwner::Policy(policy) => {
                format!("qos_policy/{}", name_or_unknown(self.policy_name(policy)))
            }
        }
    }

    /// Converts an event of the scheduler: a minimum is unmet or met again, or the capacity of a
    /// store became too low or sufficient for its minimums.
    pub(crate) fn qos_event(&self, store: StoreId, event: &StoreEvent) -> Option<EventDraft> {
        let store = self.store_name(store)?;
        match event {
            StoreEvent::MinimumUnmet(unmet) => Some(self.unmet(&store, unmet)),
            StoreEvent::MinimumMet { owner: holder, unmet_for: duration } => {
                let text = format!(
                    "After {} s, the minimum is met again, or there are requests for less than half \
                     of the time.",
                    duration.as_secs()
                );
                let draft = EventDraft::new(EventKind::MinimumMet, self.holder(*holder), text);
                Some(draft.with("store", store).with("lasted_s", duration.as_secs()))
            }
            StoreEvent::CapacityLow(low) => Some(Self::too_little(&store, low)),
            StoreEvent::CapacitySufficient { low_for: duration, estimate_iops, needed_iops } => {
                let text = format!(
                    "The store delivers {estimate_iops} IOPS again, after {} s; the minimums \
                     require {needed_iops} IOPS.",
                    duration.as_secs()
                );
                let draft =
                    EventDraft::new(EventKind::CapabilityEnough, format!("store/{store}"), text);
                let draft = draft.with("lasted_s", duration.as_secs());
                Some(draft.with("estimate_iops", estimate_iops).with("needed_iops", needed_iops))
            }
        }
    }

    /// Returns the event that the estimated capacity of a store is too low for its minimums.
    fn too_little(store: &Name, low: &CapacityLow) -> EventDraft {
        let text = format!(
            "For {} s the store has delivered {} IOPS with requests queued. Its minimums of {} IOPS \
             require a capacity of {} IOPS, of which they may use 90 %: not all can be met at once. \
             Lower minimums, or move disks to another store; `suimon store measure {store}` measures \
             the capacity.",
            low.low_for.as_secs(),
            low.estimate_iops,
            low.reserved_iops,
            low.needed_iops
        );
        EventDraft::new(EventKind::CapabilityLow, format!("store/{store}"), text)
            .with("lasting_s", low.low_for.as_secs())
            .with("estimate_iops", low.estimate_iops)
            .with("promised_iops", low.reserved_iops)
            .with("needed_iops", low.needed_iops)
    }

    fn unmet(&self, store: &Name, unmet: &UnmetMinimum) -> EventDraft {
        let (cause, reason, remedy) = match unmet.reason {
            UnmetReason::OtherDisks => (
                "other-disks",
                "other disks use the capacity of the store",
                "Measure the store, lower other minimums, or move disks to another store",
            ),
            UnmetReason::ExternalLoad => (
                "foreign-load",
                "the store delivers less than its capacity, because of external load",
                "Stop that load, or lower `capacity_iops` of the store",
            ),
            UnmetReason::DeviceLatency => (
                "device-latency",
                "the disk has too few requests in flight for the latency of the device",
                "Let the client submit more requests at a time, or use a faster device",
            ),
            UnmetReason::OwnMaximum => (
                "own-maximum",
                "its own maximum is the limit",
                "Raise `max_iops` or `max_bytes_per_s`",
            ),
        };
        let displaced: Vec<String> = unmet
            .displaced_by
            .iter()
            .filter_map(|recipient| {
                Some(format!(
                    "{} {}",
                    self.disk_or_copy_name(recipient.disk)?,
                    recipient.delivered_iops
                ))
            })
            .collect();
        let text = format!(
            "The minimum has not been met for {} s: guaranteed {} IOPS, demand {} IOPS, delivered \
             {} IOPS; {reason}. {remedy}.",
            unmet.unmet_for.as_secs(),
            unmet.guaranteed_iops,
            unmet.demanded_iops,
            unmet.delivered_iops
        );
        EventDraft::new(EventKind::MinimumUnmet, self.holder(unmet.owner), text)
            .with("store", store)
            .with("lasting_s", unmet.unmet_for.as_secs())
            .with("entitled_iops", unmet.guaranteed_iops)
            .with("demanded_iops", unmet.demanded_iops)
            .with("delivered_iops", unmet.delivered_iops)
            .with("cause", cause)
            .with("displaced_by", displaced.join(", "))
            .with("device_latency_ns", unmet.device_latency_ns)
            .with("foreign_iops", unmet.external_iops)
    }
}

fn delivery(delivery_status: &DeliveryStats) -> QosDelivery {
    let queued = QueueCause::ALL
        .into_iter()
        .map(|cause| (cause_name(cause).to_owned(), delivery_status.queue_time.ns(cause)));
    let latency = delivery_status.device_latency_ns();
    QosDelivery {
        window_ns: delivery_status.window_ns,
        guaranteed_iops: delivery_status.per_second(delivery_status.guaranteed_operations),
        demand_iops: delivery_status.per_second(delivery_status.demanded_operations),
        delivered_iops: delivery_status.per_second(delivery_status.delivered_operations),
        queued_ns: queued.filter(|(_, ns)| *ns > 0).collect(),
        limited_by: delivery_status.time_shares().into_iter().map(time_share).collect(),
        queue_depth_milli: delivery_status.queue_depth_milli(),
        device_latency_ns: latency.map(|(found_ns, _)| found_ns),
        device_baseline_latency_ns: latency.map(|(_, own_ns)| own_ns),
    }
}

const fn time_share(share: TimeShare) -> QosTimeShare {
    let factor = match share.factor {
        LimitingFactor::OwnMaximum => QosLimitingFactor::DiskMaximum,
        LimitingFactor::OwnBandwidth => QosLimitingFactor::DiskBandwidth,
        LimitingFactor::SharedPolicy => QosLimitingFactor::SharedPolicy,
        LimitingFactor::StoreCap => QosLimitingFactor::StoreCap,
        LimitingFactor::OthersMinimums => QosLimitingFactor::OthersMinimums,
        LimitingFactor::DeviceSaturated => QosLimitingFactor::DeviceSaturated,
        LimitingFactor::DeviceSlow => QosLimitingFactor::DeviceSlow,
        LimitingFactor::Flushes => QosLimitingFactor::Flushes,
        LimitingFactor::Metadata => QosLimitingFactor::Metadata,
        LimitingFactor::Discards => QosLimitingFactor::Discards,
        LimitingFactor::Unmeasured => QosLimitingFactor::OverlappingDiscard,
        LimitingFactor::WorkerNotScheduled => QosLimitingFactor::WorkerNotScheduled,
        LimitingFactor::QueueDepth => QosLimitingFactor::QueueDepth,
        LimitingFactor::ClientIdle => QosLimitingFactor::ClientIdle,
        LimitingFactor::DeviceService => QosLimitingFactor::Device,
    };
    QosTimeShare { factor, share_ppm: share.share_ppm }
}

const fn cause_name(cause: QueueCause) -> &'static str {
    match cause {
        QueueCause::OwnMaximum => "own-maximum",
        QueueCause::OwnBandwidth => "own-bandwidth",
        QueueCause::SharedPolicy => "shared-policy",
        QueueCause::OthersMinimums => "others-minimums",
        QueueCause::DeviceDepth => "device-depth",
        QueueCause::StoreCap => "store-cap",
    }
}
