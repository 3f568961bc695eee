//! Orders in which flows are listed: by due minimum, by weight, and by the time at which a maximum
//! permits the next request.

use suimon_quantity::Time;

use crate::StoreScheduler;
use crate::ranking::{Entry, TournamentTree};
use crate::unit_time::round_up_to_time;

impl StoreScheduler {
    /// Returns the flow with the earliest due minimum if it is due at `clock` on the reservation
    /// clock, otherwise `None`.
    #[inline]
    pub(crate) fn first_due(&mut self, clock: Time) -> Option<Entry> {
        let first = self.due.first_until(clock.as_ns())?;
        self.first_due_from(first, clock)
    }

    /// Continues [`StoreScheduler::first_due`] with `first`, the flow with the lowest stored key.
    /// The stored key may be lower than the actual due time. Rarely called.
    #[inline(never)]
    fn first_due_from(&mut self, mut first: Entry, clock: Time) -> Option<Entry> {
        loop {
            let flow = self.flows.get_mut(first.id as usize)?;
            let minimum = flow.minimum.as_ref().filter(|_| flow.order_membership.in_weight_order);
            match minimum.map(|minimum| round_up_to_time(minimum.due_at).as_ns()) {
                Some(due) if TournamentTree::is_at_least(first, due) => return Some(first),
                Some(due) => self.due.set(first.id, due),
                None => {
                    flow.order_membership.in_due = false;
                    self.due.remove(first.id);
                }
            }
            first = self.due.first_until(clock.as_ns())?;
        }
    }

    /// Moves flows from the throttled to the dispatchable ones if their maximum permits a request
    /// now.
    #[inline]
    pub(crate) fn release_throttled_flows(&mut self, now: Time) {
        while let Some(first) = self.throttled.first_until(now.as_ns()) {
            self.update_flow_order(now, first.id);
            // A flow remains listed here only if its maximum delays it further.
            if self.throttled.first() == Some(first) {
                break;
            }
        }
    }

    /// Updates the orders by weight and by maximum for a flow. A flow without queued requests is in
    /// neither. A flow delayed by a maximum is listed as throttled, any other as dispatchable.
    #[inline]
    pub(crate) fn update_flow_order(&mut self, now: Time, flow_index: u32) {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        if flow.waiting > 0 {
            return self.update_queued_flow_order(now, flow_index);
        }
        flow.throttled_by = None;
        if core::mem::take(&mut flow.order_membership.in_throttled) {
            self.throttled.remove(flow_index);
        }
        if core::mem::take(&mut flow.order_membership.in_weight_order) {
            self.flows_by_weight.remove(flow_index);
        }
    }

    /// Updates the orders of a flow with queued requests.
    #[inline]
    pub(crate) fn update_queued_flow_order(&mut self, now: Time, flow_index: u32) {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        if flow.throttled_by.is_some() || flow.permitted_at(now) > now {
            self.enqueue_throttled(now, flow_index);
        } else {
            self.enqueue_eligible(flow_index);
        }
    }

    /// Updates the orders of a flow that a maximum delays, or has delayed until now.
    #[inline(never)]
    fn enqueue_throttled(&mut self, now: Time, flow_index: u32) {
        let clock = self.reservation_clock(now);
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        let opens = flow.permitted_at(now);
        let held_by = (opens > now).then(|| flow.longest_throttle_cause());
        if held_by != flow.throttled_by {
            // In a shared policy, only the disk that is next accounts for its queueing here. The
            // other disks account for it when they are next.
            let is_turn = !flow.is_shared || flow.throttled_by.is_some();
            let disk = flow.members.first().filter(|_| is_turn);
            if let Some(disk) = disk.and_then(|first| self.disks.get_mut(first.id as usize)) {
                disk.account(now, flow.throttled_by.unwrap_or(self.contention));
            }
            if let Some(minimum) = flow.minimum.as_mut().filter(|_| held_by.is_none()) {
                minimum.cancel_owed(clock);
            }
            flow.throttled_by = held_by;
        }
        if held_by.is_some() {
            if core::mem::take(&mut flow.order_membership.in_weight_order) {
                self.flows_by_weight.remove(flow_index);
            }
            flow.order_membership.in_throttled = true;
            self.throttled.set(flow_index, opens.as_ns());
            return;
        }
        if core::mem::take(&mut flow.order_membership.in_throttled) {
            self.throttled.remove(flow_index);
        }
        self.enqueue_eligible(flow_index);
    }

    /// Lists a flow that no maximum delays in the orders by weight and by minimum.
    #[inline]
    fn enqueue_eligible(&mut self, flow_index: u32) {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        flow.served_virtual_time = flow.served_virtual_time.max(self.clocks.virtual_time);
        flow.order_membership.in_weight_order = true;
        self.flows_by_weight.set(flow_index, flow.served_virtual_time);
        if let Some(minimum) = flow.minimum.as_ref().filter(|_| !flow.order_membership.in_due) {
            flow.order_membership.in_due = true;
            self.due.set(flow_index, round_up_to_time(minimum.due_at).as_ns());
        }
    }

    /// Removes a flow from all orders. Must be called before its keys change.
    #[inline]
    pub(crate) fn remove_from_orders(&mut self, flow_index: u32) {
        let Some(flow) = self.flows.get_mut(flow_index as usize) else { return };
        let listed = core::mem::take(&mut flow.order_membership);
        if listed.in_throttled {
            self.throttled.remove(flow_index);
        }
        if listed.in_weight_order {
            self.flows_by_weight.remove(flow_index);
        }
        if listed.in_due {
            self.due.remove(flow_index);
        }
    }

    /// Resets the virtual times of all flows. Their order is preserved, because virtual times are
    /// only compared with each other.
    #[cold]
    pub(crate) fn reset_virtual_time(&mut self, now: Time) {
        let offset = core::mem::take(&mut self.clocks.virtual_time);
        for flow in &mut self.flows {
            flow.served_virtual_time = flow.served_virtual_time.saturating_sub(offset);
        }
        let waiting: Vec<u32> = self.flows_by_weight.entries().map(|entry| entry.id).collect();
        for flow_index in &waiting {
            self.remove_from_orders(*flow_index);
        }
        for flow_index in waiting {
            self.update_flow_order(now, flow_index);
        }
    }
}
