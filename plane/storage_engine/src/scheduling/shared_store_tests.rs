//! Storage QoS with several workers on a store.

use core::ops::Range;

use proptest::prelude::*;
use suimon_quantity::DiskId;
use suimon_storage_qos::{
    CATCH_UP_WINDOW, LOAN_IDLE_MAX, LimitsSource, PolicyId, PolicyKind, PolicySpec, Proposal,
};

use crate::StoreRole;
use crate::tests::device_bench::{
    Bench, DELAY_MAX_NS, Load, MILLISECOND, SECOND, STORE, deep, limits,
};

/// Creates workers with two disks each. All disks share the maximum `max` and have requests of
/// `bytes` bytes.
pub(crate) fn shared(workers: usize, max: u64, bytes: u64) -> (Bench, Vec<u32>) {
    shared_by(workers, 2, max, Load::reads(bytes, 16))
}

/// Creates workers with this number of disks each. All disks share one maximum and have this load.
pub(crate) fn shared_by(
    workers: usize,
    disks_each: usize,
    max: u64,
    load: Load,
) -> (Bench, Vec<u32>) {
    let mut bench = Bench::new(workers, &deep(), 32, 200_000);
    let policy = PolicyId(1);
    let spec = PolicySpec { kind: PolicyKind::Aggregated, limits: limits(0, max) };
    bench.propose(&[Proposal::SetPolicy(policy, spec)]);
    let disks: Vec<u32> = (0..(disks_each * workers) as u32).collect();
    for &disk in &disks {
        bench.propose(&[Proposal::SetDisk(DiskId(disk), LimitsSource::Policy(policy))]);
        bench.add_known(disk as usize % workers, disk);
        bench.add_client(disk, load);
    }
    (bench, disks)
}

/// Returns the number of operations by which several workers may exceed a maximum: the tolerance of
/// one scheduler, and the maximum's operations while loans are held and during rounds of workers.
pub(crate) fn late(rate: u64, largest: u64) -> f64 {
    let ns = CATCH_UP_WINDOW.as_nanos() as u64 + LOAN_IDLE_MAX.as_nanos() as u64 + 3 * DELAY_MAX_NS;
    (rate * ns) as f64 / SECOND as f64 + largest as f64 + 1.0
}

#[test]
fn the_sum_over_workers_is_exact() {
    for workers in [2, 4] {
        for (max, bytes) in [(1000, 4096), (4000, 65_536), (20_000, 8192)] {
            let (mut bench, disks) = shared(workers, max, bytes);
            let start = bench.device().now;
            bench.run(3 * SECOND);
            let device = bench.device();
            let delivered: u64 =
                disks.iter().map(|disk| device.count(*disk, start, u64::MAX)).sum();
            let excess = device.excess(&disks, max, 0);
            assert!(excess <= late(max, bytes.div_ceil(8192)), "{workers}, {max}: {excess}");
            assert!(delivered * 100 >= 3 * max * 98, "{workers}: {delivered} of {max}");
        }
    }
}

