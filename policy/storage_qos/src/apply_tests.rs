use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use proptest::prelude::*;
use suimon_quantity::{ByteRate, DiskId, Iops, Time};

use crate::{
    Burst, Capacity, ConfigStep, DiskSlot, FlowSlot, Limits, LimitsOwner, LimitsSource, NextAction,
    PolicyId, PolicyKind, PolicySpec, Proposal, Store, StoreScheduler, StoreSpec, SubmitError,
    SubmitOutcome, Weight,
};

#[derive(Clone, Copy, Debug)]
enum Op {
    Propose(Proposal),
    Submit(u32, u32),
    Complete(usize, u64),
    Poll,
    Observe,
    Pass(u64),
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let rate = || prop::option::of(prop_oneof![1u64..5000, Just(1), Just(crate::IOPS_MAX)]);
    let width = prop::option::of(prop_oneof![Just(1), 1u64..1 << 40, Just(u64::MAX)]);
    let burst = prop::option::of((1u64..10_000, 0u32..5000));
    (rate(), rate(), width, 1u16..10_001, burst).prop_map(|(min, max, width, weight, burst)| {
        Limits {
            min_iops: min.and_then(Iops::new),
            max_iops: max.and_then(Iops::new),
            max_bandwidth: width.and_then(ByteRate::new),
            weight: Weight::new(weight).unwrap(),
            burst: burst
                .and_then(|(iops, seconds)| Iops::new(iops).map(|iops| Burst { iops, seconds })),
        }
    })
}

fn any_proposal() -> impl Strategy<Value = Proposal> {
    let kind = prop_oneof![Just(PolicyKind::Dedicated), Just(PolicyKind::Aggregated)];
    let policy = || (0u32..3).prop_map(PolicyId);
    let disk = || (0u32..5).prop_map(DiskId);
    prop_oneof![
        3 => (disk(), any_limits())
            .prop_map(|(disk, limits)| Proposal::SetDisk(disk, LimitsSource::Own(limits))),
        2 => (disk(), policy())
            .prop_map(|(disk, policy)| Proposal::SetDisk(disk, LimitsSource::Policy(policy))),
        1 => disk().prop_map(Proposal::RemoveDisk),
        2 => (policy(), kind, any_limits())
            .prop_map(|(policy, kind, limits)| Proposal::SetPolicy(policy, PolicySpec { kind, limits })),
        1 => policy().prop_map(Proposal::RemovePolicy),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => any_proposal().prop_map(Op::Propose),
        6 => (0u32..5, prop_oneof![1u32..200_000, Just(u32::MAX), Just(0)])
            .prop_map(|(disk, bytes)| Op::Submit(disk, bytes)),
        4 => (any::<prop::sample::Index>(), 0u64..1 << 40)
            .prop_map(|(index, latency)| Op::Complete(index.index(64), latency)),
        4 => Just(Op::Poll),
        1 => Just(Op::Observe),
        2 => prop_oneof![0u64..10_000_000, 0u64..20_000_000_000].prop_map(Op::Pass),
    ]
}

/// Scheduler under test, and the state that it must have.
struct Model {
    store: Store,
    scheduler: StoreScheduler,
    now: Time,
    waiting: BTreeMap<DiskId, VecDeque<u32>>,
    /// Slot and bytes of the requests in flight.
    device: Vec<(DiskSlot, u32)>,
    sizes: Vec<u32>,
}

impl Model {
    fn new(waiting_max: u32) -> Self {
        let spec = StoreSpec { waiting_max, depth_max: 8, ..StoreSpec::default() };
        Self {
            store: Store::new(Capacity::Declared(20_000)),
            scheduler: StoreScheduler::new(spec),
            now: Time::from_ns(1 << 42),
            waiting: BTreeMap::new(),
            device: Vec::new(),
            sizes: Vec::new(),
        }
    }

    fn propose(&mut self, proposal: Proposal) {
        let Ok(changes) = self.store.apply(&[proposal], true) else { return };
        for change in changes {
            let disk = match change {
                ConfigStep::RemoveDisk(slot) => self.scheduler.disk(slot),
                _ => None,
            };
            let returned = self.scheduler.apply(self.now, change);
            let waited = disk.and_then(|disk| self.waiting.remove(&disk)).unwrap_or_default();
            assert_eq!(returned, Vec::from(waited), "those that waited, in order");
        }
    }

