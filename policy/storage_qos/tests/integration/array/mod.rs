//! Simulated store in virtual time: a model of a disk array, disks with a load, and the scheduler
//! between them.
#![allow(dead_code, reason = "each test uses a part")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use suimon_quantity::{ByteRate, DiskId, Iops, Time, TimedRateLimit};
use suimon_storage_qos::{
    Capacity, ConfigStep, DiskSlot, IoKind, Limits, LimitsSource, NextAction, Normalization,
    PolicyId, PolicySpec, Proposal, SAMPLE_INTERVAL, Store, StoreEvent, StoreScheduler, StoreSpec,
    SubmitOutcome, Weight,
};

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn limits(min: u64, max: u64, weight: u16) -> Limits {
    Limits {
        min_iops: Iops::new(min),
        max_iops: Iops::new(max),
        weight: Weight::new(weight).unwrap(),
        ..Limits::default()
    }
}

pub(crate) fn bandwidth(bytes_per_second: u64) -> Option<ByteRate> {
    ByteRate::new(bytes_per_second)
}

/// Deterministic pseudo-random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let high = self.0 >> 33;
        high % bound.max(1)
    }
}

/// Model of a device that serves a number of requests concurrently, and further ones in order of
/// arrival.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) servers: usize,
    /// Time of a request in ns, regardless of its size.
    pub(crate) fixed_ns: u64,
    /// Additional time in ns for each operation of a request.
    pub(crate) per_operation_ns: u64,
    /// Variation of the time of a request in percent.
    pub(crate) noise_percent: u64,
}

impl Array {
    pub(crate) fn service_ns(&self, cost: u64, dice: &mut Dice) -> u64 {
        let mean = self.fixed_ns + self.per_operation_ns * cost;
        let spread = mean * self.noise_percent / 100;
        mean - spread + dice.below(2 * spread + 1)
    }

    /// Returns the throughput in operations per second with requests of `cost` operations.
    pub(crate) fn capability(&self, cost: u64) -> u64 {
        let per_second = self.servers as u64 * SECOND * cost;
        per_second / (self.fixed_ns + self.per_operation_ns * cost)
    }
}

/// Load that the VM of a disk generates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) bytes: u32,
    /// Maximum number of outstanding requests.
    pub(crate) depth: u32,
    /// Time between requests in ns; 0 for as many as the queue depth permits.
    pub(crate) every_ns: u64,
}

impl Load {
    pub(crate) fn full(bytes: u32, depth: u32) -> Self {
        Self { bytes, depth, every_ns: 0 }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Dispatches: time in ns, operations and bytes.
    pub(crate) dispatched: Vec<(u64, u64, u64)>,
    pub(crate) completed: Vec<(u64, u64)>,
}

impl Log {
    /// Returns the completed operations per second in a time window.
    pub(crate) fn iops(&self, from_ns: u64, until_ns: u64) -> f64 {
        let in_interval = |entry: &&(u64, u64)| entry.0 >= from_ns && entry.0 < until_ns;
        let sum: u64 = self.completed.iter().filter(in_interval).map(|entry| entry.1).sum();
        sum as f64 * SECOND as f64 / (until_ns - from_ns) as f64
    }

    /// Returns the largest excess of the dispatched amount over `rate` in any window: in bytes if
    /// `bytes`, otherwise in operations.
    pub(crate) fn excess(&self, rate: u64, bytes: bool) -> f64 {
        let (mut sum, mut min, mut max) = (0.0f64, f64::MAX, 0.0f64);
        for (time, cost, size) in &self.dispatched {
            let permitted = rate as f64 * *time as f64 / SECOND as f64;
            min = min.min(sum - permitted);
            sum += if bytes { *size } else { *cost } as f64;
            max = max.max(sum - permitted - min);
        }
        max
    }
}

#[derive(Debug)]
struct Client {
    load: Option<Load>,
    outstanding: u32,
    next_ns: u64,
    /// Expected order of dispatch of the requests.
    submitted: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AgendaEvent {
    Complete { disk: u32, since: u64, bytes: u32 },
    Ask { disk: u32 },
}

pub(crate) struct Rig {
    pub(crate) store: Store,
    pub(crate) scheduler: StoreScheduler,
    pub(crate) array: Array,
    pub(crate) now: u64,
    pub(crate) logs: BTreeMap<u32, Log>,
    pub(crate) events: Vec<(u64, StoreEvent)>,
    /// Maximum delay of timers in ns.
    pub(crate) late_ns: u64,
    clients: BTreeMap<u32, Client>,
    agenda: BinaryHeap<Reverse<(u64, u64, AgendaEvent)>>,
    number: u64,
    queue: VecDeque<(u32, u64, u32)>,
    serving: usize,
    requests: BTreeMap<u32, u32>,
    next_tag: u32,
    observed: u64,
    wake: Option<u64>,
    dice: Dice,
}

impl Rig {
    pub(crate) fn new(array: Array, capability: u64) -> Self {
        Self::with_spec(array, capability, StoreSpec::default())
    }

