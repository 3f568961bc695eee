//! Budget of a store that several workers use.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use suimon_quantity::{Time, WorkerId};

use crate::disk::Disk;
use crate::queued_requests::RequestCharge;
use crate::worker_in_flight::at_least_zero;
use crate::{
    Borrower, CapacityEstimate, CompletedRequests, Completion, ConfigStep, DISKS_MAX,
    DiskQosStatus, DiskSlot, GrantKind, NextAction, StoreEvent, StoreScheduler, StoreSpec,
    SubmitOutcome, WorkerGrant, WorkerReport,
};

/// Budget of a store: the only scheduler for the requests of all workers. Workers report queued and
/// completed requests, and the budget grants requests that a worker may dispatch. Limits are never
/// divided between workers, because the budget charges each request once.
///
/// The scheduler's queue should have room for the queued requests of all workers.
#[derive(Clone, Debug)]
pub struct StoreBudget {
    scheduler: StoreScheduler,
    /// Grants that the caller has not fetched yet. Consecutive grants for the same worker and disk
    /// are merged.
    granted: VecDeque<WorkerGrant>,
    workers: BTreeMap<WorkerId, WorkerGrants>,
}

/// Grants of one worker that have not ended.
#[derive(Clone, Debug, Default)]
struct WorkerGrants {
    /// Number of requests granted or lent to the worker that have not ended.
    in_flight: u32,
    /// Requests by disk slot, which are subtracted when the worker ends.
    disks: Vec<WorkerRequests>,
    /// True if the worker has stopped reporting. The device depth then does not count its requests.
    is_absent: bool,
}

/// Requests of one disk at one worker.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerRequests {
    /// Number of requests granted or lent to the worker that have not ended.
    granted: u32,
    /// Number of requests in flight, as reported by the worker. Signed: the sum of reported
    /// changes.
    at_worker: i32,
}

impl WorkerGrants {
    fn of(&mut self, slot: DiskSlot) -> Option<&mut WorkerRequests> {
        let index = slot.0 as usize;
        if index < DISKS_MAX && self.disks.len() <= index {
            self.disks.resize(index + 1, WorkerRequests::default());
        }
        self.disks.get_mut(index)
    }

    fn end(&mut self, slot: DiskSlot, requests: u32) {
        if let Some(disk) = self.disks.get_mut(slot.0 as usize) {
            disk.granted = disk.granted.saturating_sub(requests);
        }
    }
}

impl StoreBudget {
    /// Creates a budget without disks.
    pub fn new(spec: StoreSpec) -> Self {
        let depth_max = spec.depth_max as usize;
        let mut scheduler = StoreScheduler::new(spec);
        scheduler.begin_worker_accounting(Time::ZERO);
        let workers = BTreeMap::new();
        Self { scheduler, granted: VecDeque::with_capacity(depth_max), workers }
    }

    /// Converts the scheduler of the single worker `worker` to a budget for several workers. The
    /// queued requests move to `borrower`, which must be new. All charges are preserved.
    pub fn from_scheduler(
        mut scheduler: StoreScheduler,
        now: Time,
        worker: WorkerId,
        borrower: &mut Borrower,
    ) -> Self {
        let depth_max = scheduler.spec.depth_max as usize;
        scheduler.begin_worker_accounting(now);
        for (slot, disk) in (0..).map(DiskSlot).zip(&mut scheduler.disks) {
            if disk.id.is_none() && disk.in_flight == 0 {
                continue;
            }
            borrower.add(slot);
            borrower.adopt_in_flight(now, slot, disk.in_flight, disk.take_phases());
            scheduler.queued_requests.retag(&disk.fifo, |record| {
                borrower.push_counted_request(slot, record.tag, record.units);
                Some(worker.0.into())
            });
        }
        let of_disk = |disk: &Disk| WorkerRequests {
            granted: disk.in_flight,
            at_worker: disk.in_flight_at_workers,
        };
        let disks = scheduler.disks.iter().map(of_disk).collect();
        let grants = WorkerGrants { in_flight: scheduler.in_flight(), disks, is_absent: false };
        let workers = BTreeMap::from([(worker, grants)]);
        Self { scheduler, granted: VecDeque::with_capacity(depth_max), workers }
    }

