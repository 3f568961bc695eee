//! Store that several workers use: the sum of their dispatches equals that of a single scheduler,
//! for any delay of messages.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::array::{Dice, Log, SECOND, limits};
use proptest::prelude::*;
use suimon_quantity::{DiskId, Time, WorkerId};
use suimon_storage_qos::{
    Borrower, CATCH_UP_WINDOW, Capacity, Completion, DiskSlot, GrantKind, IoKind, LOAN_IDLE_MAX,
    Limits, LimitsSource, NextAction, Normalization, Proposal, RequestTime, Store, StoreBudget,
    StoreSpec, SubmitOutcome, WorkerGrant, WorkerReport, WorkerTime,
};

/// Maximum delay of a message in ns.
const DELAY_MAX_NS: u64 = 100_000;

struct Worker {
    borrower: Borrower,
    reports: VecDeque<(u64, WorkerReport)>,
    grants: VecDeque<(u64, WorkerGrant)>,
    spent: Vec<WorkerReport>,
    /// Requests of each disk in the order of submission.
    waiting: BTreeMap<u32, VecDeque<u32>>,
}

struct Host {
    budget: StoreBudget,
    store: Store,
    workers: Vec<Worker>,
    now: u64,
    dice: Dice,
    sizes: BTreeMap<u32, u32>,
    next_tag: u32,
    device: Vec<(u64, usize, u32, u32, u64)>,
    logs: BTreeMap<u32, Log>,
    at_once: u64,
    dispatched: u64,
    service_ns: u64,
    /// Sum of the latencies of completed requests in ns, by disk.
    latencies_ns: BTreeMap<u32, u64>,
}

impl Host {
    fn new(workers: usize, disks: &[Limits], seed: u64, service_ns: u64) -> Self {
        let now = 1 << 44;
        let mut store = Store::new(Capacity::Measured(10_000_000));
        let proposals: Vec<Proposal> = (0u32..)
            .zip(disks)
            .map(|(disk, limits)| Proposal::SetDisk(DiskId(disk), LimitsSource::Own(*limits)))
            .collect();
        let mut budget = StoreBudget::new(StoreSpec::default());
        for change in store.apply(&proposals, false).unwrap() {
            budget.apply(Time::from_ns(now), change);
        }
        let worker = |_| {
            let mut borrower = Borrower::new(Normalization::default(), 4096);
            (0u32..).zip(disks).for_each(|(disk, _)| borrower.add(DiskSlot(disk)));
            let waiting = BTreeMap::new();
            let (reports, grants, spent) = (VecDeque::new(), VecDeque::new(), Vec::new());
            Worker { borrower, reports, grants, spent, waiting }
        };
        Self {
            budget,
            store,
            workers: (0..workers).map(worker).collect(),
            now,
            dice: Dice(seed),
            sizes: BTreeMap::new(),
            next_tag: 0,
            device: Vec::new(),
            logs: BTreeMap::new(),
            at_once: 0,
            dispatched: 0,
            service_ns,
            latencies_ns: BTreeMap::new(),
        }
    }

    fn time(&self) -> Time {
        Time::from_ns(self.now)
    }

    fn submit(&mut self, index: usize, disk: u32, bytes: u32) {
        let now = self.time();
        self.next_tag += 1;
        let tag = self.next_tag;
        self.sizes.insert(tag, bytes);
        let worker = &mut self.workers[index];
        match worker.borrower.submit(now, DiskSlot(disk), bytes, tag).unwrap() {
            SubmitOutcome::Queued => worker.waiting.entry(disk).or_default().push_back(tag),
            SubmitOutcome::Dispatch => {
                assert!(worker.waiting.get(&disk).is_none_or(VecDeque::is_empty), "overtaken");
                self.at_once += 1;
                self.send(index, disk, tag);
            }
        }
    }

    fn send(&mut self, index: usize, disk: u32, tag: u32) {
        let bytes = self.sizes.remove(&tag).unwrap();
        let cost = u64::from(Normalization::default().cost(bytes));
        self.dispatched += 1;
        self.logs.entry(disk).or_default().dispatched.push((self.now, cost, bytes.into()));
        let service_ns = self.service_ns + self.dice.below(self.service_ns);
        self.device.push((self.now + service_ns, index, disk, bytes, self.now));
    }