    pub(crate) fn with_spec(array: Array, capability: u64, spec: StoreSpec) -> Self {
        let mut scheduler = StoreScheduler::new(spec);
        let mut store = Store::default();
        // Clocks of hosts do not start at zero.
        let now = 1 << 44;
        scheduler.apply(Time::from_ns(now), store.set_capacity(Capacity::Measured(capability)));
        Self {
            store,
            scheduler,
            array,
            now,
            logs: BTreeMap::new(),
            events: Vec::new(),
            late_ns: 0,
            clients: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            number: 0,
            queue: VecDeque::new(),
            serving: 0,
            requests: BTreeMap::new(),
            next_tag: 0,
            observed: now,
            wake: None,
            dice: Dice(7),
        }
    }

    pub(crate) fn propose(&mut self, proposals: &[Proposal], force: bool) {
        for change in self.store.apply(proposals, force).unwrap() {
            let lost = self.scheduler.apply(Time::from_ns(self.now), change);
            assert!(lost.is_empty());
        }
        self.pump();
    }

    /// Sets the cap of all disks together.
    pub(crate) fn cap(&mut self, cap: Option<TimedRateLimit>) {
        self.scheduler.apply(Time::from_ns(self.now), ConfigStep::SetCap(cap));
        self.pump();
    }

    pub(crate) fn set(&mut self, disk: u32, limits: Limits) {
        self.propose(&[Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits))], false);
    }

    pub(crate) fn set_policy(&mut self, policy: u32, spec: PolicySpec, disks: &[u32]) {
        let mut proposals = vec![Proposal::SetPolicy(PolicyId(policy), spec)];
        let limits_source = LimitsSource::Policy(PolicyId(policy));
        proposals.extend(disks.iter().map(|disk| Proposal::SetDisk(DiskId(*disk), limits_source)));
        self.propose(&proposals, false);
    }

    /// Sets the load of a disk; `None`: idle.
    pub(crate) fn load(&mut self, disk: u32, load: Option<Load>) {
        let now = self.now;
        self.logs.entry(disk).or_default();
        let client = self.clients.entry(disk).or_insert(Client {
            load: None,
            outstanding: 0,
            next_ns: now,
            submitted: VecDeque::new(),
        });
        client.load = load;
        client.next_ns = now;
        self.ask(disk);
        self.pump();
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let deadline = self.now + span.as_nanos() as u64;
        loop {
            let observe = self.observed + SAMPLE_INTERVAL.as_nanos() as u64;
            let event = self.agenda.peek().map(|entry| entry.0.0);
            let next = [event, self.wake, Some(observe)].into_iter().flatten().min().unwrap();
            if next > deadline {
                break;
            }
            self.now = self.now.max(next);
            if self.wake.is_some_and(|wake| wake <= self.now) {
                self.wake = None;
            }
            if self.now >= observe {
                self.observed = observe;
                for event in self.scheduler.observe(Time::from_ns(self.now)) {
                    self.events.push((self.now, event));
                }
            }
            while self.agenda.peek().is_some_and(|entry| entry.0.0 <= self.now) {
                let Some(Reverse((_, _, entry))) = self.agenda.pop() else { break };
                match entry {
                    AgendaEvent::Complete { disk, since, bytes } => {
                        self.complete(disk, since, bytes);
                    }
                    AgendaEvent::Ask { disk } => self.ask(disk),
                }
            }
            self.pump();
        }
        self.now = deadline;
    }

    fn schedule(&mut self, time_ns: u64, event: AgendaEvent) {
        self.number += 1;
        self.agenda.push(Reverse((time_ns, self.number, event)));
    }