#[test]
fn a_minimum_is_met_whichever_worker_the_disk_is_on() {
    for workers in [2, 4] {
        let mut bench = Bench::new(workers, &Default::default(), 8, 200_000);
        for disk in 0..4 * workers as u32 {
            // The disk with the minimum is not on the first worker, which shared its scheduler.
            let min = if disk == 1 { 8000 } else { 0 };
            bench.add_disk(disk as usize % workers, disk, limits(min, 0));
            bench.add_client(disk, Load::reads(4096, 32));
        }
        bench.run(SECOND);
        let start = bench.device().now;
        bench.run(2 * SECOND);
        let delivered = bench.device().count(1, start, u64::MAX);
        assert!(delivered >= 2 * 7840, "{workers}: {delivered}");
        let total: u64 = (0..16).map(|disk| bench.device().count(disk, start, u64::MAX)).sum();
        assert!(total > 2 * 36_000, "{workers}: {total} of 80 000");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Under load, a worker that is the only user of a store shares the store and becomes the only
    /// user again.
    #[test]
    fn sharing_a_store_and_ending_that_preserves_charges(
        max in prop::sample::select(vec![300u64, 3000, 15_000]),
        times in 1usize..8,
        pause in MILLISECOND..60 * MILLISECOND,
        seed in any::<u64>(),
    ) {
        let mut bench = Bench::new(1, &deep(), 32, 200_000);
        bench.random.0 = seed;
        for disk in 0..2 {
            bench.add_disk(0, disk, limits(0, max));
            bench.add_client(disk, Load::reads(8192, 32));
        }
        for _ in 0..times {
            for is_shared in [true, false] {
                let now = bench.time();
                if is_shared {
                    prop_assert!(bench.engines[0].share_store(now, STORE).is_some());
                } else {
                    prop_assert!(bench.engines[0].end_sharing(now, STORE));
                }
                bench.run(pause);
                let role = if is_shared { StoreRole::Shared } else { StoreRole::Sole };
                prop_assert_eq!(bench.engines[0].store_status(STORE).unwrap().role, role);
            }
        }
        let from = bench.device().now;
        bench.run(SECOND);
        for disk in 0..2 {
            let got = bench.device().count(disk, from, u64::MAX);
            prop_assert!(got * 100 >= max * 97 && got <= max + late(max, 1) as u64, "{got}");
            let excess = bench.device().excess(&[disk], max, 0);
            prop_assert!(excess <= late(max, 1), "{excess}");
        }
        bench.clients.iter_mut().for_each(|seat| seat.load = None);
        bench.run(2 * SECOND);
        prop_assert_eq!(bench.open(), 0);
        prop_assert_eq!(bench.engines[0].store_status(STORE).unwrap().in_flight_of_all_workers, 0);
    }
}

#[test]
fn a_worker_without_disks_removes_the_store() {
    let (mut bench, disks) = shared(2, 2000, 4096);
    bench.run(100 * MILLISECOND);
    // The first worker's disks are removed. The other worker is then the only user.
    for disk in disks.iter().filter(|disk| *disk % 2 == 0) {
        bench.clients[*disk as usize].load = None;
        let (worker, number) = bench.disks[disk];
        bench.engines[worker].close_disk(number);
    }
    bench.run(100 * MILLISECOND);
    assert!(bench.engines[0].remove_store(STORE));
    bench.run(200 * MILLISECOND);
    assert_eq!(bench.engines[0].store_status(STORE), None);
    let now = bench.time();
    assert!(bench.engines[1].end_sharing(now, STORE));
    bench.run(20 * MILLISECOND);
    assert_eq!(bench.engines[1].store_status(STORE).unwrap().role, StoreRole::Sole);
    let start = bench.device().now;
    bench.run(SECOND);
    let delivered: u64 =
        disks.iter().map(|disk| bench.device().count(*disk, start, u64::MAX)).sum();
    assert!((1960..=2041).contains(&delivered), "{delivered}");
}

/// Closes a disk, and runs the bench until the disk is returned.
fn close_disk(bench: &mut Bench, disk: u32) {
    bench.clients[disk as usize].load = None;
    let (worker, number) = bench.disks[&disk];
    bench.engines[worker].close_disk(number);
    while bench.engines[worker].poll_closed_disk().is_none() {
        bench.run(10_000);
    }
}

/// Returns workers on one device, with a disk on each except worker `closed`, whose disk was
/// closed.
fn closed_at(workers: u32, closed: u32, seed: u64) -> Bench {
    // Requests complete sooner than rounds of workers.
    let mut bench = Bench::new(workers as usize, &deep(), 32, DELAY_MAX_NS / 5);
    bench.random.0 = seed;
    for disk in 0..workers {
        bench.add_disk(disk as usize, disk, limits(0, 0));
        bench.add_client(disk, Load::reads(4096, 3));
    }
    bench.run(10 * MILLISECOND);
    close_disk(&mut bench, closed);
    bench.run(seed * 10_000);
    bench
}

/// One worker removes the store under load of the other one.
fn one_worker_leaves(seeds: Range<u64>) {
    for (seed, leaving) in seeds.flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let mut bench = closed_at(2, leaving, seed);
        let (leaving, remaining) = (leaving as usize, 1 - leaving as usize);
        assert!(bench.engines[leaving].remove_store(STORE));
        bench.run(10 * MILLISECOND);
        assert_eq!(bench.engines[leaving].store_status(STORE), None);
        let before = bench.clients[remaining].completion_count;
        bench.run(100 * MILLISECOND);
        assert!(
            bench.clients[remaining].completion_count > before + 200,
            "seed {seed}: a request of the client does not complete"
        );
        // All loans were returned, so the worker can become the only user of the store.
        let now = bench.time();
        assert!(bench.engines[remaining].end_sharing(now, STORE));
        bench.run(100 * MILLISECOND);
        let status = bench.engines[remaining].store_status(STORE).unwrap();
        assert_eq!(status.role, StoreRole::Sole, "seed {seed}: {status:?}");
    }
}