    fn submit(&mut self, disk: DiskId, bytes: u32) {
        let Some(slot) = self.store.slot(disk) else { return };
        let tag = self.sizes.len() as u32;
        self.sizes.push(bytes);
        let waiting = self.waiting.entry(disk).or_default();
        match self.scheduler.submit(self.now, slot, bytes, tag) {
            Ok(SubmitOutcome::Dispatch) => {
                assert!(waiting.is_empty(), "overtaken");
                self.device.push((slot, bytes));
            }
            Ok(SubmitOutcome::Queued) => waiting.push_back(tag),
            Err(error) => assert_eq!(error, SubmitError::Full),
        }
    }

    /// Polls once. Returns true if a request was dispatched.
    fn poll(&mut self) -> bool {
        match self.scheduler.poll(self.now) {
            NextAction::Dispatch { disk, tag } => {
                let id = self.scheduler.disk(disk).unwrap();
                assert_eq!(self.waiting.get_mut(&id).unwrap().pop_front(), Some(tag));
                self.device.push((disk, self.sizes[tag as usize]));
                assert!(self.device.len() <= 8, "too deep");
                true
            }
            NextAction::WaitUntil(deadline) => {
                assert!(deadline > self.now, "a wait that does not end");
                false
            }
            NextAction::Idle => false,
        }
    }

    fn complete(&mut self, index: usize, latency: u64) {
        if self.device.is_empty() {
            return;
        }
        let (slot, bytes) = self.device.remove(index % self.device.len());
        self.scheduler.handle_completion(
            self.now,
            slot,
            (crate::IoKind::Read, bytes),
            Duration::from_nanos(latency),
        );
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Propose(proposal) => self.propose(proposal),
            Op::Submit(disk, bytes) => self.submit(DiskId(disk), bytes),
            Op::Complete(index, latency) => self.complete(index, latency),
            Op::Poll => {
                self.poll();
            }
            Op::Observe => {
                self.scheduler.observe(self.now);
            }
            Op::Pass(ns) => self.now = self.now + Duration::from_nanos(ns),
        }
        assert_eq!(self.scheduler.in_flight() as usize, self.device.len());
        let waiting: usize = self.waiting.values().map(VecDeque::len).sum();
        let slots = self.store.disks().filter_map(|disk| self.store.slot(disk));
        let views = slots.filter_map(|slot| self.scheduler.view(self.now, slot));
        assert_eq!(views.map(|view| view.waiting as usize).sum::<usize>(), waiting);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// For any order of changes, submissions and completions, each request is dispatched once and
    /// in order, or returned when its disk is removed. The depth is never exceeded, the view shows
    /// the limits that were set, and no request remains queued forever.
    #[test]
    fn every_request_is_dispatched_once_or_returned(ops in prop::collection::vec(any_op(), 1..150)) {
        let mut model = Model::new(32);
        for op in ops {
            model.step(op);
            for disk in model.store.disks() {
                let view = model.scheduler.view(model.now, model.store.slot(disk).unwrap()).unwrap();
                let effective = model.store.effective_limits(disk).unwrap();
                prop_assert_eq!((view.disk, view.owner, view.limits), (disk, effective.owner, effective.limits));
            }
        }
        // Without limits, all queued requests are dispatched one after another.
        for disk in model.store.disks().collect::<Vec<_>>() {
            model.propose(Proposal::SetDisk(disk, LimitsSource::default()));
        }
        for _ in 0..100 {
            while model.poll() {}
            model.complete(0, 1000);
        }
        prop_assert!(model.waiting.values().all(VecDeque::is_empty));
        prop_assert_eq!(model.scheduler.in_flight(), 0);
    }

