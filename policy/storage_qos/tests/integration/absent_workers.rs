//! Workers that stop reporting to the budget of a store.

use std::time::Duration;

use crate::array::limits;
use suimon_quantity::{DiskId, Time, WorkerId};
use suimon_storage_qos::{
    Borrower, Capacity, Completion, DiskSlot, GRANT_AGE_MAX, GrantKind, IoKind, Limits,
    LimitsSource, NextAction, Normalization, Proposal, ReturnedGrant, Store, StoreBudget,
    StoreSpec, SubmitOutcome, WorkerGrant, WorkerReport,
};

const NOW: Time = Time::from_ns(1 << 44);
const DISKS: [DiskSlot; 2] = [DiskSlot(0), DiskSlot(1)];
const WORKERS: [WorkerId; 2] = [WorkerId(0), WorkerId(1)];

/// Budget of a device with a queue depth of 4, and two workers with a disk each.
struct Host {
    budget: StoreBudget,
    borrowers: [Borrower; 2],
}

impl Host {
    fn new(limits: Limits) -> Self {
        let spec = StoreSpec { depth_min: 4, depth_max: 4, ..StoreSpec::default() };
        let mut budget = StoreBudget::new(spec);
        let mut store = Store::new(Capacity::Measured(10_000_000));
        let disk = |disk| Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits));
        for change in store.apply(&[disk(0), disk(1)], false).unwrap() {
            budget.apply(NOW, change);
        }
        let borrower = || {
            let mut borrower = Borrower::new(Normalization::default(), 64);
            DISKS.into_iter().for_each(|disk| borrower.add(disk));
            borrower
        };
        Self { budget, borrowers: [borrower(), borrower()] }
    }

    /// Submits requests of the disk of worker `index`, and reports them to the budget.
    fn submit(&mut self, now: Time, index: usize, requests: u32) {
        for tag in 0..requests {
            let submitted = self.borrowers[index].submit(now, DISKS[index], 8192, tag).unwrap();
            assert_eq!(submitted, SubmitOutcome::Queued);
        }
        self.report(now, index);
    }

    fn report(&mut self, now: Time, index: usize) {
        if let Ok(report) = self.borrowers[index].poll_report(now, WorkerReport::default()) {
            self.budget.handle_report(now, WORKERS[index], &report);
        }
    }

    fn grants(&mut self, now: Time) -> Vec<WorkerGrant> {
        std::iter::from_fn(|| self.budget.poll_grant(now)).collect()
    }

    /// Dispatches the granted requests of worker `index`. Returns their number.
    fn dispatch(&mut self, now: Time, index: usize) -> u32 {
        let mut dispatched = 0;
        while let NextAction::Dispatch { .. } = self.borrowers[index].poll(now) {
            dispatched += 1;
        }
        dispatched
    }

    fn complete(&mut self, now: Time, index: usize, requests: u32) {
        let (disk, operation, latency) = (DISKS[index], IoKind::Read, None);
        for _ in 0..requests {
            let completion = Completion { disk, operation, bytes: 8192, latency };
            self.borrowers[index].handle_completion(now, completion);
        }
        self.report(now, index);
    }
}

fn waiting(grants: &[WorkerGrant], worker: usize) -> u32 {
    let of_it = grants.iter().filter(|grant| grant.worker == WORKERS[worker]);
    of_it
        .map(|grant| if let GrantKind::QueuedRequests(bytes) = grant.kind { bytes } else { 0 })
        .sum()
}