#[test]
fn a_worker_that_leaves_a_store_keeps_no_grants() {
    one_worker_leaves(0..40);
}

/// A worker that is leaving a store gets a disk of it again.
#[test]
fn a_worker_that_leaves_a_store_may_return_at_once() {
    for seed in 0..20 {
        let mut bench = closed_at(2, 0, seed);
        assert!(bench.engines[0].remove_store(STORE));
        bench.run(seed % 7 * 10_000);
        let (now, shared) = (bench.time(), bench.shared.clone());
        assert!(bench.engines[0].add_store(now, STORE, deep(), shared.as_ref()), "seed {seed}");
        bench.add_disk(0, 2, limits(0, 1000));
        let client_index = bench.add_client(2, Load::reads(4096, 8));
        let start = bench.device().now;
        bench.run(SECOND);
        let delivered = bench.device().count(2, start, u64::MAX);
        assert!(
            (980..=1000 + late(1000, 1) as u64).contains(&delivered),
            "seed {seed}: {delivered}"
        );
        assert!(
            bench.clients[client_index].completion_count > 0
                && bench.clients[1].completion_count > 2000,
            "seed {seed}"
        );
    }
}

/// Both workers remove the store at the same time, and one of them gets a disk of it again at once.
fn use_after_all_workers_left(seeds: Range<u64>) {
    for seed in seeds {
        let mut bench = closed_at(2, 0, seed);
        close_disk(&mut bench, 1);
        assert!(bench.engines[1].remove_store(STORE) && bench.engines[0].remove_store(STORE));
        bench.run(seed % 7 * 10_000);
        let now = bench.time();
        bench.shared = None;
        assert!(bench.engines[1].add_store(now, STORE, deep(), None), "seed {seed}");
        bench.add_disk(1, 2, limits(0, 0));
        let client_index = bench.add_client(2, Load::reads(4096, 1));
        bench.run(100 * MILLISECOND);
        assert!(
            bench.clients[client_index].completion_count > 200,
            "seed {seed}: a request of the client does not complete"
        );
        let status = bench.engines[1].store_status(STORE).unwrap();
        assert_eq!(status.role, StoreRole::Sole, "seed {seed}");
        assert_eq!(bench.engines[0].store_status(STORE), None);
    }
}

#[test]
fn a_store_that_all_workers_left_is_used_again() {
    use_after_all_workers_left(0..40);
}

/// Placeholders of a queue that was closed are queued at a low maximum when the store is used again
/// with a new scheduler.
#[test]
fn placeholders_of_a_former_budget_are_not_counted_in_another_one() {
    let mut bench = Bench::new(2, &deep(), 32, 200_000);
    for disk in 0..2 {
        bench.add_disk(disk as usize, disk, limits(0, 5));
        bench.add_client(disk, Load::reads(4096, 16));
    }
    bench.run(100 * MILLISECOND);
    close_disk(&mut bench, 0);
    close_disk(&mut bench, 1);
    assert!(bench.engines[0].remove_store(STORE) && bench.engines[1].remove_store(STORE));
    let waiting = bench.engines[1].store_status(STORE).unwrap().waiting;
    assert!(waiting >= 14, "{waiting} placeholders");
    let now = bench.time();
    bench.shared = None;
    assert!(bench.engines[1].add_store(now, STORE, deep(), None));
    // The new scheduler has disks in the same slots.
    for change in bench.store.config_steps() {
        bench.engines[1].apply_store_change(now, STORE, change);
    }
    bench.run(100 * MILLISECOND);
    let status = bench.engines[1].store_status(STORE).unwrap();
    assert_eq!((status.waiting, status.in_flight_of_all_workers), (0, 0));
    let view = bench.engines[1].disk_view(bench.time(), STORE, bench.slot(1)).unwrap();
    assert_eq!(
        (view.counters.demanded_operations, view.counters.delivered_operations),
        (0, 0),
        "{view:?}"
    );
}

