//! Several requests of a disk at once. What comes of them is what came of one after another, but
//! what they have in common is looked up and reckoned once.

use suimon_quantity::Time;

use crate::records::Units;
use crate::scheduler::Way;
use crate::{DiskSlot, Operation, StoreScheduler, SubmitError, WaitCause};

/// Requests of one disk, one operation and one size that completed at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The operation of each of them.
    pub operation: Operation,
    /// What each of them was submitted with.
    pub bytes: u32,
    /// How many.
    pub requests: u32,
    /// How long they were in the device, all together, in nanoseconds; `None` if that says
    /// nothing about how busy the device is.
    pub latency_ns: Option<u64>,
}

/// What became of requests that came at once, in their order. Those that are neither found no room
/// ([`SubmitError::Full`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// The first so many go to the device now.
    pub dispatched: usize,
    /// The next so many wait.
    pub waiting: usize,
}

/// Requests of one size that are charged at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) requests: u32,
    /// Of each.
    pub(crate) each: Units,
    /// In sum.
    pub(crate) all: Units,
}

impl Run {
    /// `None`: the sums would not fit.
    #[inline]
    fn new(each: Units, requests: u32) -> Option<Self> {
        let all = Units {
            cost: each.cost.checked_mul(requests)?,
            bytes: each.bytes.checked_mul(requests)?,
        };
        Some(Self { requests, each, all })
    }
}

impl StoreScheduler {
    /// Requests of a disk came at once, of so many bytes each: as [`StoreScheduler::submit`] of one
    /// after another with the same `tag`.
    ///
    /// # Errors
    /// Why none was taken.
    pub fn submit_together(
        &mut self,
        now: Time,
        slot: DiskSlot,
        sizes: &[u32],
        tag: u32,
    ) -> Result<Together, SubmitError> {
        let mut of = Together::default();
        while let Some(rest) = sizes.get(of.dispatched..).filter(|rest| !rest.is_empty()) {
            let mut way = self.way(now, slot)?;
            if way.is_free {
                of.dispatched += self.start_first_of(now, slot, way, rest);
                continue;
            }
            for &bytes in rest {
                if !self.records.has_room() {
                    break;
                }
                let units = Units { cost: self.spec.normalization.cost(bytes), bytes };
                self.queue(now, slot, way, units, tag);
                way.is_first = false;
                of.waiting += 1;
            }
            break;
        }
        Ok(of)
    }

    /// Sends the first of these, or several of its size if nothing is against them. How many.
    #[inline]
    fn start_first_of(&mut self, now: Time, slot: DiskSlot, way: Way, sizes: &[u32]) -> usize {
        let Some(&bytes) = sizes.first() else { return 0 };
        let units = Units { cost: self.spec.normalization.cost(bytes), bytes };
        // Of a minimum that is due each request moves when the next one is, and below a cap each may
        // be the last.
        if !way.is_due && !self.gate.is_capped() {
            let room = self.depth.room().min(self.spare.room(self.depth.in_flight));
            let alike = sizes.iter().take(room as usize).take_while(|size| **size == bytes).count();
            let run = u32::try_from(alike).ok().and_then(|alike| Run::new(units, alike));
            if let Some(run) = run.filter(|run| run.requests > 1) {
                if self.start_run(now, slot, way, run) {
                    return alike;
                }
            }
        }
        self.demand_and_start(now, slot, way, units);
        1
    }

    /// Sends requests all at once, if the maximums are not used up by them. Whether they are sent.
    #[inline]
    fn start_run(&mut self, now: Time, slot: DiskSlot, way: Way, run: Run) -> bool {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return false };
        let Some(flow) = self.flows.get_mut(way.of as usize) else { return false };
        // None of its requests is queued.
        disk.account(now, WaitCause::DeviceDepth);
        if !self.clocks.start_run(now, disk, flow, run) {
            return false;
        }
        self.depth.in_flight += run.requests;
        if self.clocks.is_long() {
            self.start_virtual_time_again(now);
        }
        true
    }

    /// Requests that went to the device completed. It is in line where it is called, because one by
    /// itself needs less than several.
    #[inline(always)]
    pub fn handle_completed(&mut self, now: Time, slot: DiskSlot, of: Completed) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let Some(flow) = self.flows.get_mut(disk.flow as usize) else { return };
        // Requests in the device follow their disk to another flow.
        let requests = of.requests.min(disk.in_flight);
        if requests == 0 {
            return;
        }
        disk.account(now, flow.held_by.unwrap_or(self.contention));
        let depth = self.at_workers.map_or(self.depth.in_flight, |of| of.depth);
        // Where all nodes together may do only so much, others of them use the store.
        let is_alone = disk.in_flight == self.depth.in_flight
            && disk.waiting == flow.waiting
            && self.shares.first().is_none_or(|first| first.id == disk.flow)
            && !self.gate.is_capped();
        self.depth.handle_use(now, is_alone);
        let cost = self.spec.normalization.cost(of.bytes);
        let all = u64::from(cost) * u64::from(requests);
        let is_full = !self.depth.has_room() && !self.shares.is_empty() && !self.depth.is_probing();
        self.estimate.handle_completed(now, all, requests, is_full);
        disk.in_flight -= requests;
        disk.end_phases();
        disk.totals.delivered = disk.totals.delivered.wrapping_add(all);
        flow.delivered = flow.delivered.wrapping_add(all);
        if flow.in_flight <= requests && flow.waiting == 0 {
            flow.account_busy(now);
            flow.since = now;
        }
        flow.in_flight = flow.in_flight.saturating_sub(requests);
        let time = &mut disk.totals.time;
        time.requests = time.requests.wrapping_add(requests.into());
        match of.latency_ns {
            Some(latency_ns) => {
                let own = self.own_latency.handle_completed(
                    now,
                    Completed { requests, ..of },
                    depth,
                    latency_ns,
                );
                time.device_ns = time.device_ns.wrapping_add(latency_ns);
                time.own_ns = time.own_ns.wrapping_add(own.own_ns);
                time.unloaded_ns = time.unloaded_ns.wrapping_add(own.unloaded_ns);
                self.depth.handle_completed(now, cost, requests, latency_ns);
            }
            None => {
                time.unmeasured = time.unmeasured.wrapping_add(requests.into());
                self.depth.handle_left(requests);
            }
        }
        let (in_flight, limit) = (self.depth.in_flight, self.depth.limit());
        self.spare.handle_complete(now, in_flight, limit, self.depth.latency_ns);
    }
}

#[cfg(test)]
#[path = "together_tests.rs"]
mod tests;
