//! Application of configuration changes while requests are queued and in flight.

use suimon_quantity::{DiskId, Time};

use crate::disk::Disk;
use crate::flow::Flow;
use crate::history::History;
use crate::minimum_monitor::MinimumMonitor;
use crate::{
    ConfigStep, DISKS_MAX, DiskSlot, FlowSlot, Limits, LimitsOwner, PolicyId, PolicyShare,
    QueueCause, StoreScheduler,
};

/// Maximum number of flows: one for each disk, and the same number of policies.
const FLOWS_MAX: usize = 2 * DISKS_MAX;

impl StoreScheduler {
    /// Applies one step of a change. Returns the tags of queued requests that will never be
    /// dispatched, because their disk was removed; what they were charged is not used. A step with
    /// a slot outside the bounds of a store has no effect.
    ///
    /// Requests in the device remain accounted for, even if their disk was removed. They should
    /// complete before another disk gets the slot. Otherwise they are counted as delivered to that
    /// disk.
    pub fn apply(&mut self, now: Time, change: ConfigStep) -> Vec<u32> {
        match change {
            ConfigStep::SetFlow { flow, owner: holder, limits } => {
                self.set_flow(now, flow, holder, limits);
            }
            ConfigStep::SetDisk { slot, disk, flow } => self.set_disk(now, slot, disk, flow),
            ConfigStep::RemoveDisk(slot) => return self.remove_disk(now, slot),
            ConfigStep::RemoveFlow(flow) => self.remove_flow(now, flow),
            ConfigStep::SetCapacity(iops) => self.capacity = iops,
            ConfigStep::SetCap(cap) => self.cap_meter.set_cap(now, cap),
            ConfigStep::SetMeasuredLatency(measured) => {
                self.own_latency.set_measured(measured, self.spec.normalization);
            }
            ConfigStep::SetPolicyShare(policy, part) => self.set_part(now, policy, part),
        }
        Vec::new()
    }

    fn set_flow(&mut self, now: Time, slot: FlowSlot, holder: LimitsOwner, limits: Limits) {
        let clock = self.reservation_clock(now);
        if !self.make_flow(slot) {
            return;
        }
        let Some(flow) = self.flows.get_mut(slot.0 as usize) else { return };
        flow.account_guaranteed(now);
        if let Some(watch) = self.minimum_monitors.get_mut(slot.0 as usize) {
            if flow.limits.min_iops != limits.min_iops || flow.owner != Some(holder) {
                *watch = MinimumMonitor::default();
            }
        }
        flow.configure(holder, limits, clock, now);
        flow.set_accounted_by_workers(now, self.worker_in_flight.is_some());
        let part = match holder {
            LimitsOwner::Policy(policy) => self.policy_shares.get(&policy).copied(),
            LimitsOwner::Disk(_) => None,
        };
        flow.set_policy_share(now, clock, part);
        self.remove_from_orders(slot.0);
        self.update_flow_order(now, slot.0);
    }

    fn set_part(&mut self, now: Time, policy: PolicyId, part: Option<PolicyShare>) {
        match part {
            Some(part) => self.policy_shares.insert(policy, part),
            None => self.policy_shares.remove(&policy),
        };
        let holder = Some(LimitsOwner::Policy(policy));
        let Some(index) = self.flows.iter().position(|flow| flow.owner == holder) else { return };
        let clock = self.reservation_clock(now);
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.account_guaranteed(now);
        flow.set_policy_share(now, clock, part);
        let Ok(index) = u32::try_from(index) else { return };
        self.remove_from_orders(index);
        self.update_flow_order(now, index);
    }

    fn remove_flow(&mut self, now: Time, slot: FlowSlot) {
        let Some(flow) = self.flows.get_mut(slot.0 as usize) else { return };
        // A flow with queued requests is retained. Earlier steps of the same change move its disks
        // to other flows or remove them.
        if flow.waiting > 0 {
            return;
        }
        self.remove_from_orders(slot.0);
        if let Some(flow) = self.flows.get_mut(slot.0 as usize) {
            // Requests in the device complete regardless of limits and minimum.
            *flow = flow.without_owner(now);
        }
        if let Some(watch) = self.minimum_monitors.get_mut(slot.0 as usize) {
            *watch = MinimumMonitor::default();
        }
    }