#[test]
fn requests_of_an_absent_worker_do_not_occupy_the_device() {
    let mut host = Host::new(Limits::default());
    // The workers have no loans.
    host.borrowers.iter_mut().for_each(|borrower| borrower.set_draining(true));
    host.submit(NOW, 0, 6);
    let grants = host.grants(NOW);
    assert_eq!(waiting(&grants, 0), 4);
    grants.into_iter().for_each(|grant| host.borrowers[0].handle_grant(NOW, grant));
    assert_eq!(host.dispatch(NOW, 0), 4);
    host.submit(NOW, 1, 6);
    assert_eq!(host.grants(NOW), []);
    assert!(host.budget.has_grants(WORKERS[0]) && !host.budget.has_grants(WORKERS[1]));
    host.budget.handle_worker_absent(WORKERS[0]);
    assert!(!host.budget.has_grants(WORKERS[0]));
    // The other worker has the device for itself. Queued requests of the absent worker are granted,
    // too, and do not count towards the depth.
    let now = NOW + Duration::from_millis(1);
    let grants = host.grants(now);
    assert_eq!((waiting(&grants, 0), waiting(&grants, 1)), (2, 4));
    assert_eq!(host.budget.in_flight(), 10);
    for grant in grants {
        host.borrowers[usize::from(grant.worker.0)].handle_grant(now, grant);
    }
    assert_eq!(host.dispatch(now, 1), 4);
    // A second notice changes nothing.
    host.budget.handle_worker_absent(WORKERS[0]);
    assert_eq!(host.budget.in_flight(), 10);
    // The worker returns. Its requests are counted again until they complete.
    assert_eq!(host.dispatch(now, 0), 2);
    host.complete(now, 0, 1);
    assert!(host.budget.has_grants(WORKERS[0]));
    assert_eq!(host.budget.in_flight(), 9);
    host.complete(now, 1, 4);
    assert_eq!(host.grants(now), [], "5 requests of the first worker are in the device");
    host.complete(now, 0, 2);
    assert_eq!(waiting(&host.grants(now), 1), 1);
}

#[test]
fn a_late_grant_permits_one_request_and_the_others_are_refunded_and_requested_again() {
    let mut host = Host::new(limits(0, 1000, 100));
    host.submit(NOW, 0, 64);
    let (mut now, mut granted) = (NOW, Vec::new());
    // The worker does not fetch its grants for a time.
    while now < NOW + 2 * GRANT_AGE_MAX {
        granted.extend(host.grants(now));
        now = now + Duration::from_millis(1);
    }
    let count = waiting(&granted, 0);
    assert_eq!(count, 4, "the depth limits them");
    granted.into_iter().for_each(|grant| host.borrowers[0].handle_late_grant(now, grant));
    assert_eq!(host.dispatch(now, 0), 1);
    let report = host.borrowers[0].poll_report(now, WorkerReport::default()).unwrap();
    let returned =
        |units: fn(&ReturnedGrant) -> u32| report.returned_grants.iter().map(units).sum::<u32>();
    assert_eq!((returned(|entry| entry.requests), returned(|entry| entry.cost)), (3, 3));
    assert_eq!(report.queued_requests.len(), 3);
    host.budget.handle_report(now, WORKERS[0], &report);
    let (mut repeated, mut in_flight) = (0, 1);
    for _ in 0..100 {
        for grant in host.grants(now) {
            host.borrowers[0].handle_grant(now, grant);
        }
        in_flight += host.dispatch(now, 0);
        repeated += in_flight;
        host.complete(now, 0, std::mem::take(&mut in_flight));
        now = now + Duration::from_millis(1);
    }
    assert_eq!(
        (repeated, host.borrowers[0].queued_count(DISKS[0])),
        (64, 0),
        "each is dispatched once"
    );
}

/// A worker fetches its grants so rarely that all of them are late.
#[test]
fn a_worker_with_late_grants_only_dispatches_a_request_of_each_disk_per_fetch() {
    let mut host = Host::new(limits(0, 100, 100));
    host.submit(NOW, 0, 32);
    let mut now = NOW;
    host.grants(now).into_iter().for_each(|grant| host.borrowers[0].handle_grant(now, grant));
    let first = host.dispatch(now, 0);
    host.complete(now, 0, first);
    for _ in 0..8 {
        let mut granted = Vec::new();
        for _ in 0..30 {
            now = now + Duration::from_millis(1);
            granted.extend(host.grants(now));
        }
        now = now + 2 * GRANT_AGE_MAX;
        granted.into_iter().for_each(|grant| host.borrowers[0].handle_late_grant(now, grant));
        let dispatched = host.dispatch(now, 0);
        assert!(dispatched >= 1);
        host.complete(now, 0, dispatched);
    }
}

