use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use suimon_quantity::{ByteRate, DiskId, Iops, TimedRateLimit};

use super::*;
use crate::queued_requests::QueuedRequests;
use crate::{
    Capacity, ConfigStep, IoKind, Limits, LimitsSource, NextAction, Proposal, Store, StoreSpec,
    SubmitOutcome, Weight,
};

const DISKS: u32 = 3;

/// Request that was dispatched or queued: disk and size in bytes.
type Sent = (DiskSlot, u32);

#[derive(Clone, Debug)]
enum Operation {
    /// Advances time by this number of nanoseconds.
    Wait(u64),
    /// Submits requests of a disk with these sizes.
    Come(u32, Vec<u32>),
    /// Completes requests in the device of one disk and size: those like the one at this index, at
    /// most this number.
    End(usize, u32),
    /// Sets the cap of all disks together.
    Cap(Option<u64>),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let bytes = prop_oneof![Just(512u32), Just(8192), Just(70_000), 1u32..2_000_000];
    prop_oneof![
        2 => (0u64..30_000_000).prop_map(Operation::Wait),
        1 => (0u64..100_000).prop_map(Operation::Wait),
        4 => (0..DISKS, prop::collection::vec(bytes, 1..20)).prop_map(|(d, b)| Operation::Come(d, b)),
        1 => prop::option::of(0u64..100_000).prop_map(Operation::Cap),
        4 => (0usize..64, 1u32..20).prop_map(|(at, count)| Operation::End(at, count)),
    ]
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let rate = || prop_oneof![1 => Just(0u64), 1 => 1u64..100, 2 => 100u64..100_000];
    (rate(), rate(), rate(), 1u16..1000).prop_map(|(min, max, bandwidth, weight)| Limits {
        min_iops: Iops::new(min),
        max_iops: Iops::new(if max == 0 { 0 } else { max.max(min) }),
        max_bandwidth: ByteRate::new(bandwidth * 4096),
        weight: Weight::new(weight).unwrap(),
        burst: None,
    })
}

struct Side {
    scheduler: StoreScheduler,
    waiting: BTreeMap<DiskSlot, VecDeque<u32>>,
    in_device: Vec<Sent>,
}

impl Side {
    fn new(limits: &[Limits], spec: &StoreSpec, now: Time) -> Self {
        let mut scheduler = StoreScheduler::new(spec.clone());
        let mut store = Store::new(Capacity::Declared(1_000_000));
        for (disk, limits) in (0..).zip(limits) {
            let proposal = Proposal::SetDisk(DiskId(disk), LimitsSource::Own(*limits));
            for change in store.apply(&[proposal], true).unwrap() {
                scheduler.apply(now, change);
            }
        }
        Self { scheduler, waiting: BTreeMap::new(), in_device: Vec::new() }
    }

    fn cap(&mut self, now: Time, iops: Option<u64>) {
        let cap =
            iops.map(|reserved_iops| TimedRateLimit { reserved_iops, ..TimedRateLimit::default() });
        self.scheduler.apply(now, ConfigStep::SetCap(cap));
    }

    fn submit(&mut self, now: Time, slot: DiskSlot, bytes: u32) {
        match self.scheduler.submit(now, slot, bytes, slot.0) {
            Ok(SubmitOutcome::Dispatch) => self.in_device.push((slot, bytes)),
            Ok(SubmitOutcome::Queued) => self.waiting.entry(slot).or_default().push_back(bytes),
            Err(error) => assert_eq!(error, SubmitError::Full),
        }
    }

    fn submit_together(&mut self, now: Time, slot: DiskSlot, sizes: &[u32]) {
        let submitted = self.scheduler.submit_batch(now, slot, sizes, slot.0).unwrap();
        let (dispatched, rest) = sizes.split_at(submitted.dispatched);
        self.in_device.extend(dispatched.iter().map(|&bytes| (slot, bytes)));
        self.waiting.entry(slot).or_default().extend(&rest[..submitted.queued_count]);
    }

    fn poll(&mut self, now: Time) -> NextAction {
        loop {
            let next = self.scheduler.poll(now);
            let NextAction::Dispatch { disk, tag } = next else { return next };
            assert_eq!(tag, disk.0);
            let bytes = self.waiting.get_mut(&disk).unwrap().pop_front().unwrap();
            self.in_device.push((disk, bytes));
        }
    }

    /// Returns the whole state as text, except for the records of queued requests, most of which
    /// are empty.
    fn state(&self) -> String {
        format!(
            "{:?}",
            StoreScheduler { queued_requests: QueuedRequests::new(0), ..self.scheduler.clone() }
        )
    }

    /// Removes up to `count` requests of the same disk and size as the one at `index` from the
    /// device. Returns that request, and their number.
    fn take(&mut self, index: usize, count: u32) -> Option<(Sent, u32)> {
        let request = *self.in_device.get(index % self.in_device.len().max(1))?;
        let mut removed = 0;
        self.in_device.retain(|sent| {
            let is_taken = *sent == request && removed < count;
            removed += u32::from(is_taken);
            !is_taken
        });
        Some((request, removed))
    }
}

