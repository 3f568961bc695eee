//! Data path of the scheduler: selects the next request to dispatch, and determines when.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_quantity::{DiskId, Time};

use crate::best_effort_depth::BestEffortDepth;
use crate::cap_meter::CapMeter;
use crate::clocks::Clocks;
use crate::depth::DepthController;
use crate::disk::Disk;
use crate::estimate::CapacityEstimator;
use crate::flow::Flow;
use crate::heap::Positions;
use crate::history::{DispatchCounters, FlowTotals, History};
use crate::member_order;
use crate::minimum_monitor::MinimumMonitor;
use crate::own_latency::OwnLatency;
use crate::queued_requests::{QueuedRequests, RequestCharge};
use crate::ranking::{KEY_MAX, TournamentTree};
use crate::shortage::ShortageDetector;
use crate::unit_time::{FixedNs, fixed_from_ns, round_down_to_time, round_up_to_time};
use crate::weight_order::WeightOrder;
use crate::worker_in_flight::WorkerInFlight;
use crate::{
    CapacityEstimate, CompletedRequests, DiskSlot, IoKind, LimitsOwner, NextAction, PolicyId,
    PolicyShare, QueueCause, StoreSpec, SubmitError, SubmitOutcome,
};

/// Time for which other flows are held back for an unmet minimum before holding back counts as
/// ineffective.
const FUTILE_AFTER: Duration = Duration::from_secs(1);

/// Result of the admission check for one request.
#[derive(Clone, Copy)]
pub(crate) struct Admission {
    pub(crate) flow_index: u32,
    /// True if the flow has no queued requests.
    pub(crate) is_first: bool,
    /// True if the flow's minimum is due.
    pub(crate) is_due: bool,
    /// True if no limit delays the request.
    pub(crate) is_dispatchable: bool,
}

/// Scheduler of a store: one logical queue for the requests of all its disks.
#[derive(Clone, Debug)]
pub struct StoreScheduler {
    pub(crate) spec: StoreSpec,
    pub(crate) disks: Vec<Disk>,
    /// Histories of the disks, indexed by disk slot. Stored separately from the fields that each
    /// request accesses.
    pub(crate) histories: Vec<History>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) minimum_monitors: Vec<MinimumMonitor>,
    pub(crate) queued_requests: QueuedRequests,
    /// Flows whose requests a maximum delays, ordered by the time at which the maximum permits the
    /// next one.
    pub(crate) throttled: TournamentTree,
    /// Flows ordered by the time at which their minimum is due. Includes flows without dispatchable
    /// requests that had some. A key may be lower than the actual value, which only increases while
    /// a flow is listed. When a flow becomes the first, its key is corrected, or it is removed if
    /// it has no dispatchable requests. Dispatches by weight therefore do not have to update this
    /// order.
    pub(crate) due: TournamentTree,
    /// Flows with dispatchable requests, ordered by the service they received relative to their
    /// weight.
    pub(crate) flows_by_weight: WeightOrder,
    /// Positions of disks within the heaps of their flows.
    pub(crate) member_positions: Positions,
    pub(crate) clocks: Clocks,
    pub(crate) depth: DepthController,
    pub(crate) own_latency: OwnLatency,
    /// Requests in flight at workers that borrow; `None` if this scheduler accounts for all
    /// requests.
    pub(crate) worker_in_flight: Option<WorkerInFlight>,
    pub(crate) best_effort_depth: BestEffortDepth,
    pub(crate) cap_meter: CapMeter,
    /// Cause for which requests of flows that no maximum delays are queued.
    pub(crate) contention: QueueCause,
    /// Number of queued requests that were dispatched. Wraps.
    pub(crate) dispatches: u64,
    /// Number of these that were dispatched for a minimum although another flow was first by
    /// weight. Wraps.
    pub(crate) minimum_dispatches: u64,
    pub(crate) capacity: Option<u64>,
    pub(crate) estimate: CapacityEstimator,
    pub(crate) shortage: ShortageDetector,
    /// This node's shares of policies that have disks on several nodes.
    pub(crate) policy_shares: BTreeMap<PolicyId, PolicyShare>,
}

