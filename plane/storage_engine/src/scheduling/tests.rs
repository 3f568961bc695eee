//! Storage QoS on one worker.

use proptest::prelude::*;
use suimon_ports::DiskOp;
use suimon_quantity::{DiskId, StoreId, Time};
use suimon_storage_qos::{Proposal, StoreEvent, StoreSpec};

use crate::tests::device_bench::{Bench, Load, MILLISECOND, SECOND, STORE, deep, limits, spec};
use crate::{StorageNotice, StoreDiskSlot, StoreRole};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any load, no maximum is exceeded in any time window, each maximum is reached, and disks
    /// without a maximum are not delayed by those with one.
    #[test]
    fn maximums_hold_in_every_window_and_are_reached(
        maximums in prop::collection::vec((100u64..5000, 1u64..40, 8u32..65), 1..6),
        seed in any::<u64>(),
    ) {
        let mut bench = Bench::new(1, &deep(), 32, 200_000);
        bench.random.0 = seed;
        for (disk, &(max, kilobytes, depth)) in (0..).zip(&maximums) {
            bench.add_disk(0, disk, limits(0, max));
            bench.add_client(disk, Load::reads(kilobytes << 10, depth));
        }
        let free = maximums.len() as u32;
        bench.add_disk(0, free, limits(0, 0));
        let seat = bench.add_client(free, Load::reads(4096, 4));
        let began = bench.device().now;
        bench.run(2 * SECOND);
        for (disk, &(max, kilobytes, _)) in (0..).zip(&maximums) {
            let cost = kilobytes.div_ceil(8);
            let excess = bench.device().excess(&[disk], max, 0);
            prop_assert!(excess <= Bench::tolerance(max, cost), "{disk}: {excess}");
            let got = bench.device().count(disk, began, began + 2 * SECOND);
            prop_assert!(got * 100 >= 2 * max * 98 - 100 * cost, "{disk}: {got} of {max}");
        }
        // The disk alone would have 4 requests at a time with 200 us each.
        prop_assert!(bench.clients[seat].completion_count > 38_000, "{}", bench.clients[seat].completion_count);
    }

    /// With little room for queued requests, no request is lost and no queue starves.
    #[test]
    fn queues_without_room_in_the_scheduler_are_read_later(
        waiting_max in 1u32..12,
        queues in 2usize..12,
        max in 1000u64..4000,
    ) {
        let store = StoreSpec { waiting_max, ..deep() };
        let mut bench = Bench::new(1, &store, 32, 200_000);
        for disk in 0..3 {
            bench.add_disk(0, disk, limits(0, max));
        }
        for seat in 0..queues {
            bench.add_client(seat as u32 % 3, Load::reads(4096, 8));
        }
        bench.run(SECOND);
        let least = bench.clients.iter().map(|seat| seat.completion_count).min().unwrap();
        let mean = bench.clients.iter().map(|seat| seat.completion_count).sum::<u64>() / queues as u64;
        prop_assert!(least * 3 >= mean && mean > 0, "{least} where {mean} is the mean");
        if waiting_max as usize >= queues {
            let fair = max / (queues as u64).div_ceil(3);
            prop_assert!(least * 10 >= fair * 9, "{least} where {fair} is fair");
        }
        bench.clients.iter_mut().for_each(|seat| seat.load = None);
        bench.run(SECOND);
        prop_assert_eq!(bench.open(), 0);
    }
}

/// The limit of queued requests per queue is the store's limit divided by the number of queues,
/// regardless of how often queues are added and closed.
#[test]
fn each_queue_has_its_share_of_the_scheduler_queue() {
    let store = StoreSpec { waiting_max: 6400, ..deep() };
    let mut bench = Bench::new(1, &store, 32, 200_000);
    bench.add_disk(0, 0, limits(0, 1));
    bench.add_disk(0, 1, limits(0, 1));
    let has_queues = |bench: &Bench, per_queue: u32| {
        let engine = &bench.engines[0];
        let queues: Vec<_> =
            engine.queues.numbers().filter_map(|number| engine.queues.get(number)).collect();
        assert!(
            queues.iter().all(|queue| queue.queued_max == per_queue && queue.queued <= per_queue),
            "{per_queue}"
        );
        (queues.len(), queues.iter().filter(|queue| queue.queued == per_queue).count())
    };
    for client_index in 0..200 {
        bench.add_client(client_index % 2, Load::reads(4096, 100));
    }
    bench.run(20 * MILLISECOND);
    let (queue_count, full) = has_queues(&bench, 32);
    assert!(queue_count == 200 && full >= 198, "{full}");
    for queue in 0..150 {
        bench.engines[0].close_queue(queue);
    }
    bench.run(SECOND);
    assert_eq!(has_queues(&bench, 64).0, 50);
}