proptest! {
    /// Requests submitted in one call are accounted for exactly like those submitted one by one.
    #[test]
    fn batch_submission_equals_single_submissions(
        limits in prop::collection::vec(any_limits(), DISKS as usize),
        depth in prop_oneof![Just((1u32, 2u32)), Just((4, 256)), Just((4096, 4096))],
        deeds in prop::collection::vec(any_operation(), 1..120),
    ) {
        let mut now = Time::from_ns(1 << 44);
        let (depth_min, depth_max) = depth;
        let spec = StoreSpec { depth_min, depth_max, ..StoreSpec::default() };
        let (mut single, mut batched) = (Side::new(&limits, &spec, now), Side::new(&limits, &spec, now));
        for deed in deeds {
            match deed {
                Operation::Wait(ns) => now = now + Duration::from_nanos(ns),
                Operation::Cap(iops) => {
                    [&mut single, &mut batched].into_iter().for_each(|side| side.cap(now, iops));
                }
                Operation::Come(disk, sizes) => {
                    sizes.iter().for_each(|&bytes| single.submit(now, DiskSlot(disk), bytes));
                    batched.submit_together(now, DiskSlot(disk), &sizes);
                }
                Operation::End(index, count) => {
                    for side in [&mut single, &mut batched] {
                        let Some(((slot, bytes), requests)) = side.take(index, count) else { continue };
                        let latency_ns = Some(100_000 * u64::from(requests));
                        let completed = CompletedRequests { operation: IoKind::Read, bytes, requests, latency_sum_ns: latency_ns };
                        side.scheduler.handle_completed_requests(now, slot, completed);
                    }
                }
            }
            prop_assert_eq!(single.poll(now), batched.poll(now));
            prop_assert_eq!(&single.in_device, &batched.in_device);
            prop_assert_eq!(single.state(), batched.state());
        }
    }

    /// Requests completed in one call are accounted for like those completed one by one. Compared
    /// are the delivered operations and the requests in the device.
    #[test]
    fn batch_completion_equals_single_completions(
        limits in any_limits(),
        deeds in prop::collection::vec((any_operation(), any::<bool>()), 1..120),
    ) {
        let mut now = Time::from_ns(1 << 44);
        // Fixed depth, so that grouping of requests cannot change it.
        let spec = StoreSpec { depth_min: 64, depth_max: 64, ..StoreSpec::default() };
        let limits = Limits { min_iops: None, ..limits };
        let sides = || Side::new(&[limits; DISKS as usize], &spec, Time::from_ns(1 << 44));
        let (mut single, mut batched) = (sides(), sides());
        for (deed, is_measured) in deeds {
            match deed {
                Operation::Wait(ns) => now = now + Duration::from_nanos(ns),
                Operation::Cap(iops) => {
                    [&mut single, &mut batched].into_iter().for_each(|side| side.cap(now, iops));
                }
                Operation::Come(disk, sizes) => {
                    for side in [&mut single, &mut batched] {
                        sizes.iter().for_each(|&bytes| side.submit(now, DiskSlot(disk), bytes));
                    }
                }
                Operation::End(index, count) => {
                    let Some(((slot, bytes), requests)) = single.take(index, count) else { continue };
                    batched.take(index, count);
                    let one_ns = is_measured.then_some(100_000);
                    let operation = IoKind::Read;
                    let single_completion = CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: one_ns };
                    for _ in 0..requests {
                        single.scheduler.handle_completed_requests(now, slot, single_completion);
                    }
                    let latency_ns = one_ns.map(|ns| ns * u64::from(requests));
                    let batch_completion = CompletedRequests { requests, latency_sum_ns: latency_ns, ..single_completion };
                    batched.scheduler.handle_completed_requests(now, slot, batch_completion);
                    prop_assert_eq!(single.scheduler.in_flight(), batched.scheduler.in_flight());
                }
            }
            prop_assert_eq!(single.poll(now), batched.poll(now));
            prop_assert_eq!(&single.in_device, &batched.in_device);
        }
        now = now + Duration::from_secs(1);
        for disk in 0..DISKS {
            single.scheduler.observe(now);
            batched.scheduler.observe(now);
            let views = [&single, &batched].map(|side| side.scheduler.view(now, DiskSlot(disk)));
            prop_assert_eq!(format!("{:?}", views[0]), format!("{:?}", views[1]));
        }
    }
}

#[test]
fn requests_beyond_the_limits_are_neither_dispatched_nor_queued() {
    let now = Time::from_ns(1 << 44);
    let spec = StoreSpec { depth_min: 2, depth_max: 2, waiting_max: 3, ..StoreSpec::default() };
    let mut side = Side::new(&[Limits::default()], &spec, now);
    let submitted = side.scheduler.submit_batch(now, DiskSlot(0), &[4096; 9], 0);
    assert_eq!(submitted, Ok(BatchSubmitOutcome { dispatched: 2, queued_count: 3 }));
    let submitted = side.scheduler.submit_batch(now, DiskSlot(0), &[4096], 0);
    assert_eq!(submitted, Ok(BatchSubmitOutcome::default()));
    assert_eq!(
        side.scheduler.submit_batch(now, DiskSlot(7), &[1], 0),
        Err(SubmitError::NoDisk(DiskSlot(7)))
    );
}
