//! Completions that were not passed to the store's scheduler yet. Completions with the same disk,
//! operation and size are passed together, at the cost of one.

use suimon_quantity::Time;
use suimon_recording::Recorded;
use suimon_storage_qos::{CompletedRequests, DiskSlot, IoKind, StoreScheduler};

/// Collected completions with the same disk, operation and size.
#[derive(Debug)]
pub(crate) struct CompletionBatch {
    slot: DiskSlot,
    /// Number of completions, and sum of their latencies; empty if `requests` is 0.
    of: CompletedRequests,
}

impl Default for CompletionBatch {
    fn default() -> Self {
        let operation = IoKind::Read;
        let completion =
            CompletedRequests { operation, bytes: 0, requests: 0, latency_sum_ns: None };
        Self { slot: DiskSlot(0), of: completion }
    }
}

impl CompletionBatch {
    pub(crate) const fn is_empty(&self) -> bool {
        self.of.requests == 0
    }

    /// Adds a completion. If its disk, operation or size differs from the collected ones, those are
    /// passed to `scheduler` first.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        scheduler: &mut Recorded<StoreScheduler>,
        now: Time,
        slot: DiskSlot,
        completed: CompletedRequests,
    ) {
        let is_alike = self.slot == slot
            && self.of.bytes == completed.bytes
            && self.of.operation == completed.operation
            && self.of.latency_sum_ns.is_some() == completed.latency_sum_ns.is_some();
        if !is_alike || self.is_empty() {
            self.report(scheduler, now);
            (self.slot, self.of) = (slot, completed);
            return;
        }
        self.of.requests += completed.requests;
        if let (Some(sum), Some(ns)) = (&mut self.of.latency_sum_ns, completed.latency_sum_ns) {
            *sum = sum.saturating_add(ns);
        }
    }

    /// Passes the collected completions to `scheduler`.
    #[inline]
    pub(crate) fn report(&mut self, scheduler: &mut Recorded<StoreScheduler>, now: Time) {
        if !self.is_empty() {
            self.report_batch(scheduler, now);
        }
    }

    #[inline(never)]
    fn report_batch(&mut self, scheduler: &mut Recorded<StoreScheduler>, now: Time) {
        scheduler.handle_completed_requests(now, self.slot, self.of);
        (self.of.requests, self.of.latency_sum_ns) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use suimon_quantity::{DiskId, StoreId};
    use suimon_storage_qos::{
        Capacity, Limits, LimitsSource, NextAction, Proposal, Store, StoreSpec, SubmitOutcome,
    };

    use crate::scheduling::store::WorkerStore;

    use super::*;

    /// Creates a store with a queue depth of 1, and returns the slots of two disks on it.
    fn store(now: Time) -> (WorkerStore, [DiskSlot; 2]) {
        let spec = StoreSpec { depth_min: 1, depth_max: 1, ..StoreSpec::default() };
        let mut worker_store = WorkerStore::new(Time::ZERO, StoreId(1), spec, None);
        let mut store = Store::new(Capacity::Declared(1000));
        for disk in [DiskId(0), DiskId(1)] {
            let proposal = Proposal::SetDisk(disk, LimitsSource::Own(Limits::default()));
            for change in store.apply(&[proposal], false).unwrap() {
                worker_store.apply(now, change, false);
            }
        }
        (worker_store, [DiskId(0), DiskId(1)].map(|disk| store.slot(disk).unwrap()))
    }

    /// A completion at the end of an iteration lets the next one dispatch queued requests. That
    /// iteration follows at once.
    #[test]
    fn queued_requests_are_dispatched_in_the_iteration_after_a_completion() {
        let now = Time::from_ns(1 << 40);
        let (mut worker_store, [first, second]) = store(now);
        assert_eq!(worker_store.submit(now, first, 4096, 0), Ok(SubmitOutcome::Dispatch));
        assert_eq!(worker_store.submit(now, second, 4096, 1), Ok(SubmitOutcome::Queued));
        assert_eq!(worker_store.poll(now), NextAction::Idle);
        let operation = IoKind::Read;
        let completed =
            CompletedRequests { operation, bytes: 4096, requests: 1, latency_sum_ns: Some(80_000) };
        worker_store.handle_request_completed(now, first, completed, false);
        assert_eq!(worker_store.next_deadline(), Some(Time::ZERO));
        worker_store.report_completions(now);
        assert_eq!(worker_store.poll(now), NextAction::Dispatch { disk: second, tag: 1 });
    }

    /// A completion that differs from earlier ones is reported with its own properties.
    #[test]
    fn completions_are_reported_with_their_own_properties() {
        let now = Time::from_ns(1 << 40);
        let (worker_store, [first, second]) = store(now);
        let spec = StoreSpec { depth_min: 64, depth_max: 64, ..worker_store.spec };
        let mut scheduler = Recorded::record_scheduler(None, (now, "0"), spec);
        let mut store = Store::new(Capacity::Declared(1000));
        for disk in [DiskId(0), DiskId(1)] {
            let proposal = Proposal::SetDisk(disk, LimitsSource::Own(Limits::default()));
            for change in store.apply(&[proposal], false).unwrap() {
                scheduler.apply(now, change);
            }
        }
        scheduler.observe(now);
        let completions =
            [(first, 8192, 5), (first, 8192, 3), (first, 65_536, 2), (second, 65_536, 4)];
        let mut batch = CompletionBatch::default();
        for (slot, bytes, count) in completions {
            for _ in 0..count {
                assert_eq!(scheduler.submit(now, slot, bytes, 0), Ok(SubmitOutcome::Dispatch));
            }
        }
        for (position, (slot, bytes, count)) in completions.into_iter().enumerate() {
            let latency_ns = (position != 1).then_some(100_000);
            for _ in 0..count {
                let operation = if position == 2 { IoKind::Write } else { IoKind::Read };
                let completed =
                    CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: latency_ns };
                batch.add(&mut scheduler, now, slot, completed);
            }
        }
        assert_eq!(scheduler.in_flight(), 4, "the last completions are not reported yet");
        batch.report(&mut scheduler, now);
        assert!(batch.is_empty());
        assert_eq!(scheduler.in_flight(), 0);
        let later = now + Duration::from_secs(1);
        scheduler.observe(later);
        let delivered = |slot| scheduler.view(later, slot).unwrap().short.delivered_operations;
        assert_eq!((delivered(first), delivered(second)), (8 + 2 * 8, 4 * 8));
    }
}