/// The limit also applies to requests for which there was room at the begin of the iteration.
#[test]
fn no_requests_are_taken_from_a_disk_with_uncharged_requests() {
    let mut bench = Bench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 10));
    let [first, second] = [32, 4].map(|depth| {
        let client_index = bench.add_client(0, Load::reads(4096, depth));
        bench.clients[client_index].queue
    });
    bench.run(10 * MILLISECOND);
    let engine = &mut bench.engines[0];
    engine.has_room = true;
    assert!(engine.receivable_requests(second) > 0);
    engine.close_queue(first);
    assert_eq!(engine.receivable_requests(second), 0);
}

#[test]
fn a_minimum_is_met_beside_disks_without_limits() {
    // 8 requests at a time with 200 us each are 40 000 per second.
    let mut bench = Bench::new(1, &StoreSpec::default(), 8, 200_000);
    bench.add_disk(0, 0, limits(10_000, 0));
    bench.add_client(0, Load::reads(4096, 32));
    for disk in 1..9 {
        bench.add_disk(0, disk, limits(0, 0));
        bench.add_client(disk, Load::reads(8192, 64));
    }
    bench.run(SECOND);
    let start = bench.device().now;
    bench.run(3 * SECOND);
    let delivered = bench.device().count(0, start, start + 3 * SECOND);
    assert!(delivered >= 29_400, "{delivered}");
    let view = bench.engines[0].disk_view(bench.time(), STORE, bench.slot(0)).unwrap();
    let rate = view.short.per_second(view.short.delivered_operations);
    assert!(rate.abs_diff(10_000) < 1500, "{rate}");
    let total: u64 = (0..9).map(|disk| bench.device().count(disk, start, start + 3 * SECOND)).sum();
    assert!(total > 3 * 38_000, "{total}: unused capacity is delivered to no other disk");
    let status = bench.engines[0].store_status(STORE).unwrap();
    assert_eq!(status.role, StoreRole::Sole);
    assert!(status.depth_limit >= 8 && status.mean_latency_ns >= 200_000, "{status:?}");
}

#[test]
fn requests_without_payload_do_not_bypass_a_maximum() {
    let zeros =
        |may_unmap| DiskOp::WriteZeroes { may_unmap, is_durable: false, only_if_fast: false };
    // Each operation with its cost.
    let operations =
        [(DiskOp::Flush, 1), (DiskOp::Discard, 1), (zeros(true), 1), (zeros(false), 16)];
    for (op, cost) in operations {
        let mut bench = Bench::new(1, &deep(), 32, 200_000);
        bench.add_disk(0, 0, limits(0, 800));
        let client_index = bench.add_client(0, Load { op, bytes: 128 << 10, depth: 32 });
        bench.run(2 * SECOND);
        let counted = bench.clients[client_index].completion_count * cost;
        assert!((1568..=1632 + cost).contains(&counted), "{op:?}: {counted}");
    }
}

#[test]
fn a_change_of_limits_takes_effect_immediately() {
    let mut bench = Bench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 100));
    bench.add_client(0, Load::reads(4096, 32));
    for (max, max_count) in [(100, 100), (5000, 5000), (10, 10), (2000, 2000)] {
        bench.set_limits(0, limits(0, max));
        let start = bench.device().now;
        bench.run(SECOND);
        let delivered = bench.device().count(0, start, start + SECOND);
        let tolerance = Bench::tolerance(max, 2) as u64;
        assert!(
            (max_count * 97 / 100 - 2..=max_count + tolerance).contains(&delivered),
            "{delivered} of {max}"
        );
    }
    // Requests queued for a removed maximum are dispatched.
    bench.set_limits(0, limits(0, 0));
    let start = bench.device().now;
    bench.run(MILLISECOND);
    assert!(bench.device().count(0, start, u64::MAX) > 32);
}

#[test]
fn a_request_queued_for_a_maximum_costs_no_iterations() {
    let mut bench = Bench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 10));
    bench.add_client(0, Load::reads(4096, 128));
    bench.run(SECOND);
    bench.polls = 0;
    bench.run(SECOND);
    // Ten requests are dispatched, ten complete, and there are two observations.
    assert!(bench.polls < 100, "{}", bench.polls);
    assert!(bench.engines[0].arm(), "the worker may sleep");
    let queue = bench.clients[0].queue;
    assert!(!bench.engines[0].wake_queue(queue), "the descriptor must not be watched");
    assert_eq!(bench.engines[0].poll_queue_to_watch(), None);
    bench.run(SECOND);
    assert_eq!(bench.engines[0].poll_queue_to_watch(), Some(queue));
}