    fn ask(&mut self, disk: u32) {
        let slot = self.store.slot(DiskId(disk)).unwrap();
        let now = self.now;
        loop {
            let client = self.clients.get_mut(&disk).unwrap();
            let Some(load) = client.load else { return };
            if client.outstanding >= load.depth || client.next_ns > now {
                return;
            }
            client.outstanding += 1;
            self.next_tag += 1;
            let tag = self.next_tag;
            if load.every_ns > 0 {
                client.next_ns = now + load.every_ns;
                let next = client.next_ns;
                self.schedule(next, AgendaEvent::Ask { disk });
            }
            self.requests.insert(tag, load.bytes);
            match self.scheduler.submit(Time::from_ns(now), slot, load.bytes, tag).unwrap() {
                SubmitOutcome::Dispatch => {
                    assert!(self.clients[&disk].submitted.is_empty(), "overtaken");
                    self.send(disk, tag);
                }
                SubmitOutcome::Queued => {
                    self.clients.get_mut(&disk).unwrap().submitted.push_back(tag);
                }
            }
        }
    }

    fn pump(&mut self) {
        loop {
            match self.scheduler.poll(Time::from_ns(self.now)) {
                NextAction::Dispatch { disk, tag } => {
                    let DiskId(disk) = self.scheduler.disk(disk).unwrap();
                    let client = self.clients.get_mut(&disk).unwrap();
                    assert_eq!(client.submitted.pop_front(), Some(tag), "out of order");
                    self.send(disk, tag);
                }
                NextAction::WaitUntil(deadline) => {
                    assert!(deadline.as_ns() > self.now, "a wait that does not end");
                    let delay = self.dice.below(self.late_ns + 1);
                    self.wake = Some(deadline.as_ns() + delay);
                    return;
                }
                NextAction::Idle => {
                    self.wake = None;
                    return;
                }
            }
        }
    }

    fn send(&mut self, disk: u32, tag: u32) {
        let bytes = self.requests.remove(&tag).unwrap();
        let cost = u64::from(Normalization::default().cost(bytes));
        let log = self.logs.get_mut(&disk).unwrap();
        log.dispatched.push((self.now, cost, bytes.into()));
        self.queue.push_back((disk, self.now, bytes));
        self.serve();
    }

    fn serve(&mut self) {
        while self.serving < self.array.servers {
            let Some((disk, since, bytes)) = self.queue.pop_front() else { return };
            self.serving += 1;
            let cost = u64::from(Normalization::default().cost(bytes));
            let service_ns = self.array.service_ns(cost, &mut self.dice).max(1);
            self.schedule(self.now + service_ns, AgendaEvent::Complete { disk, since, bytes });
        }
    }

    fn complete(&mut self, disk: u32, since: u64, bytes: u32) {
        self.serving -= 1;
        self.serve();
        let slot = self.store.slot(DiskId(disk)).unwrap();
        let latency = Duration::from_nanos(self.now - since);
        self.scheduler.handle_completion(
            Time::from_ns(self.now),
            slot,
            (IoKind::Read, bytes),
            latency,
        );
        let cost = u64::from(Normalization::default().cost(bytes));
        self.logs.get_mut(&disk).unwrap().completed.push((self.now, cost));
        let client = self.clients.get_mut(&disk).unwrap();
        client.outstanding -= 1;
        if client.load.is_some_and(|load| load.every_ns == 0) {
            // The VM receives the completion and submits the next request shortly afterwards.
            client.next_ns = self.now + 2000;
            self.schedule(self.now + 2000, AgendaEvent::Ask { disk });
        } else {
            self.ask(disk);
        }
    }

    pub(crate) fn iops(&self, disk: u32, from_ns: u64) -> f64 {
        self.logs[&disk].iops(from_ns, self.now)
    }

    pub(crate) fn all_iops(&self, from_ns: u64) -> f64 {
        self.logs.keys().map(|disk| self.iops(*disk, from_ns)).sum()
    }
}

/// Returns the ideal throughput of each disk if the array delivers `capacity`: in proportion to its
/// weight, at least its minimum, and at most its maximum or demand.
pub(crate) fn ideal(capacity: f64, disks: &[(f64, f64, f64)]) -> Vec<f64> {
    let shares = |level: f64| {
        let share_of = |(weight, min, max): &(f64, f64, f64)| (level * weight).max(*min).min(*max);
        disks.iter().map(share_of).collect::<Vec<f64>>()
    };
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..200 {
        let level = (low + high) / 2.0;
        if shares(level).iter().sum::<f64>() > capacity { high = level } else { low = level }
    }
    shares(low)
}

/// Returns the numbers in ascending order, each once.
pub(crate) fn distinct(numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
    numbers.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

pub(crate) fn slot(number: u32) -> DiskSlot {
    DiskSlot(number)
}