    fn make_flow(&mut self, slot: FlowSlot) -> bool {
        let index = slot.0 as usize;
        if index >= FLOWS_MAX {
            return false;
        }
        if self.flows.len() <= index {
            let count = index + 1;
            self.flows.resize_with(count, Flow::default);
            self.minimum_monitors.resize_with(count, MinimumMonitor::default);
            for order in [&mut self.throttled, &mut self.due] {
                order.reserve(count);
            }
            self.flows_by_weight.reserve(count);
        }
        true
    }

    fn set_disk(&mut self, now: Time, slot: DiskSlot, id: DiskId, flow: FlowSlot) {
        let index = slot.0 as usize;
        if index >= DISKS_MAX || !self.make_flow(flow) {
            return;
        }
        if self.disks.len() <= index {
            self.disks.resize_with(index + 1, Disk::default);
            self.histories.resize_with(index + 1, History::default);
            self.member_positions.reserve(index + 1);
        }
        let Some(disk) = self.disks.get_mut(index) else { return };
        let (from, waiting, in_flight) = (disk.flow_index, disk.waiting, disk.in_flight);
        let old = self.flows.get(from as usize);
        let cause = old.and_then(|flow| flow.throttled_by).unwrap_or(self.contention);
        disk.account(now, cause);
        let is_new = disk.id != Some(id);
        if is_new {
            disk.reset_counters(now);
            if let Some(history) = self.histories.get_mut(index) {
                *history = History::default();
            }
        }
        disk.id = Some(id);
        disk.is_accounted_by_workers = self.worker_in_flight.is_some();
        disk.flow_index = flow.0;
        if !is_new && from != flow.0 {
            self.rebase_history(index, from, flow.0);
        }
        self.leave(now, slot.0, from, waiting, in_flight);
        self.join(now, slot.0, flow.0, waiting, in_flight);
    }

    fn rebase_history(&mut self, disk: usize, from: u32, to: u32) {
        let totals = |flow: u32| self.flows.get(flow as usize).map(|flow| self.flow_totals(flow));
        let totals = totals(from).zip(totals(to));
        if let Some((history, (from, to))) = self.histories.get_mut(disk).zip(totals) {
            history.change_flow(&from, &to);
        }
    }

    fn remove_disk(&mut self, now: Time, slot: DiskSlot) -> Vec<u32> {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return Vec::new() };
        if disk.id.is_none() {
            return Vec::new();
        }
        let mut tags = Vec::new();
        while let Some(record) = self.queued_requests.pop(&mut disk.fifo) {
            tags.push(record.tag);
        }
        disk.account(now, QueueCause::DeviceDepth);
        disk.id = None;
        let (flow, waiting) = (disk.flow_index, core::mem::take(&mut disk.waiting));
        // Requests in the device remain with their flow until they complete.
        self.leave(now, slot.0, flow, waiting, 0);
        tags
    }

    fn leave(&mut self, now: Time, disk: u32, flow_index: u32, waiting: u32, in_flight: u32) {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        flow.account_busy_time(now);
        flow.members.remove(&mut self.member_positions, disk);
        flow.waiting = flow.waiting.saturating_sub(waiting);
        flow.in_flight = flow.in_flight.saturating_sub(in_flight);
        if !flow.is_busy() {
            flow.busy_or_idle_since = now;
        }
        self.list_members(flow_index);
        self.update_flow_order(now, flow_index);
    }

    fn join(&mut self, now: Time, slot: u32, flow_index: u32, waiting: u32, in_flight: u32) {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        let Some(disk) = self.disks.get_mut(slot as usize) else { return };
        if !flow.is_busy() && waiting + in_flight > 0 {
            flow.busy_or_idle_since = now;
        }
        // The service that a disk received in one flow is meaningless in another flow.
        disk.served_virtual_time = flow.member_virtual_time;
        flow.waiting += waiting;
        flow.in_flight += in_flight;
        self.list_members(flow_index);
        self.update_flow_order(now, flow_index);
    }
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod part_tests;
#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