    /// Returns true if the borrower's worker is the only user of the store: all grants were
    /// returned except for the `in_flight` requests that this worker has in the device, and no
    /// other worker has a queued request.
    pub fn is_drained(&self, borrower: &Borrower, in_flight: u32) -> bool {
        let is_same = |(slot, disk): (DiskSlot, &Disk)| borrower.queued_count(slot) == disk.waiting;
        self.granted.is_empty()
            && borrower.is_drained()
            && self.in_flight() == in_flight
            && (0..).map(DiskSlot).zip(&self.scheduler.disks).all(is_same)
    }

    /// Converts the budget back to the scheduler of its last borrower: the reverse of
    /// [`StoreBudget::from_scheduler`]. The budget must be [drained](Self::is_drained) with this
    /// borrower.
    pub fn into_scheduler(mut self, now: Time, mut borrower: Borrower) -> StoreScheduler {
        let last = borrower.take_time_report(now);
        self.scheduler.handle_worker_times(now, &last.times, 0);
        self.scheduler.end_worker_accounting(now);
        for (slot, disk) in (0..).map(DiskSlot).zip(&mut self.scheduler.disks) {
            let phases = borrower.phases(slot);
            disk.set_phases(phases);
            self.scheduler.queued_requests.retag(&disk.fifo, |_| borrower.pop_queued(slot));
        }
        self.scheduler
    }

    /// Applies one step of a change. Workers remove the requests of a removed disk themselves by
    /// [`crate::Borrower::withdraw_request`], before or after this call.
    pub fn apply(&mut self, now: Time, change: ConfigStep) {
        self.scheduler.apply(now, change);
    }