    /// Changes that no store produces, with slots outside its bounds, cause no failure.
    #[test]
    fn invalid_changes_cause_no_failure(changes in prop::collection::vec(
        (0u8..5, prop_oneof![0u32..6, any::<u32>()], prop_oneof![0u32..6, any::<u32>()], any_limits()), 1..60,
    )) {
        let mut scheduler = StoreScheduler::new(StoreSpec { waiting_max: 8, ..StoreSpec::default() });
        for (now, (kind, a, b, limits)) in (0u64..).step_by(1_000_000).zip(changes) {
            let now = Time::from_ns(if b % 7 == 0 { u64::MAX - now } else { now });
            let change = match kind {
                0 => ConfigStep::SetFlow { flow: FlowSlot(a), owner: LimitsOwner::Disk(DiskId(b)), limits },
                1 => ConfigStep::SetFlow { flow: FlowSlot(a), owner: LimitsOwner::Policy(PolicyId(b)), limits },
                2 => ConfigStep::SetDisk { slot: DiskSlot(a), disk: DiskId(b), flow: FlowSlot(b) },
                3 => ConfigStep::RemoveDisk(DiskSlot(a)),
                _ => ConfigStep::RemoveFlow(FlowSlot(a)),
            };
            scheduler.apply(now, change);
            for disk in 0..6 {
                let _ = scheduler.submit(now, DiskSlot(disk), b, a);
                scheduler.handle_completion(now, DiskSlot(a), (crate::IoKind::Read, b), Duration::MAX);
            }
            for _ in 0..20 {
                scheduler.poll(now);
            }
            scheduler.observe(now);
            scheduler.next_deadline();
        }
        prop_assert!(scheduler.flows.len() <= super::FLOWS_MAX && scheduler.disks.len() <= crate::DISKS_MAX);
    }
}

/// A flow is removed with its disk, even if the device never completes some of its requests.
#[test]
fn a_flow_is_removed_while_its_requests_are_in_the_device() {
    let now = Time::from_ns(1 << 40);
    let mut store = Store::new(Capacity::Declared(10_000));
    let mut scheduler = StoreScheduler::new(StoreSpec::default());
    let limits = Limits { min_iops: Iops::new(1000), ..Limits::default() };
    let propose = |store: &mut Store, scheduler: &mut StoreScheduler, proposal| {
        for change in store.apply(&[proposal], false).unwrap() {
            scheduler.apply(now, change);
        }
    };
    let proposal = Proposal::SetDisk(DiskId(1), LimitsSource::Own(limits));
    propose(&mut store, &mut scheduler, proposal);
    let slot = store.slot(DiskId(1)).unwrap();
    assert_eq!(scheduler.submit(now, slot, 4096, 0), Ok(SubmitOutcome::Dispatch));
    propose(&mut store, &mut scheduler, Proposal::RemoveDisk(DiskId(1)));
    let minimums = scheduler.flows.iter().filter(|flow| flow.owner.is_some()).count();
    assert_eq!((minimums, scheduler.in_flight()), (0, 1));
    assert!(scheduler.flows.iter().all(|flow| flow.minimum.is_none()));
    let read = (crate::IoKind::Read, 4096);
    scheduler.handle_completion(now, slot, read, Duration::from_micros(80));
    assert_eq!(scheduler.in_flight(), 0);
    assert!(scheduler.flows.iter().all(|flow| !flow.is_busy()));
}

/// A request for which the store has no space is neither delivered nor charged, and its time is not
/// counted as latency.
#[test]
fn an_undone_request_is_neither_counted_nor_charged() {
    let now = Time::from_ns(1 << 40);
    let mut store = Store::new(Capacity::Declared(10_000));
    let mut scheduler = StoreScheduler::new(StoreSpec::default());
    let limits = Limits { max_iops: Iops::new(100), ..Limits::default() };
    let proposal = Proposal::SetDisk(DiskId(1), LimitsSource::Own(limits));
    for change in store.apply(&[proposal], false).unwrap() {
        scheduler.apply(now, change);
    }
    let slot = store.slot(DiskId(1)).unwrap();
    scheduler.observe(now);
    for _ in 0..1000 {
        assert_eq!(scheduler.submit(now, slot, 4096, 0), Ok(SubmitOutcome::Dispatch));
        scheduler.handle_not_executed(now, slot, 4096);
    }
    let later = now + Duration::from_secs(1);
    scheduler.observe(later);
    let view = scheduler.view(later, slot).unwrap();
    assert_eq!(
        (view.short.delivered_operations, view.short.demanded_operations, view.in_flight),
        (0, 0, 0)
    );
    assert_eq!((scheduler.in_flight(), scheduler.device_latency_ns()), (0, 0));
    assert_eq!(scheduler.time_of(slot).completed_requests, 0);
}