/// The times of samples do not depend on whether the store is shared in between.
#[test]
fn sharing_a_store_causes_no_sample() {
    let mut bench = Bench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 0));
    bench.add_client(0, Load::reads(4096, 4));
    bench.run(SECOND);
    let sampled = |bench: &Bench| bench.engines[0].stores.get(0).unwrap().sampling.sampled_at;
    let before = sampled(&bench);
    let now = bench.time();
    assert!(bench.engines[0].share_store(now, STORE).is_some());
    bench.run(20 * MILLISECOND);
    let now = bench.time();
    assert!(bench.engines[0].end_sharing(now, STORE));
    bench.run(20 * MILLISECOND);
    assert_eq!(bench.engines[0].store_status(STORE).unwrap().role, StoreRole::Sole);
    assert_eq!(sampled(&bench), before);
    bench.run(SECOND);
    assert!(sampled(&bench) > before);
}

/// A worker with a disk of the store ends without leaving the store.
#[test]
fn a_worker_that_ends_does_not_keep_the_store_shared() {
    let (mut bench, disks) = shared(2, 2000, 4096);
    bench.run(100 * MILLISECOND);
    let stopped_engine = bench.engines.remove(0);
    drop(stopped_engine);
    // The other worker is now the first one.
    bench.clients.retain(|client| client.worker == 1);
    bench.clients.iter_mut().for_each(|client| client.worker = 0);
    let now = bench.time();
    assert!(bench.engines[0].end_sharing(now, STORE));
    bench.run(300 * MILLISECOND);
    assert_eq!(bench.engines[0].store_status(STORE).unwrap().role, StoreRole::Sole);
    let start = bench.device().now;
    bench.run(SECOND);
    let delivered: u64 =
        disks.iter().map(|disk| bench.device().count(*disk, start, u64::MAX)).sum();
    assert!((1960..=2041).contains(&delivered), "{delivered}");
}

#[test]
fn a_closed_disk_of_another_worker_is_charged_too() {
    let (mut bench, _) = shared(2, 20, 4096);
    bench.run(500 * MILLISECOND);
    let start = bench.device().now;
    let before: u64 = bench.clients.iter().map(|client| client.completion_count).sum();
    // A queue with 16 queued requests.
    bench.clients[1].load = None;
    let queue = bench.clients[1].queue;
    bench.engines[1].close_queue(queue);
    bench.run(10 * MILLISECOND);
    assert_eq!(bench.engines[1].poll_closed_queue().unwrap().0, queue);
    bench.run(10 * SECOND);
    let after: u64 = bench.clients.iter().map(|client| client.completion_count).sum();
    assert!((200..=218).contains(&(after - before)), "{} in 10 s of 20", after - before);
    assert!(
        bench.device().count(1, start, u64::MAX) <= 18,
        "requests of the closed queue bypass the maximum once"
    );
    // The store is removed from that worker only when its requests are charged.
    bench.clients.iter_mut().for_each(|client| client.load = None);
    bench.run(10 * SECOND);
    assert_eq!(bench.open(), 0);
    assert_eq!(bench.engines[0].store_status(STORE).unwrap().in_flight_of_all_workers, 0);
}

mod full {
    use super::*;

    #[test]
    fn a_worker_that_leaves_a_store_keeps_no_grants() {
        one_worker_leaves(40..400);
    }

    #[test]
    fn a_store_that_all_workers_left_is_used_again() {
        use_after_all_workers_left(40..400);
    }
}