    /// Applies the report of a worker. A worker that reports no longer counts as absent.
    pub fn handle_report(&mut self, now: Time, from: WorkerId, report: &WorkerReport) {
        self.end_absence(from);
        let before = self.scheduler.in_flight();
        self.scheduler.handle_worker_times(now, &report.times, report.completions.len());
        for &Completion { disk, operation, bytes, latency } in &report.completions {
            let ns = |latency: Duration| u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
            let latency_ns = latency.map(ns);
            let completed =
                CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: latency_ns };
            self.scheduler.handle_completed_requests(now, disk, completed);
        }
        for returned in &report.returned_grants {
            let units = RequestCharge { cost: returned.cost, bytes: returned.bytes };
            self.scheduler.refund_requests(now, returned.disk, returned.requests, units);
        }
        let ended_requests = before.saturating_sub(self.scheduler.in_flight());
        if let Some(grants) = self.workers.get_mut(&from) {
            grants.in_flight = grants.in_flight.saturating_sub(ended_requests);
            report.completions.iter().for_each(|completion| grants.end(completion.disk, 1));
            report
                .returned_grants
                .iter()
                .for_each(|returned| grants.end(returned.disk, returned.requests));
            for time in &report.times {
                let is_known = self.scheduler.disks.len() > time.disk.0 as usize;
                if let Some(requests) = grants.of(time.disk).filter(|_| is_known) {
                    requests.at_worker = requests.at_worker.saturating_add(time.in_flight_change);
                }
            }
        }
        for request in &report.queued_requests {
            match self.scheduler.submit(now, request.disk, request.bytes, from.0.into()) {
                Ok(SubmitOutcome::Dispatch) => self.grant(from, request.disk),
                Ok(SubmitOutcome::Queued) => {}
                Err(_) => {
                    let kind = GrantKind::QueuedRequestRefused(request.bytes);
                    self.granted.push_back(WorkerGrant { worker: from, disk: request.disk, kind });
                }
            }
        }
        for request in &report.loan_requests {
            let is_lent = self.scheduler.try_dispatch(now, request.disk, request.bytes);
            let kind =
                if is_lent { GrantKind::Loan(request.bytes) } else { GrantKind::LoanRefused };
            if is_lent {
                self.count(from, request.disk);
            }
            self.granted.push_back(WorkerGrant { worker: from, disk: request.disk, kind });
        }
    }

    /// Returns the next grant, or `None` if nothing can be granted now.
    pub fn poll_grant(&mut self, now: Time) -> Option<WorkerGrant> {
        while let NextAction::Dispatch { disk, tag } = self.scheduler.poll(now) {
            self.grant(WorkerId(u16::try_from(tag).unwrap_or(u16::MAX)), disk);
        }
        self.granted.pop_front()
    }

    /// Returns when [`StoreBudget::poll_grant`] may return a grant even without a further report;
    /// `None` if only a report can lead to one.
    pub fn next_deadline(&self) -> Option<Time> {
        self.scheduler.next_deadline()
    }

    /// Samples delivered operations; see [`StoreScheduler::observe`]. Requests queued on workers
    /// are counted from their report on.
    pub fn observe(&mut self, now: Time) -> Vec<StoreEvent> {
        self.scheduler.observe(now)
    }

    /// Returns the state of a disk; see [`StoreScheduler::view`]. The requests in flight are those
    /// that workers have reported.
    pub fn view(&self, now: Time, slot: DiskSlot) -> Option<DiskQosStatus> {
        self.scheduler.view(now, slot)
    }

    /// Returns the number of requests in the device as reported by workers.
    pub fn in_device(&self) -> u32 {
        self.scheduler.worker_in_flight.map_or(0, |workers| at_least_zero(workers.in_flight))
    }

    /// Returns the mean device latency; see [`StoreScheduler::latency_ns`].
    pub const fn device_latency_ns(&self) -> u64 {
        self.scheduler.device_latency_ns()
    }

    /// Returns the capacity estimate; see [`StoreScheduler::estimate`].
    pub const fn estimate(&self) -> Option<CapacityEstimate> {
        self.scheduler.estimate()
    }

    /// Returns the queue depth limit of the device; see [`StoreScheduler::depth`].
    pub fn queue_depth_limit(&self) -> u32 {
        self.scheduler.queue_depth_limit()
    }

    /// Returns the number of requests that are granted, including those in the device and those of
    /// absent workers.
    pub fn in_flight(&self) -> u32 {
        let absent =
            self.workers.values().filter(|grants| grants.is_absent).map(|grants| grants.in_flight);
        self.scheduler.in_flight().saturating_add(absent.sum())
    }

    /// Records that a worker has stopped reporting although it has grants, because it is blocked.
    /// Until its next report, its requests remain charged to the limits of their disks, but do not
    /// count towards the device's queue depth: a worker that uses the whole depth would stop all
    /// others.
    pub fn handle_worker_absent(&mut self, worker: WorkerId) {
        if let Some(grants) = self.workers.get_mut(&worker).filter(|grants| !grants.is_absent) {
            grants.is_absent = true;
            let in_flight = &mut self.scheduler.depth.in_flight;
            *in_flight = in_flight.saturating_sub(grants.in_flight);
        }
    }

    /// Records that a worker has stopped using the budget and will send no further reports. Its
    /// remaining requests remain charged, but count neither as requests of their disks nor towards
    /// the device's queue depth. Queued requests that it has reported are granted once more; the
    /// caller must return these grants.
    pub fn handle_worker_ended(&mut self, now: Time, worker: WorkerId) {
        // The depth counts the requests again, so that each of them is subtracted once below.
        self.end_absence(worker);
        let Some(grants) = self.workers.remove(&worker) else { return };
        let before = self.scheduler.in_flight();
        for (slot, requests) in (0..).map(DiskSlot).zip(grants.disks) {
            if requests.granted > 0 {
                self.scheduler.refund_requests(
                    now,
                    slot,
                    requests.granted,
                    RequestCharge::default(),
                );
            }
            self.scheduler.subtract_worker_requests(slot, requests.at_worker);
        }
        let subtracted = before.saturating_sub(self.scheduler.in_flight());
        let in_flight = &mut self.scheduler.depth.in_flight;
        *in_flight = in_flight.saturating_sub(grants.in_flight.saturating_sub(subtracted));
    }

    /// Returns true if requests of the worker count towards the device's queue depth.
    pub fn has_grants(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|grants| grants.in_flight > 0 && !grants.is_absent)
    }

    fn end_absence(&mut self, worker: WorkerId) {
        if let Some(grants) = self.workers.get_mut(&worker).filter(|grants| grants.is_absent) {
            grants.is_absent = false;
            let in_flight = &mut self.scheduler.depth.in_flight;
            *in_flight = in_flight.saturating_add(grants.in_flight);
        }
    }

    /// Counts a request that was granted to a worker.
    fn count(&mut self, worker: WorkerId, disk: DiskSlot) {
        let grants = self.workers.entry(worker).or_default();
        grants.in_flight = grants.in_flight.saturating_add(1);
        if let Some(requests) = grants.of(disk) {
            requests.granted = requests.granted.saturating_add(1);
        }
        if grants.is_absent {
            let in_flight = &mut self.scheduler.depth.in_flight;
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    fn grant(&mut self, processor: WorkerId, disk: DiskSlot) {
        self.count(processor, disk);
        if let Some(last) = self.granted.back_mut() {
            if let GrantKind::QueuedRequests(requests) = &mut last.kind {
                if last.worker == processor && last.disk == disk {
                    *requests += 1;
                    return;
                }
            }
        }
        self.granted.push_back(WorkerGrant {
            worker: processor,
            disk,
            kind: GrantKind::QueuedRequests(1),
        });
    }
}

#[cfg(test)]
mod tests {
    use suimon_quantity::DiskId;

    use super::*;
    use crate::{
        Capacity, Limits, LimitsSource, PolicyId, PolicyKind, PolicySpec, Proposal, RequestTime,
        RequestedGrant, Store, WorkerTime,
    };

    const MS: Duration = Duration::from_millis(1);
    const NOW: Time = Time::from_ns(1 << 40);

    /// Creates a scheduler with two disks of one policy.
    fn scheduler() -> (StoreScheduler, [DiskSlot; 2]) {
        let mut store = Store::new(Capacity::Declared(10_000));
        let mut scheduler = StoreScheduler::new(StoreSpec::default());
        let policy = PolicyId(1);
        let spec = PolicySpec { kind: PolicyKind::Aggregated, limits: Limits::default() };
        let disk = |id| Proposal::SetDisk(DiskId(id), LimitsSource::Policy(policy));
        for change in
            store.apply(&[Proposal::SetPolicy(policy, spec), disk(0), disk(1)], false).unwrap()
        {
            scheduler.apply(NOW, change);
        }
        let slots = [DiskId(0), DiskId(1)].map(|disk| store.slot(disk).unwrap());
        (scheduler, slots)
    }

    fn busy_ms(scheduler: &StoreScheduler, now: Time, slot: DiskSlot) -> u64 {
        scheduler.view(now, slot).unwrap().counters.busy_ns / 1_000_000
    }

    #[test]
    fn busy_time_that_a_worker_has_not_reported_is_not_lost_when_it_becomes_the_only_one() {
        let (mut scheduler, [slot, _]) = scheduler();
        assert_eq!(scheduler.submit(NOW, slot, 4096, 0), Ok(SubmitOutcome::Dispatch));
        let mut borrower = Borrower::new(scheduler.spec.normalization, 64);
        let budget = StoreBudget::from_scheduler(scheduler, NOW, WorkerId(0), &mut borrower);
        let scheduler = budget.into_scheduler(NOW + 50 * MS, borrower);
        assert_eq!(busy_ms(&scheduler, NOW + 50 * MS, slot), 50);
        assert_eq!(busy_ms(&scheduler, NOW + 60 * MS, slot), 60);
    }

    #[test]
    fn busy_times_of_a_policys_disks_are_limited_together() {
        let (scheduler, slots) = scheduler();
        let mut borrower = Borrower::new(scheduler.spec.normalization, 64);
        let mut budget = StoreBudget::from_scheduler(scheduler, NOW, WorkerId(0), &mut borrower);
        let mut report = |now, ms: [u64; 2]| {
            let times = slots.into_iter().zip(ms).map(|(disk, ms)| {
                let time = RequestTime { busy_ns: ms * 1_000_000, ..RequestTime::default() };
                WorkerTime { disk, time, in_flight_change: 0 }
            });
            let report = WorkerReport { times: times.collect(), ..WorkerReport::default() };
            budget.handle_report(now, WorkerId(0), &report);
            busy_ms(&budget.scheduler, now, slots[0])
        };
        assert_eq!(report(NOW + 100 * MS, [20, 60]), 80);
        assert_eq!(report(NOW + 200 * MS, [90, 90]), 180);
    }

    #[test]
    fn ended_workers_are_not_kept() {
        let (scheduler, [disk, _]) = scheduler();
        let mut borrower = Borrower::new(scheduler.spec.normalization, 64);
        let mut budget = StoreBudget::from_scheduler(scheduler, NOW, WorkerId(0), &mut borrower);
        let demand = vec![RequestedGrant { disk, bytes: 4096 }];
        let report = WorkerReport { queued_requests: demand, ..WorkerReport::default() };
        for number in 1..1000 {
            let (worker, now) = (WorkerId(number), NOW + u32::from(number) * MS);
            budget.handle_report(now, worker, &report);
            while budget.poll_grant(now).is_some() {}
            assert!(budget.has_grants(worker) && budget.workers.len() <= 2);
            budget.handle_worker_ended(now, worker);
        }
        budget.handle_worker_ended(NOW + 1000 * MS, WorkerId(0));
        assert!(budget.workers.is_empty());
        assert_eq!(budget.in_flight(), 0);
    }
}
