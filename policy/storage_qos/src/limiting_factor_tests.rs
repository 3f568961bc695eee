use core::time::Duration;
use std::collections::VecDeque;

use proptest::prelude::*;
use suimon_quantity::{DiskId, Iops, Time};

use super::*;
use crate::{
    Capacity, CompletedRequests, DiskSlot, IoKind, Limits, LimitsSource, NextAction, Proposal,
    QueueTime, RequestPhase, Store, StoreScheduler, StoreSpec,
};

const SECOND: u64 = 1_000_000_000;
const START: Time = Time::from_ns(1 << 44);

/// Creates a window of 1 s in which the disk was busy all the time.
fn window(time: RequestTime, waits: &[(QueueCause, u64)]) -> DeliveryStats {
    let mut queued = QueueTime::default();
    waits.iter().for_each(|(cause, ns)| queued.add(*cause, 1, *ns));
    DeliveryStats { window_ns: SECOND, time, queue_time: queued, ..DeliveryStats::default() }
}

/// Creates the time of requests in flight, with the time in the device and the own latencies.
fn in_device(in_flight_ns: u64, device_ns: u64, own_ns: u64, unloaded_ns: u64) -> RequestTime {
    let (busy_ns, requests) = (SECOND, 1000);
    RequestTime {
        busy_ns,
        in_flight_ns,
        device_ns,
        own_latency_ns: own_ns,
        unloaded_latency_ns: unloaded_ns,
        completed_requests: requests,
        ..RequestTime::default()
    }
}

fn shares_of(delivery: &DeliveryStats) -> Vec<(LimitingFactor, u32)> {
    delivery.time_shares().iter().map(|share| (share.factor, share.share_ppm)).collect()
}

#[test]
fn time_is_divided_by_request_state() {
    use LimitingFactor as F;
    let healthy = in_device(SECOND, SECOND, SECOND, SECOND);
    let cases = [
        (window(RequestTime::default(), &[]), vec![(F::ClientIdle, 1_000_000)]),
        (window(healthy, &[]), vec![(F::QueueDepth, 1_000_000)]),
        // A variation below the own latency does not count as a slow device.
        (
            window(in_device(SECOND, SECOND, 600_000_000, 600_000_000), &[]),
            vec![(F::QueueDepth, 1_000_000)],
        ),
        (
            window(in_device(SECOND, SECOND, SECOND, SECOND / 4), &[]),
            vec![(F::DeviceSaturated, 750_000), (F::QueueDepth, 250_000)],
        ),
        (
            window(in_device(SECOND, SECOND, SECOND / 4, SECOND / 4), &[]),
            vec![(F::DeviceSlow, 750_000), (F::QueueDepth, 250_000)],
        ),
        (
            window(RequestTime { flush_ns: SECOND * 4 / 5, ..healthy }, &[]),
            vec![(F::Flushes, 800_000), (F::QueueDepth, 200_000)],
        ),
        (
            window(
                RequestTime { metadata_ns: SECOND * 3 / 5, flush_ns: SECOND / 5, ..healthy },
                &[],
            ),
            vec![(F::Metadata, 600_000), (F::Flushes, 200_000), (F::QueueDepth, 200_000)],
        ),
        (
            window(
                RequestTime { discard_ns: SECOND / 2, unmeasured_ns: SECOND / 4, ..healthy },
                &[],
            ),
            vec![(F::Discards, 500_000), (F::Unmeasured, 250_000), (F::QueueDepth, 250_000)],
        ),
        // The device completed requests for 1 s, and has had four others in flight since.
        (
            window(RequestTime { in_flight_ns: 17 * SECOND, ..healthy }, &[]),
            vec![(F::DeviceSlow, 941_177), (F::QueueDepth, 58_823)],
        ),
        // Most of the time is spent in the device, but the limit is the cause of queueing.
        (
            window(healthy, &[(QueueCause::OwnMaximum, SECOND / 4)]),
            vec![(F::OwnMaximum, 200_000), (F::DeviceService, 800_000)],
        ),
        (
            window(healthy, &[(QueueCause::OthersMinimums, 3 * SECOND)]),
            vec![(F::OthersMinimums, 750_000), (F::DeviceService, 250_000)],
        ),
        // Three of four dispatches were for the minimums of other disks.
        (
            DeliveryStats {
                store_dispatches: 1000,
                others_minimum_dispatches: 750,
                ..window(healthy, &[(QueueCause::DeviceDepth, 4 * SECOND)])
            },
            vec![
                (F::OthersMinimums, 600_000),
                (F::DeviceSaturated, 200_000),
                (F::DeviceService, 200_000),
            ],
        ),
        (
            window(healthy, &[(QueueCause::DeviceDepth, SECOND)]),
            vec![(F::DeviceSaturated, 500_000), (F::DeviceService, 500_000)],
        ),
    ];
    for (delivery, expected) in cases {
        assert_eq!(shares_of(&delivery), expected, "{delivery:?}");
    }
}

