//! Submission and completion of several requests of a disk in one call. The result equals that of
//! one call per request. Common lookups and calculations are performed only once.

use suimon_quantity::Time;

use crate::completed::Completed;
use crate::records::Units;
use crate::run::Run;
use crate::scheduler::Admission;
use crate::{DiskSlot, QueueCause, StoreScheduler, SubmitError};

/// Result of the submission of several requests, in order. The remaining requests were rejected
/// because the queue is full ([`SubmitError::Full`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSubmitted {
    /// Number of requests, from the first on, that the caller must dispatch now.
    pub dispatched: usize,
    /// Number of the requests after those that are queued.
    pub waiting: usize,
}

impl StoreScheduler {
    /// Submits requests of a disk with the given sizes in bytes. Equivalent to one call of
    /// [`StoreScheduler::submit`] per request with the same `tag`.
    ///
    /// # Errors
    /// [`SubmitError::NoDisk`] if the disk is not known. In this case no request was accepted.
    pub fn submit_batch(
        &mut self,
        now: Time,
        slot: DiskSlot,
        sizes: &[u32],
        tag: u32,
    ) -> Result<BatchSubmitted, SubmitError> {
        let mut submitted = BatchSubmitted::default();
        while let Some(rest) = sizes.get(submitted.dispatched..).filter(|rest| !rest.is_empty()) {
            let mut admission = self.admission(now, slot)?;
            if admission.is_free {
                submitted.dispatched += self.start_first_of(now, slot, admission, rest);
                continue;
            }
            for &bytes in rest {
                if !self.records.has_room() {
                    break;
                }
                let units = Units { cost: self.spec.normalization.cost(bytes), bytes };
                self.queue(now, slot, admission, units, tag);
                admission.is_first = false;
                submitted.waiting += 1;
            }
            break;
        }
        Ok(submitted)
    }

    /// Dispatches the first request, or several of the same size if no limit delays them. Returns
    /// the number of dispatched requests.
    #[inline]
    fn start_first_of(
        &mut self,
        now: Time,
        slot: DiskSlot,
        admission: Admission,
        sizes: &[u32],
    ) -> usize {
        let Some(&bytes) = sizes.first() else { return 0 };
        let units = Units { cost: self.spec.normalization.cost(bytes), bytes };
        // If a minimum is due, each request changes the due time of the next one. If there is a
        // cap, each request may be the last permitted one.
        if !admission.is_due && !self.gate.is_capped() {
            let capacity = self.depth.remaining().min(self.spare.remaining(self.depth.in_flight));
            let count =
                sizes.iter().take(capacity as usize).take_while(|size| **size == bytes).count();
            let run = u32::try_from(count).ok().and_then(|count| Run::new(units, count));
            if let Some(run) = run.filter(|run| run.requests > 1) {
                if self.start_run(now, slot, admission, run) {
                    return count;
                }
            }
        }
        self.demand_and_start(now, slot, admission, units);
        1
    }

    /// Dispatches a run of requests if the maximums permit all of them. Returns true if it was
    /// dispatched.
    #[inline]
    fn start_run(&mut self, now: Time, slot: DiskSlot, admission: Admission, run: Run) -> bool {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return false };
        let Some(flow) = self.flows.get_mut(admission.flow as usize) else { return false };
        // The flow has no queued requests.
        disk.account(now, QueueCause::DeviceDepth);
        if !self.clocks.start_run(now, disk, flow, run) {
            return false;
        }
        self.depth.in_flight += run.requests;
        if self.clocks.is_long() {
            self.start_virtual_time_again(now);
        }
        true
    }

    /// Accounts for completed requests. Inlined, so that the code of a single completion is
    /// cheaper.
    #[inline(always)]
    pub fn handle_completed(&mut self, now: Time, slot: DiskSlot, completed: Completed) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let Some(flow) = self.flows.get_mut(disk.flow as usize) else { return };
        // Requests in the device move with their disk to another flow.
        let requests = completed.requests.min(disk.in_flight);
        if requests == 0 {
            return;
        }
        disk.account(now, flow.throttled_by.unwrap_or(self.contention));
        let depth = self.at_workers.map_or(self.depth.in_flight, |workers| workers.depth);
        // If there is a cap, other nodes also use the store.
        let is_alone = disk.in_flight == self.depth.in_flight
            && disk.waiting == flow.waiting
            && self.shares.first().is_none_or(|first| first.id == disk.flow)
            && !self.gate.is_capped();
        self.depth.handle_use(now, is_alone);
        let cost = self.spec.normalization.cost(completed.bytes);
        let total_cost = u64::from(cost) * u64::from(requests);
        let is_full = !self.depth.has_room() && !self.shares.is_empty() && !self.depth.is_probing();
        self.estimate.handle_completed(now, total_cost, requests, is_full);
        disk.in_flight -= requests;
        disk.end_phases();
        disk.totals.delivered = disk.totals.delivered.wrapping_add(total_cost);
        flow.delivered = flow.delivered.wrapping_add(total_cost);
        if flow.in_flight <= requests && flow.waiting == 0 {
            flow.account_busy(now);
            flow.since = now;
        }
        flow.in_flight = flow.in_flight.saturating_sub(requests);
        let time = &mut disk.totals.time;
        time.requests = time.requests.wrapping_add(requests.into());
        match completed.latency_ns {
            Some(latency_ns) => {
                let own_latency = self.own_latency.handle_completed(
                    now,
                    Completed { requests, ..completed },
                    depth,
                    latency_ns,
                );
                time.device_ns = time.device_ns.wrapping_add(latency_ns);
                time.own_ns = time.own_ns.wrapping_add(own_latency.own_ns);
                time.unloaded_ns = time.unloaded_ns.wrapping_add(own_latency.unloaded_ns);
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