impl StoreScheduler {
    /// Creates a scheduler without disks. Allocates the memory for requests; the memory for a disk
    /// is allocated when the disk is added.
    pub fn new(spec: StoreSpec) -> Self {
        Self {
            queued_requests: QueuedRequests::new(spec.waiting_max),
            depth: DepthController::new(&spec),
            own_latency: OwnLatency::default(),
            worker_in_flight: None,
            spec,
            disks: Vec::new(),
            histories: Vec::new(),
            flows: Vec::new(),
            minimum_monitors: Vec::new(),
            throttled: TournamentTree::default(),
            due: TournamentTree::default(),
            flows_by_weight: WeightOrder::default(),
            member_positions: Positions::default(),
            clocks: Clocks::default(),
            best_effort_depth: BestEffortDepth::new(),
            cap_meter: CapMeter::default(),
            contention: QueueCause::DeviceDepth,
            dispatches: 0,
            minimum_dispatches: 0,
            capacity: None,
            estimate: CapacityEstimator::default(),
            shortage: ShortageDetector::default(),
            policy_shares: BTreeMap::new(),
        }
    }

    /// Returns the number of requests in the device.
    pub const fn in_flight(&self) -> u32 {
        self.depth.in_flight
    }

    /// Returns the maximum number of requests that may be in the device.
    pub fn queue_depth_limit(&self) -> u32 {
        self.depth.limit()
    }

    /// Returns the mean device latency of recently completed requests in nanoseconds; 0 if not
    /// known.
    pub const fn device_latency_ns(&self) -> u64 {
        self.depth.latency_ns
    }

    /// Returns the capacity estimate from the last time at which requests were queued for the
    /// device; `None` if there was none or it is too old.
    pub const fn estimate(&self) -> Option<CapacityEstimate> {
        self.estimate.estimate()
    }

    /// Returns true if requests are queued only because the node's share of the store is used up.
    pub fn waits_for_cap(&self) -> bool {
        self.cap_meter.is_limiting() && !self.flows_by_weight.is_empty()
    }

    /// Returns the value of the reservation clock at `now`.
    #[inline]
    pub(crate) fn reservation_clock(&self, now: Time) -> FixedNs {
        self.clocks.reservation_clock(now)
    }

    /// Submits a disk's request of `bytes` bytes. If no limit delays it, the caller must dispatch
    /// it at once ([`SubmitOutcome::Dispatch`]). Otherwise it is queued behind the disk's earlier
    /// requests.
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the disk is not known or the queue is full. The caller must not submit
    /// later requests of the disk before this one.
    #[inline]
    pub fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<SubmitOutcome, SubmitError> {
        let units = RequestCharge { cost: self.spec.normalization.cost(bytes), bytes };
        let admission = self.check_admission(now, slot)?;
        if admission.is_dispatchable {
            self.count_demand_and_dispatch(now, slot, admission, units);
            return Ok(SubmitOutcome::Dispatch);
        }
        if !self.queued_requests.has_room() {
            return Err(SubmitError::Full);
        }
        self.queue(now, slot, admission, units, tag);
        Ok(SubmitOutcome::Queued)
    }

    /// Submits a request that is dropped if it cannot be dispatched at once. Returns true if it is
    /// dispatched.
    pub(crate) fn try_dispatch(&mut self, now: Time, slot: DiskSlot, bytes: u32) -> bool {
        let units = RequestCharge { cost: self.spec.normalization.cost(bytes), bytes };
        let Some(admission) =
            self.check_admission(now, slot).ok().filter(|admission| admission.is_dispatchable)
        else {
            return false;
        };
        self.count_demand_and_dispatch(now, slot, admission, units);
        true
    }