#[test]
fn a_worker_that_does_not_run_is_neither_a_slow_device_nor_an_idle_client() {
    use LimitingFactor as F;
    let slow = in_device(SECOND, SECOND, SECOND / 10, SECOND / 10);
    let time = RequestTime { unscheduled_ns: 2 * SECOND, ..slow };
    let expected = [(F::WorkerNotScheduled, 900_000), (F::QueueDepth, 100_000)];
    assert_eq!(shares_of(&window(time, &[])), expected);
    // Time in the device counts as the device's even if the worker was not running meanwhile.
    let healthy = in_device(SECOND, SECOND, SECOND, SECOND);
    let time = RequestTime { unscheduled_ns: SECOND, ..healthy };
    assert_eq!(shares_of(&window(time, &[])), [(F::QueueDepth, 1_000_000)]);
    let idle = RequestTime { busy_ns: SECOND / 5, unserviced_ns: SECOND / 2, ..healthy };
    let expected =
        [(F::WorkerNotScheduled, 500_000), (F::ClientIdle, 300_000), (F::QueueDepth, 200_000)];
    assert_eq!(shares_of(&window(idle, &[])), expected);
}

/// Batches that a cache completes in 4 us do not determine the latency of requests that take 22 us
/// on a loaded host.
#[test]
fn low_cache_latencies_do_not_make_a_device_slow() {
    let time = in_device(SECOND, SECOND, SECOND / 5, SECOND / 5);
    let quick = window(RequestTime { completed_requests: 45_000, ..time }, &[]);
    assert_eq!(shares_of(&quick), [(LimitingFactor::QueueDepth, 1_000_000)]);
    let slow = window(RequestTime { completed_requests: 4_500, ..time }, &[]);
    assert_eq!(shares_of(&slow)[0], (LimitingFactor::DeviceSlow, 800_000));
}

#[test]
fn a_device_without_completions_is_slow() {
    let time =
        RequestTime { completed_requests: 0, device_ns: 0, ..in_device(4 * SECOND, 0, 0, 0) };
    let delivery = window(time, &[]);
    assert_eq!(shares_of(&delivery), [(LimitingFactor::DeviceSlow, 1_000_000)]);
    assert_eq!((delivery.queue_depth_milli(), delivery.device_latency_ns()), (4000, None));
}

/// Request in the reference model.
#[derive(Clone, Copy, Debug)]
struct Sample {
    submitted: Time,
    dispatched: Time,
    completed: Time,
    phase: RequestPhase,
    entered: Time,
    /// Time that the request spent in each phase that it has left, in ns.
    phases_ns: [u64; RequestPhase::COUNT],
}

impl Sample {
    fn new(submitted: Time, dispatched: Time) -> Self {
        let (completed, entered) = (dispatched, dispatched);
        let (phase, phases_ns) = (RequestPhase::Data, [0; RequestPhase::COUNT]);
        Self { submitted, dispatched, completed, phase, entered, phases_ns }
    }

    fn enter(&mut self, now: Time, phase: RequestPhase) {
        self.phases_ns[self.phase as usize] += now.ns_since(self.entered);
        (self.phase, self.entered) = (phase, now);
    }
}

/// Reference model: requests of two disks, tracked individually, and the scheduler under test.
struct Model {
    scheduler: StoreScheduler,
    queued: [VecDeque<Time>; 2],
    in_flight: Vec<(usize, Sample)>,
    ended: [Vec<Sample>; 2],
    /// Time in which each disk had requests, in ns.
    busy_ns: [u64; 2],
}