    /// Advances time in small steps, in which messages are delivered, by `span_ns`. Calls `step`
    /// before each.
    fn run(&mut self, span_ns: u64, mut step: impl FnMut(&mut Self)) {
        let deadline = self.now + span_ns;
        while self.now < deadline {
            self.now += 10_000 + self.dice.below(20_000);
            step(self);
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        let (completed, device) = self.device.drain(..).partition(|request| request.0 <= now);
        self.device = device;
        for (_, index, disk, bytes, submitted_ns) in completed {
            let latency = Duration::from_nanos(now - submitted_ns);
            *self.latencies_ns.entry(disk).or_default() += now - submitted_ns;
            let (disk, operation, latency) = (DiskSlot(disk), IoKind::Read, Some(latency));
            let completion = Completion { disk, operation, bytes, latency };
            self.workers[index].borrower.handle_completion(Time::from_ns(now), completion);
        }
        for index in 0..self.workers.len() {
            let time = self.time();
            let delay = self.dice.below(DELAY_MAX_NS);
            let worker = &mut self.workers[index];
            let spent = worker.spent.pop().unwrap_or_default();
            match worker.borrower.poll_report(time, spent) {
                Ok(report) => {
                    let earliest = worker.reports.back().map_or(0, |last| last.0);
                    worker.reports.push_back(((now + delay).max(earliest), report));
                }
                Err(spent) => worker.spent.push(spent),
            }
            while worker.reports.front().is_some_and(|(due, _)| *due <= now) {
                let Some((_, report)) = worker.reports.pop_front() else { break };
                self.budget.handle_report(time, WorkerId(index as u16), &report);
                worker.spent.push(report);
            }
            while worker.grants.front().is_some_and(|(due, _)| *due <= now) {
                let Some((_, grant)) = worker.grants.pop_front() else { break };
                worker.borrower.handle_grant(time, grant);
            }
            while let NextAction::Dispatch { disk, tag } =
                self.workers[index].borrower.poll(Time::from_ns(now))
            {
                let waiting = self.workers[index].waiting.get_mut(&disk.0).unwrap();
                assert_eq!(waiting.pop_front(), Some(tag), "out of order");
                self.send(index, disk.0, tag);
            }
        }
        while let Some(grant) = self.budget.poll_grant(self.time()) {
            let delay = self.dice.below(DELAY_MAX_NS);
            let grants = &mut self.workers[usize::from(grant.worker.0)].grants;
            let earliest = grants.back().map_or(0, |last| last.0);
            grants.push_back(((now + delay).max(earliest), grant));
        }
    }

    /// Returns the permitted excess over a single scheduler in operations: that of loans and of
    /// requests in messages.
    fn late(rate: u64) -> f64 {
        let ns =
            CATCH_UP_WINDOW.as_nanos() as u64 + LOAN_IDLE_MAX.as_nanos() as u64 + 3 * DELAY_MAX_NS;
        (rate * ns) as f64 / SECOND as f64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For any load on any worker, each request is dispatched once and in order, the sum does not
    /// exceed the maximums, and all loans are returned in the end.
    #[test]
    fn workers_together_dispatch_what_one_scheduler_would(
        seed in any::<u64>(),
        workers in 1usize..5,
        maximums in prop::collection::vec(prop_oneof![Just(0u64), 200u64..20_000], 1..5),
        bursts in prop::collection::vec((0usize..5, 0u32..5, 1u32..200_000, 1u32..40, 0u64..20_000_000), 1..60),
    ) {
        let disks: Vec<Limits> = maximums.iter().map(|max| limits(0, *max, 100)).collect();
        let mut host = Host::new(workers, &disks, seed, 200_000);
        let mut submitted = 0;
        for (worker, disk, bytes, count, pause_ns) in bursts {
            for _ in 0..count {
                host.submit(worker % workers, disk % disks.len() as u32, bytes);
                submitted += 1;
            }
            host.run(pause_ns, |_| ());
        }
        // 60 bursts of 40 requests of 25 operations take 300 s at the lowest maximum.
        let mut tenths = 0;
        while host.dispatched < submitted && tenths < 6000 {
            host.run(SECOND / 10, |_| ());
            tenths += 1;
        }
        prop_assert_eq!(host.dispatched, submitted);
        host.run(SECOND / 50, |_| ());
        prop_assert!(host.device.is_empty());
        prop_assert_eq!(host.budget.in_flight(), 0, "lent and never returned");
        for (disk, max) in (0u32..).zip(&maximums).filter(|(_, max)| **max > 0) {
            let Some(log) = host.logs.get(&disk) else { continue };
            let largest = log.dispatched.iter().map(|entry| entry.1).max().unwrap_or_default();
            let excess = log.excess(*max, false);
            let bound = Host::late(*max) + largest as f64 + 1.0;
            prop_assert!(excess <= bound, "disk {disk}: {excess} above {bound}");
        }
    }
}

/// If a limit were divided between workers, the part that one does not use would be lost. No limit
/// is divided here: 1000 IOPS are delivered regardless of which workers have the requests.
#[test]
fn limits_are_not_divided_between_workers() {
    for shares in [[100, 0, 0, 0], [97, 1, 1, 1], [25, 25, 25, 25], [50, 0, 50, 0]] {
        let mut host = Host::new(4, &[limits(0, 1000, 100)], 3, 300_000);
        let (mut outstanding, started_at) = (0u64, host.now);
        host.run(12 * SECOND, |host| {
            while outstanding < host.dispatched + 40 {
                let mut die = host.dice.below(100);
                let index = shares.iter().position(|share| {
                    let is_it = die < *share;
                    die = die.saturating_sub(*share);
                    is_it
                });
                host.submit(index.unwrap_or_default(), 0, 4096);
                outstanding += 1;
            }
        });
        let log = &host.logs[&0];
        for second in 1..7 {
            let (start, end) = (started_at + second * SECOND, started_at + (second + 5) * SECOND);
            let window_entries =
                log.dispatched.iter().filter(|entry| entry.0 >= start && entry.0 < end);
            let dispatched = window_entries.map(|entry| entry.1).sum::<u64>();
            assert!(dispatched.abs_diff(5000) <= 100, "{shares:?}: {dispatched} of 5000");
        }
        assert!(host.store.effective_limits(DiskId(0)).is_some());
    }
}

/// The cost of a report depends on the number of disks with changed requests, and not on the number
/// of disks with requests in flight.
#[test]
fn a_report_lists_only_disks_with_changed_requests() {
    const BUSY: u32 = 200;
    const REPORTS: u64 = 400;
    let start = Time::from_ns(SECOND);
    let time_at = |number: u64| start + Duration::from_micros(10 * number);
    let mut borrower = Borrower::new(Normalization::default(), 4096);
    (0..BUSY).for_each(|disk| borrower.add(DiskSlot(disk)));
    let grant =
        |disk| WorkerGrant { worker: WorkerId(0), disk, kind: GrantKind::QueuedRequests(1) };
    for disk in (0..BUSY).map(DiskSlot) {
        borrower.submit(start, disk, 4096, disk.0).unwrap();
        borrower.handle_grant(start, grant(disk));
    }
    while let NextAction::Dispatch { .. } = borrower.poll(start) {}
    let first = borrower.poll_report(start, WorkerReport::default()).unwrap();
    assert_eq!(first.times.len(), BUSY as usize);
    let (mut in_flight_ns, mut listed) = (0, 0);
    // One disk completes a request and submits the next one before each report.
    for number in 1..=REPORTS {
        let now = time_at(number);
        let (disk, operation, latency) = (DiskSlot(7), IoKind::Read, None);
        borrower.handle_completion(now, Completion { disk, operation, bytes: 4096, latency });
        borrower.submit(now, disk, 4096, 7).unwrap();
        borrower.handle_grant(now, grant(disk));
        assert!(matches!(borrower.poll(now), NextAction::Dispatch { .. }));
        let report = borrower.poll_report(now, WorkerReport::default()).unwrap();
        listed += report.times.len() as u64;
        in_flight_ns +=
            report.times.iter().map(|worker_time| worker_time.time.in_flight_ns).sum::<u64>();
    }
    assert_eq!(listed, REPORTS, "one disk changes between two reports");
    let last = borrower.next_deadline().unwrap();
    let last_report = borrower.poll_report(last, WorkerReport::default()).unwrap();
    assert_eq!(last_report.times.len(), BUSY as usize);
    in_flight_ns +=
        last_report.times.iter().map(|worker_time| worker_time.time.in_flight_ns).sum::<u64>();
    assert_eq!(in_flight_ns, u64::from(BUSY) * last.ns_since(start), "no time is lost");
}

/// The changes in reports are added, so that their order and a negative sum do not matter.
#[test]
fn requests_in_flight_are_counted_in_any_order_of_reports() {
    let now = Time::from_ns(SECOND);
    let mut budget = Host::new(1, &[limits(0, 0, 1)], 1, 100_000).budget;
    let report = |in_flight_change| {
        let worker_time =
            WorkerTime { disk: DiskSlot(0), time: RequestTime::default(), in_flight_change };
        WorkerReport { times: vec![worker_time], ..WorkerReport::default() }
    };
    for (change, in_flight) in [(-1, 0), (3, 2), (-2, 0)] {
        budget.handle_report(now, WorkerId(0), &report(change));
        assert_eq!(budget.in_device(), in_flight);
        assert_eq!(budget.view(now, DiskSlot(0)).unwrap().in_flight, in_flight);
    }
}

/// A disk that submits requests repeatedly gets loans. Its requests are then dispatched at once
/// while no other disk has demand.
#[test]
fn loans_are_dispatched_at_once() {
    let mut host = Host::new(2, &[Limits::default()], 5, 100_000);
    host.run(SECOND / 5, |host| {
        if host.dice.below(5) == 0 {
            host.submit(1, 0, 4096);
        }
    });
    assert!(host.at_once * 2 > host.dispatched, "{} of {}", host.at_once, host.dispatched);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A disk that is removed while its requests are on several workers leaves no charges: its
    /// requests and loans are returned, and the next disk in its slot has its full share.
    #[test]
    fn a_removed_disk_loses_no_capacity(
        seed in any::<u64>(),
        max in prop_oneof![Just(0u64), 200u64..5000],
        counts in prop::collection::vec(1u32..60, 3),
        pause_ns in 0u64..2_000_000,
        late in any::<bool>(),
    ) {
        let mut host = Host::new(3, &[limits(0, max, 100)], seed, 200_000);
        for (worker, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                host.submit(worker, 0, 16_384);
            }
        }
        host.run(pause_ns, |_| ());
        let changes = host.store.apply(&[Proposal::RemoveDisk(DiskId(0))], false).unwrap();
        changes.iter().for_each(|change| host.budget.apply(host.time(), *change));
        if late {
            host.run(300_000, |_| ());
        }
        for worker in &mut host.workers {
            let waiting = worker.waiting.remove(&0).unwrap_or_default();
            let returned: Vec<u32> =
                std::iter::from_fn(|| worker.borrower.withdraw_request(DiskSlot(0))).collect();
            prop_assert_eq!(returned, Vec::from(waiting));
        }
        host.run(SECOND / 20, |_| ());
        prop_assert!(host.device.is_empty());
        prop_assert_eq!(host.budget.in_flight(), 0, "lent and never returned");
        let new = Proposal::SetDisk(DiskId(9), LimitsSource::Own(limits(0, 1000, 100)));
        let changes = host.store.apply(&[new], false).unwrap();
        changes.iter().for_each(|change| host.budget.apply(host.time(), *change));
        host.logs.clear();
        for number in 0..400 {
            host.submit(number % 3, 0, 8192);
        }
        host.run(SECOND / 10, |_| ());
        let dispatched = host.logs[&0].dispatched.len();
        prop_assert!((100..=124).contains(&dispatched), "{dispatched} in a tenth of a second");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Little's law across workers: the time in flight that workers report is the sum of the
    /// latencies of their requests; loans are not requests.
    #[test]
    fn reported_time_in_flight_is_the_sum_of_latencies(
        seed in any::<u64>(),
        workers in 1usize..4,
        bursts in prop::collection::vec((0usize..4, 0u32..2, 1u32..20, 0u64..80_000_000), 1..30),
    ) {
        let disks = [Limits::default(), limits(0, 2000, 100)];
        let mut host = Host::new(workers, &disks, seed, 400_000);
        host.budget.observe(host.time());
        let start = host.now;
        for (worker, disk, count, pause_ns) in bursts {
            for _ in 0..count {
                host.submit(worker % workers, disk, 4096);
            }
            host.run(pause_ns, |_| ());
        }
        host.run(SECOND, |_| ());
        prop_assert!(host.device.is_empty());
        for disk in 0..2 {
            let view = host.budget.view(host.time(), DiskSlot(disk)).unwrap();
            let expected = host.latencies_ns.get(&disk).copied().unwrap_or_default();
            let time = view.short.time;
            prop_assert_eq!((time.in_flight_ns, view.in_flight), (expected, 0));
            prop_assert!(time.device_ns == expected && time.own_latency_ns <= expected);
            prop_assert!(view.counters.busy_ns <= host.now - start);
            prop_assert!(view.counters.busy_ns <= time.busy_ns);
        }
        prop_assert_eq!(host.budget.in_device(), 0);
    }
}