    /// Checks whether a request of the disk could be dispatched at once.
    #[inline]
    pub(crate) fn check_admission(
        &mut self,
        now: Time,
        slot: DiskSlot,
    ) -> Result<Admission, SubmitError> {
        let clock = self.reservation_clock(now);
        let disk = self.disks.get(slot.0 as usize).filter(|disk| disk.id.is_some());
        let flow_index = disk.ok_or(SubmitError::NoDisk(slot))?.flow_index;
        let flow = self.flows.get_mut(flow_index as usize).ok_or(SubmitError::NoDisk(slot))?;
        let is_first = flow.waiting == 0;
        let is_due = is_first && wake(flow, &mut self.best_effort_depth, now, clock);
        let is_free = is_first
            && self.flows_by_weight.is_empty()
            && self.depth.has_room()
            && (is_due || self.best_effort_depth.has_room(self.depth.in_flight))
            && self.throttled.first_until(now.as_ns()).is_none()
            && flow.permitted_at(now) <= now
            && self.cap_meter.is_open(now);
        Ok(Admission { flow_index, is_first, is_due, is_dispatchable: is_free })
    }

    #[inline]
    pub(crate) fn count_demand_and_dispatch(
        &mut self,
        now: Time,
        slot: DiskSlot,
        admission: Admission,
        units: RequestCharge,
    ) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let Some(flow) = self.flows.get_mut(admission.flow_index as usize) else { return };
        demand(disk, flow, units.cost);
        // The flow has no queued requests.
        disk.account(now, QueueCause::DeviceDepth);
        self.clocks.account_immediate_dispatch(now, disk, flow, units, admission.is_due);
        self.cap_meter.charge(units.cost);
        self.depth.in_flight += 1;
        if self.clocks.needs_virtual_time_reset() {
            self.reset_virtual_time(now);
        }
    }

    #[inline]
    pub(crate) fn queue(
        &mut self,
        now: Time,
        slot: DiskSlot,
        admission: Admission,
        units: RequestCharge,
        tag: u32,
    ) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let Some(flow) = self.flows.get_mut(admission.flow_index as usize) else { return };
        demand(disk, flow, units.cost);
        disk.account(now, flow.throttled_by.unwrap_or(self.contention));
        self.queued_requests.push(&mut disk.fifo, tag, units);
        disk.waiting += 1;
        flow.waiting += 1;
        if disk.waiting == 1 {
            member_order::insert_disk(flow, disk, slot.0, &mut self.member_positions);
        }
        if admission.is_first {
            self.update_queued_flow_order(now, admission.flow_index);
        }
    }

    /// Returns the next action: dispatch a request, wait until a deadline, or idle.
    #[inline]
    pub fn poll(&mut self, now: Time) -> NextAction {
        self.release_throttled_flows(now);
        if !self.depth.has_room() {
            if self.flows_by_weight.is_empty() {
                return NextAction::Idle;
            }
            self.depth.handle_full();
            self.cap_meter.set_limiting(false);
            return NextAction::Idle;
        }
        if !self.cap_meter.is_open(now) {
            if !self.flows_by_weight.is_empty() {
                self.cap_meter.set_limiting(true);
                self.contention = QueueCause::StoreCap;
            }
            return self.next_deadline().map_or(NextAction::Idle, NextAction::WaitUntil);
        }
        let clock = self.reservation_clock(now);
        if let Some(first) = self.first_due(round_down_to_time(clock)) {
            if self.flows_by_weight.first().is_some_and(|next| next.id != first.id) {
                self.note_minimum(first.id);
                self.contention = QueueCause::OthersMinimums;
            }
            return self.dispatch_due(now, clock, first.id);
        }
        if let Some(first) = self.flows_by_weight.first() {
            if self.best_effort_depth.has_room(self.depth.in_flight) {
                self.contention = self.cap_meter.contention();
                return self.dispatch(now, clock, first.id, false);
            }
            self.contention = QueueCause::OthersMinimums;
            // The deadline is the current due time of the first minimum.
            self.first_due(Time::NEVER);
        }
        self.next_deadline().map_or(NextAction::Idle, NextAction::WaitUntil)
    }

    /// Returns when a request may be dispatched even without a submission or completion; `None` if
    /// there is no such time. After submissions, the time may be too early until the next poll.
    pub fn next_deadline(&self) -> Option<Time> {
        if !self.depth.has_room() {
            return None;
        }
        // Requests that a policy never permits (maximum of 0) remain queued until the policy
        // changes.
        let throttled = self.throttled.first().filter(|first| first.key < KEY_MAX);
        let throttled = throttled.map(|first| Time::from_ns(first.key));
        if let Some(opens) = self.cap_meter.closed_until() {
            let next = if self.flows_by_weight.is_empty() { throttled?.max(opens) } else { opens };
            return (next != Time::NEVER).then_some(next);
        }
        let due = self.due.first().filter(|_| !self.flows_by_weight.is_empty());
        let lost_ns = round_up_to_time(self.clocks.reservation_lag).as_ns();
        let due = due.map(|first| Time::from_ns(first.key.saturating_add(lost_ns)));
        throttled.into_iter().chain(due).min()
    }

    /// Accounts for a completed read or write of `bytes` bytes; `latency` is its time in the
    /// device.
    #[inline]
    pub fn handle_completion(
        &mut self,
        now: Time,
        slot: DiskSlot,
        (operation, bytes): (IoKind, u32),
        latency: Duration,
    ) {
        let latency_ns = Some(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        self.handle_completed_requests(
            now,
            slot,
            CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: latency_ns },
        );
    }

    /// Accounts for a dispatched request of `bytes` bytes that ended without being executed, for
    /// example because the store has no space for it. It is counted neither as demanded nor as
    /// delivered, what it was charged is refunded, and its time is not counted as latency.
    pub fn handle_not_executed(&mut self, now: Time, slot: DiskSlot, bytes: u32) {
        let units = RequestCharge { cost: self.spec.normalization.cost(bytes), bytes };
        self.refund_requests(now, slot, 1, units);
    }

    /// Removes `requests` dispatched requests that were not executed, and refunds `units`.
    /// `requests` is 0 for requests that were executed but charged too much.
    pub(crate) fn refund_requests(
        &mut self,
        now: Time,
        slot: DiskSlot,
        requests: u32,
        units: RequestCharge,
    ) {
        let clock = self.reservation_clock(now);
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let flow_index = disk.flow_index;
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        let cost = u64::from(units.cost);
        let requests = requests.min(disk.in_flight);
        disk.account(now, flow.throttled_by.unwrap_or(self.contention));
        disk.totals.demanded_operations = disk.totals.demanded_operations.wrapping_sub(cost);
        flow.demanded_operations = flow.demanded_operations.wrapping_sub(cost);
        flow.refund(clock, units);
        self.cap_meter.refund(units.cost);
        disk.in_flight -= requests;
        disk.clear_phases_if_idle();
        if requests > 0 && flow.in_flight <= requests && flow.waiting == 0 {
            flow.account_busy_time(now);
            flow.busy_or_idle_since = now;
        }
        flow.in_flight = flow.in_flight.saturating_sub(requests);
        self.depth.in_flight = self.depth.in_flight.saturating_sub(requests);
        self.remove_from_orders(flow_index);
        self.update_flow_order(now, flow_index);
    }

    /// Counts a dispatch for a flow's minimum although another flow was first by weight.
    fn note_minimum(&mut self, flow_index: u32) {
        self.minimum_dispatches = self.minimum_dispatches.wrapping_add(1);
        if let Some(flow) = self.flows.get_mut(flow_index as usize) {
            flow.minimum_dispatches = flow.minimum_dispatches.wrapping_add(1);
        }
    }

    /// Returns the counters of a flow, including the dispatch counters of the store.
    pub(crate) fn flow_totals(&self, flow: &Flow) -> FlowTotals {
        let others_minimums = self.minimum_dispatches.wrapping_sub(flow.minimum_dispatches);
        FlowTotals {
            dispatch_counters: DispatchCounters {
                dispatches: self.dispatches,
                others_minimum_dispatches: others_minimums,
            },
            ..flow.totals()
        }
    }

    /// Dispatches a request of a flow with a due minimum. Not inlined: the common case, dispatch by
    /// weight, is inlined at the call.
    #[inline(never)]
    fn dispatch_due(&mut self, now: Time, clock: FixedNs, flow_index: u32) -> NextAction {
        self.dispatch(now, clock, flow_index, true)
    }

    #[inline(always)]
    fn dispatch(&mut self, now: Time, clock: FixedNs, flow_index: u32, is_due: bool) -> NextAction {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return NextAction::Idle };
        let Some(member) = flow.members.first() else { return NextAction::Idle };
        let Some(disk) = self.disks.get_mut(member.id as usize) else { return NextAction::Idle };
        disk.account(now, flow.throttled_by.unwrap_or(self.contention));
        let Some(record) = self.queued_requests.pop(&mut disk.fifo) else {
            return NextAction::Idle;
        };
        let cost = record.units.cost;
        self.dispatches = self.dispatches.wrapping_add(1);
        disk.waiting -= 1;
        flow.waiting -= 1;
        member_order::account_service(flow, disk, member.id, cost, &mut self.member_positions);
        self.clocks.account_dispatch((now, clock), disk, flow, record.units, is_due);
        self.cap_meter.charge(cost);
        self.depth.in_flight += 1;
        if flow.waiting == 0 {
            // No maximum delays a dispatched flow. It is listed only in the order of minimums, and
            // remains there.
            flow.order_membership.in_weight_order = false;
            self.flows_by_weight.remove(flow_index);
        } else {
            self.update_queued_flow_order(now, flow_index);
        }
        if self.clocks.needs_virtual_time_reset() {
            self.reset_virtual_time(now);
        }
        NextAction::Dispatch { disk: DiskSlot(member.id), tag: record.tag }
    }

    /// Returns the disk or policy that owns the limits of a flow.
    pub(crate) fn owner(&self, flow_index: usize) -> Option<LimitsOwner> {
        self.flows.get(flow_index).and_then(|flow| flow.owner)
    }

    /// Returns the disk in a slot; `None` if the slot is free.
    pub fn disk(&self, slot: DiskSlot) -> Option<DiskId> {
        self.disks.get(slot.0 as usize).and_then(|disk| disk.id)
    }
}