impl Model {
    fn new(max: u64, min: u64, depth: u32) -> Self {
        let spec = StoreSpec { depth_min: 1, depth_max: depth, ..StoreSpec::default() };
        let mut scheduler = StoreScheduler::new(spec);
        let mut store = Store::new(Capacity::Declared(1_000_000));
        let limits = [
            Limits { max_iops: Iops::new(max), ..Limits::default() },
            Limits { min_iops: Iops::new(min), ..Limits::default() },
        ];
        for (disk, limits) in (0..).zip(limits) {
            let proposal = Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits));
            for change in store.apply(&[proposal], true).unwrap() {
                scheduler.apply(START, change);
            }
        }
        scheduler.observe(START);
        Self {
            scheduler,
            queued: Default::default(),
            in_flight: Vec::new(),
            ended: Default::default(),
            busy_ns: [0; 2],
        }
    }

    fn pass(&mut self, ns: u64) {
        for disk in 0..2 {
            let is_busy = !self.queued[disk].is_empty()
                || self.in_flight.iter().any(|(owner, _)| *owner == disk);
            self.busy_ns[disk] += if is_busy { ns } else { 0 };
        }
    }

    fn submit(&mut self, now: Time, disk: usize, count: usize) {
        let slot = DiskSlot(disk as u32);
        let submitted = self.scheduler.submit_batch(now, slot, &vec![4096; count], disk as u32);
        let submitted = submitted.unwrap();
        self.in_flight.extend((0..submitted.dispatched).map(|_| (disk, Sample::new(now, now))));
        self.queued[disk].extend((0..submitted.queued_count).map(|_| now));
    }

    fn poll(&mut self, now: Time) {
        while let NextAction::Dispatch { tag, .. } = self.scheduler.poll(now) {
            let disk = tag as usize;
            let submitted = self.queued[disk].pop_front().unwrap();
            self.in_flight.push((disk, Sample::new(submitted, now)));
        }
    }

    fn complete(&mut self, now: Time, offset: usize) {
        if self.in_flight.is_empty() {
            return;
        }
        let (disk, mut sample) = self.in_flight.remove(offset % self.in_flight.len());
        let slot = DiskSlot(disk as u32);
        self.scheduler.handle_phase_change(now, slot, sample.phase, RequestPhase::Data);
        sample.enter(now, RequestPhase::Data);
        sample.completed = now;
        self.ended[disk].push(sample);
        let latency_ns = Some(sample.phases_ns[RequestPhase::Data as usize]);
        let operation = IoKind::Read;
        let completed =
            CompletedRequests { operation, bytes: 4096, requests: 1, latency_sum_ns: latency_ns };
        self.scheduler.handle_completed_requests(now, slot, completed);
    }

    /// Moves the request at `offset` of those in flight to another phase.
    fn enter(&mut self, now: Time, offset: usize, phase: RequestPhase) {
        let count = self.in_flight.len();
        let Some((disk, sample)) = self.in_flight.get_mut(offset % count.max(1)) else { return };
        self.scheduler.handle_phase_change(now, DiskSlot(*disk as u32), sample.phase, phase);
        sample.enter(now, phase);
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Pass(u64),
    Submit(usize, usize),
    Complete(usize),
    Enter(usize, RequestPhase),
    Observe,
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (1u64..3_000_000).prop_map(Operation::Pass),
        3 => (0usize..2, 1usize..12).prop_map(|(disk, count)| Operation::Submit(disk, count)),
        4 => (0usize..64).prop_map(Operation::Complete),
        2 => (0usize..64, prop::sample::select(&RequestPhase::ALL[..]))
            .prop_map(|(at, phase)| Operation::Enter(at, phase)),
        1 => Just(Operation::Observe),
    ]
}