#[test]
fn requests_of_a_closed_queue_start_at_once_and_are_charged() {
    let mut bench = Bench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 10));
    let first = bench.add_client(0, Load::reads(4096, 128));
    bench.add_client(0, Load::reads(4096, 128));
    bench.run(SECOND);
    let start = bench.device().now;
    for _ in 0..20 {
        // Repeatedly, a client connects, submits many requests, and disconnects.
        let (worker, queue) = (bench.clients[first].worker, bench.clients[first].queue);
        bench.clients[first].load = None;
        bench.engines[worker].close_queue(queue);
        bench.run(2 * MILLISECOND);
        assert_eq!(bench.engines[worker].poll_closed_queue().unwrap().0, queue);
        bench.clients.remove(first);
        bench.add_client(0, Load::reads(4096, 128));
        bench.run(10 * MILLISECOND);
    }
    let bypassed = bench.device().count(0, start, u64::MAX);
    assert!((128..=130).contains(&bypassed), "{bypassed}: only the requests that were queued once");
    // The excess is charged, so the total does not exceed the maximum.
    bench.run(30 * SECOND);
    let delivered = bench.device().count(0, start, u64::MAX);
    assert!((300..=304).contains(&delivered), "{delivered} of 10 per second");
    // The same holds for the disk.
    let (worker, number) = bench.disks[&0];
    bench.clients.iter_mut().for_each(|client| client.load = None);
    bench.engines[worker].close_disk(number);
    bench.run(10 * MILLISECOND);
    assert_eq!(bench.engines[worker].poll_closed_disk().unwrap().0, number);
    assert_eq!(bench.engines[worker].store_status(STORE).unwrap().in_flight_of_worker, 0);
}

#[test]
fn a_disk_removed_from_its_store_is_not_limited() {
    let mut bench = Bench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 10));
    bench.add_client(0, Load::reads(4096, 64));
    bench.run(SECOND);
    bench.propose(&[Proposal::RemoveDisk(DiskId(0))]);
    let before = bench.clients[0].completion_count;
    bench.run(100 * MILLISECOND);
    assert!(bench.clients[0].completion_count > before + 10_000);
    assert!(!bench.engines[0].remove_store(STORE), "it has a disk here");
    let (worker, number) = bench.disks[&0];
    bench.clients[0].load = None;
    bench.engines[worker].close_disk(number);
    bench.run(100 * MILLISECOND);
    assert_eq!(bench.open(), 0);
    assert!(bench.engines[0].remove_store(STORE));
    assert_eq!(bench.engines[0].store_status(STORE), None);
}

#[test]
fn an_unmet_minimum_is_reported() {
    // The minimums are twice the capacity of 1000 per second.
    let mut bench = Bench::new(1, &StoreSpec::default(), 1, 1_000_000);
    for disk in 0..2 {
        bench.add_disk(0, disk, limits(1000, 0));
        bench.add_client(disk, Load::reads(4096, 8));
    }
    bench.run(70 * SECOND);
    let notices: Vec<StorageNotice> =
        std::iter::from_fn(|| bench.engines[0].poll_notice()).collect();
    // One event for the store, and one for each disk.
    let is_of_store = |notice: &StorageNotice| {
        matches!(notice, StorageNotice::Qos { event: StoreEvent::CapacityLow(_), .. })
    };
    let (of_store, notices): (Vec<_>, Vec<_>) = notices.into_iter().partition(is_of_store);
    assert_eq!((of_store.len(), notices.len()), (1, 2), "{of_store:?} {notices:?}");
    for notice in notices {
        let StorageNotice::Qos { store: STORE, event: StoreEvent::MinimumUnmet(unmet) } = notice
        else {
            panic!("{notice:?}");
        };
        assert!(unmet.delivered_iops < 600 && unmet.guaranteed_iops > 900, "{unmet:?}");
    }
    // An unused store is not observed.
    bench.clients.iter_mut().for_each(|client| client.load = None);
    bench.run(2 * SECOND);
    assert_eq!(bench.engines[0].next_deadline(), None);
}

#[test]
fn a_disk_has_a_slot_of_its_store_or_none() {
    let mut bench = Bench::new(1, &deep(), 1, 200_000);
    bench.add_disk(0, 0, limits(0, 0));
    let slot = bench.slot(0);
    let other_location = StoreDiskSlot { store: StoreId(1), slot };
    assert!(bench.engines[0].add_disk(spec(1), Some(other_location)).is_err());
    let unknown = StoreDiskSlot { store: STORE, slot: suimon_storage_qos::DiskSlot(9) };
    assert!(bench.engines[0].add_disk(spec(1), Some(unknown)).is_err());
    assert!(bench.engines[0].add_disk(spec(1), None).is_ok());
    assert!(!bench.engines[0].add_store(Time::ZERO, STORE, deep(), None));
}