#[test]
fn changes_can_be_serialized() {
    let limits = Limits { min_iops: Iops::new(5), ..Limits::default() };
    let change =
        ConfigStep::SetFlow { flow: FlowSlot(3), owner: LimitsOwner::Policy(PolicyId(9)), limits };
    let text = serde_json::to_string(&change).unwrap();
    assert_eq!(serde_json::from_str::<ConfigStep>(&text).unwrap(), change);
}

/// A minimum whose due time would be after the largest time is due at the largest time.
#[test]
fn a_request_due_after_the_largest_time_is_dispatched() {
    let spec = StoreSpec { depth_max: 1, ..StoreSpec::default() };
    let mut scheduler = StoreScheduler::new(spec);
    let now = Time::from_ns(u64::MAX);
    let limits = Limits { min_iops: Iops::new(1), ..Limits::default() };
    let (slot, flow, disk) = (DiskSlot(0), FlowSlot(0), DiskId(7));
    scheduler.apply(now, ConfigStep::SetFlow { flow, owner: LimitsOwner::Disk(disk), limits });
    scheduler.apply(now, ConfigStep::SetDisk { slot, disk, flow });
    assert_eq!(scheduler.submit(now, slot, 4096, 0), Ok(SubmitOutcome::Dispatch));
    assert_eq!(scheduler.submit(now, slot, 4096, 1), Ok(SubmitOutcome::Queued));
    scheduler.handle_completion(now, slot, (crate::IoKind::Read, 4096), Duration::from_millis(1));
    assert_eq!(scheduler.poll(now), NextAction::Dispatch { disk: slot, tag: 1 });
}

/// A disk that was idle for a millisecond is owed a millisecond less, regardless of the number of
/// rejected submissions.
#[test]
fn refused_requests_do_not_reduce_the_due_of_a_minimum() {
    let due_after = |rejections: u32| {
        let spec = StoreSpec { depth_min: 1, depth_max: 1, waiting_max: 1, ..StoreSpec::default() };
        let mut scheduler = StoreScheduler::new(spec);
        let mut store = Store::new(Capacity::Declared(10_000));
        let time_at = |ms: u64| Time::from_ns((1 << 40) + ms * 1_000_000);
        let guaranteed = Limits { min_iops: Iops::new(1000), ..Limits::default() };
        let proposals = [(DiskId(0), guaranteed), (DiskId(1), Limits::default())];
        let proposals =
            proposals.map(|(disk, limits)| Proposal::SetDisk(disk, LimitsSource::Own(limits)));
        for change in store.apply(&proposals, false).unwrap() {
            scheduler.apply(time_at(0), change);
        }
        let [disk, other] = [0, 1].map(|disk| store.slot(DiskId(disk)).unwrap());
        let millisecond = Duration::from_millis(1);
        // The request is queued for 50 ms, and the next one is submitted a millisecond after its
        // completion.
        assert_eq!(scheduler.submit(time_at(0), other, 4096, 0), Ok(SubmitOutcome::Dispatch));
        assert_eq!(scheduler.submit(time_at(0), disk, 4096, 0), Ok(SubmitOutcome::Queued));
        scheduler.handle_completion(time_at(50), other, (crate::IoKind::Read, 4096), millisecond);
        assert_eq!(scheduler.poll(time_at(50)), NextAction::Dispatch { disk, tag: 0 });
        scheduler.handle_completion(time_at(51), disk, (crate::IoKind::Read, 4096), millisecond);
        assert_eq!(scheduler.submit(time_at(51), other, 4096, 0), Ok(SubmitOutcome::Dispatch));
        assert_eq!(scheduler.submit(time_at(51), other, 4096, 0), Ok(SubmitOutcome::Queued));
        for _ in 0..rejections {
            assert_eq!(scheduler.submit(time_at(52), disk, 4096, 0), Err(SubmitError::Full));
        }
        let flow = scheduler.disks[disk.0 as usize].flow_index as usize;
        scheduler.flows[flow].minimum.unwrap().due_at
    };
    assert_eq!(due_after(100), due_after(1));
}