#[test]
fn a_loan_is_refunded_when_it_is_returned_however_long_it_was_held() {
    for age in [GRANT_AGE_MAX, 2 * GRANT_AGE_MAX] {
        let mut host = Host::new(Limits::default());
        host.submit(NOW, 0, 1);
        host.grants(NOW).into_iter().for_each(|grant| host.borrowers[0].handle_grant(NOW, grant));
        assert_eq!(host.dispatch(NOW, 0), 1);
        host.complete(NOW, 0, 1);
        let loans = host.grants(NOW);
        assert!(loans.iter().any(|grant| grant.kind == GrantKind::Loan(8192)), "{loans:?}");
        loans.into_iter().for_each(|grant| host.borrowers[0].handle_grant(NOW, grant));
        let report = host.borrowers[0].poll_report(NOW + age, WorkerReport::default()).unwrap();
        let returned: u32 = report.returned_grants.iter().map(|entry| entry.requests).sum();
        let refunded: u32 = report.returned_grants.iter().map(|entry| entry.cost).sum();
        assert!(returned > 0 && refunded == returned, "{report:?}");
        host.budget.handle_report(NOW + age, WORKERS[0], &report);
        assert_eq!(host.budget.in_flight(), 0);
    }
}

/// A worker ends with requests in flight and queued ones, without a report.
#[test]
fn requests_of_a_worker_that_has_ended_do_not_occupy_the_device() {
    for is_absent in [false, true] {
        let mut host = Host::new(Limits::default());
        host.borrowers.iter_mut().for_each(|borrower| borrower.set_draining(true));
        host.submit(NOW, 0, 4);
        host.submit(NOW, 1, 6);
        assert_eq!(waiting(&host.grants(NOW), 0), 4);
        if is_absent {
            host.budget.handle_worker_absent(WORKERS[0]);
        }
        host.budget.handle_worker_ended(NOW, WORKERS[0]);
        let grants = host.grants(NOW);
        assert_eq!((waiting(&grants, 1), host.budget.in_flight()), (4, 4), "{is_absent}");
    }
}

/// The requests in flight of a disk include those at its worker, also those that the worker has
/// taken over, until the worker ends.
#[test]
fn disks_of_a_worker_that_has_ended_have_no_requests() {
    for is_absent in [false, true] {
        let mut host = Host::new(Limits::default());
        host.borrowers.iter_mut().for_each(|borrower| borrower.set_draining(true));
        host.submit(NOW, 0, 3);
        for grant in host.grants(NOW) {
            host.borrowers[0].handle_grant(NOW, grant);
        }
        assert_eq!(host.dispatch(NOW, 0), 3);
        let now = NOW + Duration::from_millis(200);
        host.report(now, 0);
        let in_flight = |host: &Host, now| host.budget.view(now, DISKS[0]).unwrap().in_flight;
        assert_eq!((in_flight(&host, now), host.budget.in_device()), (3, 3));
        host.complete(now, 0, 1);
        if is_absent {
            host.budget.handle_worker_absent(WORKERS[0]);
        }
        host.budget.handle_worker_ended(now, WORKERS[0]);
        assert_eq!((in_flight(&host, now), host.budget.in_device()), (0, 0), "{is_absent}");
        assert_eq!(host.budget.in_flight(), 0, "{is_absent}");
        // The flow is idle: its counters of busy time do not increase.
        let busy = |host: &Host, now| host.budget.view(now, DISKS[0]).unwrap().counters.busy_ns;
        let before = busy(&host, now);
        assert_eq!(busy(&host, now + Duration::from_secs(1)), before, "{is_absent}");
        // Another worker can use the disk and the whole device.
        for tag in 0..4 {
            host.borrowers[1].submit(now, DISKS[0], 8192, tag).unwrap();
        }
        host.report(now, 1);
        assert_eq!((waiting(&host.grants(now), 1), host.budget.in_flight()), (4, 4));
        // A second notice of the end changes nothing.
        host.budget.handle_worker_ended(now, WORKERS[0]);
        assert_eq!(host.budget.in_flight(), 4);
    }
}
