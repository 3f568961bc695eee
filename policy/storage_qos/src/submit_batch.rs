//! Submission and completion of several requests of a disk in one call. The result equals that of
//! one call per request. Common lookups and calculations are performed only once.

use suimon_quantity::Time;

use crate::completed::CompletedRequests;
use crate::queued_requests::RequestCharge;
use crate::run::RequestRun;
use crate::scheduler::Admission;
use crate::{DiskSlot, QueueCause, StoreScheduler, SubmitError};

/// Result of the submission of several requests, in order. The remaining requests were rejected
/// because the queue is full ([`SubmitError::Full`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchSubmitOutcome {
    /// Number of requests, from the first on, that the caller must dispatch now.
    pub dispatched: usize,
    /// Number of the requests after those that are queued.
    pub queued_count: usize,
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
    ) -> Result<BatchSubmitOutcome, SubmitError> {
        let mut submitted = BatchSubmitOutcome::default();
        while let Some(rest) = sizes.get(submitted.dispatched..).filter(|rest| !rest.is_empty()) {
            let mut admission = self.check_admission(now, slot)?;
            if admission.is_dispatchable {
                submitted.dispatched += self.start_first_of(now, slot, admission, rest);
                continue;
            }
            for &bytes in rest {
                if !self.queued_requests.has_room() {
                    break;
                }
                let units = RequestCharge { cost: self.spec.normalization.cost(bytes), bytes };
                self.queue(now, slot, admission, units, tag);
                admission.is_first = false;
                submitted.queued_count += 1;
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
        let units = RequestCharge { cost: self.spec.normalization.cost(bytes), bytes };
        // If a minimum is due, each request changes the due time of the next one. If there is a
        // cap, each request may be the last permitted one.
        if !admission.is_due && !self.cap_meter.is_capped() {
            let capacity =
                self.depth.remaining().min(self.best_effort_depth.remaining(self.depth.in_flight));
            let count =
                sizes.iter().take(capacity as usize).take_while(|size| **size == bytes).count();
            let run = u32::try_from(count).ok().and_then(|count| RequestRun::new(units, count));
            if let Some(run) = run.filter(|run| run.requests > 1) {
                if self.start_run(now, slot, admission, run) {
                    return count;
                }
            }
        }
        self.count_demand_and_dispatch(now, slot, admission, units);
        1
    }

    /// Dispatches a run of requests if the maximums permit all of them. Returns true if it was
    /// dispatched.
    #[inline]
    fn start_run(
        &mut self,
        now: Time,
        slot: DiskSlot,
        admission: Admission,
        run: RequestRun,
    ) -> bool {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return false };
        let Some(flow) = self.flows.get_mut(admission.flow_index as usize) else { return false };
        // The flow has no queued requests.
        disk.account(now, QueueCause::DeviceDepth);
        if !self.clocks.account_run(now, disk, flow, run) {
            return false;
        }
        self.depth.in_flight += run.requests;
        if self.clocks.needs_virtual_time_reset() {
            self.reset_virtual_time(now);
        }
        true
    }

    /// Accounts for completed requests. Inlined, so that the code of a single completion is
    /// cheaper.
    #[inline(always)]
    pub fn handle_completed_requests(
        &mut self,
        now: Time,
        slot: DiskSlot,
        completed: CompletedRequests,
    ) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let Some(flow) = self.flows.get_mut(disk.flow_index as usize) else { return };
        // Requests in the device move with their disk to another flow.
        let requests = completed.requests.min(disk.in_flight);
        if requests == 0 {
            return;
        }
        disk.account(now, flow.throttled_by.unwrap_or(self.contention));
        let depth = self.worker_in_flight.map_or(self.depth.in_flight, |workers| workers.depth);
        // If there is a cap, other nodes also use the store.
        let is_alone = disk.in_flight == self.depth.in_flight
            && disk.waiting == flow.waiting
            && self.flows_by_weight.first().is_none_or(|first| first.id == disk.flow_index)
            && !self.cap_meter.is_capped();
        self.depth.record_single_disk(now, is_alone);
        let cost = self.spec.normalization.cost(completed.bytes);
        let total_cost = u64::from(cost) * u64::from(requests);
        let is_full =
            !self.depth.has_room() && !self.flows_by_weight.is_empty() && !self.depth.is_probing();
        self.estimate.handle_completed(now, total_cost, requests, is_full);
        disk.in_flight -= requests;
        disk.clear_phases_if_idle();
        disk.totals.delivered_operations =
            disk.totals.delivered_operations.wrapping_add(total_cost);
        flow.delivered_operations = flow.delivered_operations.wrapping_add(total_cost);
        if flow.in_flight <= requests && flow.waiting == 0 {
            flow.account_busy_time(now);
            flow.busy_or_idle_since = now;
        }
        flow.in_flight = flow.in_flight.saturating_sub(requests);
        let time = &mut disk.totals.time;
        time.completed_requests = time.completed_requests.wrapping_add(requests.into());
        match completed.latency_sum_ns {
            Some(latency_ns) => {
                let own_latency = self.own_latency.handle_completed(
                    now,
                    CompletedRequests { requests, ..completed },
                    depth,
                    latency_ns,
                );
                time.device_ns = time.device_ns.wrapping_add(latency_ns);
                time.own_latency_ns = time.own_latency_ns.wrapping_add(own_latency.own_latency_ns);
                time.unloaded_latency_ns =
                    time.unloaded_latency_ns.wrapping_add(own_latency.unloaded_latency_ns);
                self.depth.handle_completed(now, cost, requests, latency_ns);
            }
            None => {
                time.requests_without_device_time =
                    time.requests_without_device_time.wrapping_add(requests.into());
                self.depth.subtract_completed(requests);
            }
        }
        let (in_flight, limit) = (self.depth.in_flight, self.depth.limit());
        self.best_effort_depth.handle_completion(now, in_flight, limit, self.depth.latency_ns);
    }
}

#[cfg(test)]
#[path = "submit_batch_tests.rs"]
mod tests;