proptest! {
    /// Little's law: the time accounted for in each state is the sum of the times of the individual
    /// requests in the state. The mean number of requests in a state therefore equals throughput
    /// times mean time.
    #[test]
    fn time_in_each_state_is_the_sum_of_the_requests_times(
        max in 1u64..3000,
        min in 1u64..3000,
        depth in 1u32..32,
        deeds in prop::collection::vec(any_operation(), 1..200),
    ) {
        let mut now = START;
        let mut model = Model::new(max, min, depth);
        for deed in deeds {
            match deed {
                Operation::Pass(ns) => {
                    model.pass(ns);
                    now = now + Duration::from_nanos(ns);
                }
                Operation::Submit(disk, count) => model.submit(now, disk, count),
                Operation::Complete(index) => model.complete(now, index),
                Operation::Enter(index, phase) => model.enter(now, index, phase),
                Operation::Observe => drop(model.scheduler.observe(now)),
            }
            model.poll(now);
        }
        // Complete the remaining requests.
        while model.in_flight.len() + model.queued[0].len() + model.queued[1].len() > 0 {
            model.pass(1_000_000);
            now = now + Duration::from_millis(1);
            model.complete(now, 0);
            model.poll(now);
        }
        for disk in 0..2 {
            let view = model.scheduler.view(now, DiskSlot(disk as u32)).unwrap();
            let sum = |value_of: fn(&Sample) -> u64| model.ended[disk].iter().map(value_of).sum::<u64>();
            let waits: u64 = QueueCause::ALL.into_iter().map(|cause| view.counters.queue_time.ns(cause)).sum();
            prop_assert_eq!(waits, sum(|sample| sample.dispatched.ns_since(sample.submitted)));
            let time = model.scheduler.time_of(DiskSlot(disk as u32));
            let in_flight = sum(|sample| sample.completed.ns_since(sample.dispatched));
            let phase = |phase| model.ended[disk].iter().map(|sample| sample.phases_ns[phase as usize]).sum::<u64>();
            prop_assert_eq!((time.in_flight_ns, time.device_ns), (in_flight, phase(RequestPhase::Data)));
            let phases = [time.metadata_ns, time.flush_ns, time.discard_ns, time.unmeasured_ns];
            let each = [RequestPhase::Metadata, RequestPhase::Flush, RequestPhase::Discard, RequestPhase::Unmeasured].map(phase);
            prop_assert_eq!(phases, each);
            // Each part of the time in flight is accounted for once.
            prop_assert_eq!(time.device_ns + phases.iter().sum::<u64>(), time.in_flight_ns);
            prop_assert_eq!(time.completed_requests, model.ended[disk].len() as u64);
            prop_assert_eq!(time.busy_ns, model.busy_ns[disk]);
            prop_assert!(time.unloaded_latency_ns <= time.own_latency_ns && time.own_latency_ns <= time.device_ns);
        }
    }

    /// For any counters, the shares are in descending order and their sum is the whole window.
    #[test]
    fn shares_sum_up_to_the_window(
        window_ns in prop_oneof![1u64..1000, any::<u64>()],
        counts in prop::array::uniform13(prop_oneof![0u64..1000, 0..10 * SECOND, any::<u64>()]),
        waits in prop::array::uniform6(prop_oneof![Just(0u64), 0..10 * SECOND, any::<u64>()]),
    ) {
        let [busy_ns, in_flight_ns, device_ns, own_ns, unloaded_ns, ..] = counts;
        let [_, _, _, _, _, unscheduled_ns, unserviced_ns, requests, unmeasured, ..] = counts;
        let [.., metadata_ns, flush_ns, discard_ns, unmeasured_ns] = counts;
        let time = RequestTime {
            busy_ns, in_flight_ns, device_ns, own_latency_ns: own_ns, unloaded_latency_ns: unloaded_ns, unscheduled_ns, unserviced_ns,
            completed_requests: requests, requests_without_device_time: unmeasured, metadata_ns, flush_ns, discard_ns, unmeasured_ns,
        };
        let waits: Vec<_> = QueueCause::ALL.into_iter().zip(waits).collect();
        let delivery = DeliveryStats { window_ns, ..window(time, &waits) };
        let shares = delivery.time_shares();
        prop_assert_eq!(shares.iter().map(|share| u64::from(share.share_ppm)).sum::<u64>(), u64::from(WHOLE_WINDOW_PPM));
        let limits: Vec<_> = shares.iter().filter(|share| share.factor != LimitingFactor::DeviceService).collect();
        prop_assert!(limits.windows(2).all(|pair| pair[0].share_ppm >= pair[1].share_ppm));
        prop_assert!(shares.iter().rev().skip(1).all(|share| share.factor != LimitingFactor::DeviceService));
        let _ = (delivery.queue_depth_milli(), delivery.device_latency_ns());
    }
}