/// Counts a submitted request of `cost` operations as demand of its disk and flow.
#[inline]
fn demand(disk: &mut Disk, flow: &mut Flow, cost: u32) {
    disk.totals.demanded_operations = disk.totals.demanded_operations.wrapping_add(cost.into());
    flow.demanded_operations = flow.demanded_operations.wrapping_add(cost.into());
}

/// Updates a flow without queued requests that receives a request. Returns true if its minimum is
/// due.
#[inline]
fn wake(flow: &mut Flow, spare: &mut BestEffortDepth, now: Time, clock: FixedNs) -> bool {
    let mut idle_ns = 0;
    if flow.in_flight == 0 {
        idle_ns = now.as_ns().saturating_sub(flow.busy_or_idle_since.as_ns());
        flow.busy_or_idle_since = now;
    }
    let Some(minimum) = &mut flow.minimum else { return false };
    if minimum.due_at > clock {
        flow.record_minimum_met();
        return false;
    }
    minimum.resume(clock, fixed_from_ns(idle_ns));
    let (is_behind, is_due) = (minimum.is_behind(clock), minimum.due_at <= clock);
    if !is_behind {
        flow.record_minimum_met();
        return is_due;
    }
    if now < flow.hold_back_suspended_until {
        flow.behind_since = None;
        return is_due;
    }
    spare.handle_minimum_behind();
    if spare.is_at_minimum() {
        if now.since(flow.record_behind_minimum(now)) >= FUTILE_AFTER {
            flow.suspend_hold_back(now);
        }
    } else {
        flow.behind_since = None;
    }
    true
}
