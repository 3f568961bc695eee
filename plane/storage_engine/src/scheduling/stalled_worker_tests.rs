//! Workers that do not proceed while they share a store with others.

use proptest::prelude::*;
use suimon_quantity::{DiskId, TimedRateLimit, WorkerId};
use suimon_storage_qos::{
    CATCH_UP_WINDOW, ConfigStep, GRANT_AGE_MAX, LimitsSource, Proposal, StoreSpec,
};

use crate::ABSENT_AFTER;
use crate::scheduling::shared_store_tests::{late, shared, shared_by};
use crate::tests::device_bench::{
    Bench, DELAY_MAX_NS, Load, MILLISECOND, SECOND, STORE, deep, limits,
};

/// Maximum pause in ns of other workers' disks: a stalled worker that uses the whole device depth
/// counts as absent after this time, and another worker reports.
const PAUSE_MAX: u64 = ABSENT_AFTER.as_nanos() as u64 + 200 * MILLISECOND;

/// Creates workers with one disk each, with this maximum and load, on a device with 2000 IOPS.
fn one_disk_each(workers: usize, spec: &StoreSpec, max: u64, depth: u32) -> Bench {
    let mut bench = Bench::new(workers, spec, 8, 4 * MILLISECOND);
    for disk in 0..workers as u32 {
        bench.add_disk(disk as usize, disk, limits(0, max));
        bench.add_client(disk, Load::reads(4096, depth));
    }
    bench
}

fn set_stalled(bench: &mut Bench, workers: &[usize], is_stalled: bool) {
    workers.iter().for_each(|worker| bench.set_stalled(*worker, is_stalled));
}

fn completion_counts(bench: &Bench) -> Vec<u64> {
    bench.clients.iter().map(|client| client.completion_count).collect()
}

/// Checks that no request and no grant is left after the load has ended.
fn check_end(bench: &mut Bench) {
    bench.clients.iter_mut().for_each(|client| client.load = None);
    // Longer than a maximum of 300 IOPS needs for the queued requests of all workers.
    for _ in 0..20 {
        bench.run(SECOND);
        if bench.open() == 0 {
            break;
        }
    }
    assert_eq!(bench.open(), 0);
    bench.run(SECOND);
    let status = bench.engines[0].store_status(STORE).unwrap();
    assert_eq!(
        (status.waiting, status.in_flight_of_worker, status.in_flight_of_all_workers),
        (0, 0, 0)
    );
    let now = bench.time();
    for worker in 1..bench.engines.len() {
        let disks: Vec<u32> = bench
            .disks
            .iter()
            .filter(|(_, disk_location)| disk_location.0 == worker)
            .map(|(disk, _)| *disk)
            .collect();
        disks.iter().for_each(|disk| bench.engines[worker].close_disk(bench.disks[disk].1));
        bench.run(10 * MILLISECOND);
        assert!(bench.engines[worker].remove_store(STORE));
    }
    assert!(bench.engines[0].end_sharing(now, STORE));
    bench.run(SECOND);
    let role = bench.engines[0].store_status(STORE).unwrap().role;
    assert_eq!(role, crate::StoreRole::Sole, "a grant was not returned");
}

/// Returns the specification of a store in which the requests of one disk use the whole queue
/// depth.
fn shallow() -> StoreSpec {
    StoreSpec { depth_min: 4, depth_max: 4, ..StoreSpec::default() }
}

/// The stall begins at different points in the workers' rounds.
#[test]
fn disks_on_other_workers_continue_whichever_worker_is_stalled() {
    for (spec, max) in [(deep(), 0), (shallow(), 0), (deep(), 300), (shallow(), 300)] {
        for (workers, stalled) in [(2, 0), (2, 1), (3, 1)] {
            for step in 0..8 {
                let mut bench = one_disk_each(workers, &spec, max, 16);
                bench.random.0 = step;
                bench.run(20 * MILLISECOND + step * 313_000);
                bench.set_stalled(stalled, true);
                bench.run(PAUSE_MAX);
                let before = completion_counts(&bench);
                bench.run(SECOND);
                let after = completion_counts(&bench);
                for worker in 0..workers {
                    let delivered = after[worker] - before[worker];
                    let case = format!(
                        "{max}, {workers} workers, {stalled}, {step}: {worker} {delivered}"
                    );
                    assert_eq!(delivered >= 285, worker != stalled, "{case}");
                    assert!(max == 0 || delivered < 301 + late(max, 1) as u64, "{case}");
                }
                bench.set_stalled(stalled, false);
                bench.run(SECOND);
                let delivered = completion_counts(&bench)[stalled] - after[stalled];
                assert!(
                    delivered >= 270,
                    "{max}, {workers} workers, {stalled}, {step}: {delivered} later"
                );
                if step % 4 == 0 {
                    check_end(&mut bench);
                }
            }
        }
    }
}

/// Without a shortage of queue depth, the pause is shorter than [`ABSENT_AFTER`].
#[test]
fn the_next_report_replaces_the_deadline_of_a_stalled_worker() {
    for stalled in 0..3 {
        for step in 0..12 {
            let mut bench = one_disk_each(3, &deep(), 500, 4);
            bench.random.0 = step;
            bench.run(100 * MILLISECOND + step * 170_000);
            bench.set_stalled(stalled, true);
            let mut last = completion_counts(&bench);
            for _ in 0..5 {
                bench.run(150 * MILLISECOND);
                let now = completion_counts(&bench);
                let others = (0..3).filter(|worker| *worker != stalled);
                others.for_each(|worker| {
                    assert!(now[worker] > last[worker] + 20, "{stalled}, {step}: {worker}");
                });
                last = now;
            }
        }
    }
}

#[test]
fn several_or_all_workers_are_stalled() {
    for (workers, stalled) in [(3, vec![0, 1]), (4, vec![0, 2, 3]), (2, vec![0, 1])] {
        for spec in [deep(), shallow()] {
            let mut bench = one_disk_each(workers, &spec, 200, 16);
            bench.run(30 * MILLISECOND);
            set_stalled(&mut bench, &stalled, true);
            bench.run(PAUSE_MAX);
            let before = completion_counts(&bench);
            bench.run(SECOND);
            let after = completion_counts(&bench);
            for worker in 0..workers {
                let has_proceeded = after[worker] - before[worker] >= 190;
                assert_eq!(has_proceeded, !stalled.contains(&worker), "{stalled:?}: {worker}");
            }
            // The workers return one after the other.
            for worker in &stalled {
                bench.set_stalled(*worker, false);
                bench.run(SECOND);
                assert!(
                    completion_counts(&bench)[*worker] > after[*worker] + 150,
                    "{stalled:?}: {worker}"
                );
            }
            check_end(&mut bench);
        }
    }
}

#[test]
fn a_minimum_is_met_while_another_worker_is_stalled() {
    for spec in [StoreSpec::default(), shallow()] {
        let mut bench = Bench::new(3, &spec, 8, 200_000);
        for disk in 0..12u32 {
            let min = if disk == 1 { 8000 } else { 0 };
            bench.add_disk(disk as usize % 3, disk, limits(min, 0));
            bench.add_client(disk, Load::reads(4096, 16));
        }
        bench.run(SECOND);
        bench.set_stalled(0, true);
        bench.run(PAUSE_MAX);
        let before = completion_counts(&bench);
        bench.run(2 * SECOND);
        let after = completion_counts(&bench);
        assert!(after[1] - before[1] >= 2 * 7840, "{}", after[1] - before[1]);
        assert!(after[2] > before[2] + 100, "other disks continue beyond the minimum");
        bench.set_stalled(0, false);
        bench.run(SECOND);
        assert!(completion_counts(&bench)[0] > after[0]);
        check_end(&mut bench);
    }
}

#[test]
fn a_change_takes_effect_while_a_worker_is_stalled() {
    for stalled in 0..2 {
        let mut bench = one_disk_each(3, &deep(), 600, 16);
        bench.run(100 * MILLISECOND);
        bench.set_stalled(stalled, true);
        let assigned = LimitsSource::Own(limits(0, 200));
        let changes = (0..3).map(|disk| Proposal::SetDisk(DiskId(disk), assigned));
        // Only the budget is changed: the commands to the workers are not necessary for it.
        let changes = bench.store.apply(&changes.collect::<Vec<_>>(), true).unwrap();
        assert!(bench.shared.as_ref().unwrap().apply(&changes));
        bench.run(PAUSE_MAX);
        let before = completion_counts(&bench);
        bench.run(SECOND);
        let delivered = completion_counts(&bench)[2] - before[2];
        assert!((195..=201 + late(200, 1) as u64).contains(&delivered), "{stalled}: {delivered}");
    }
}

#[test]
fn grants_of_a_stalled_worker_are_bounded_by_its_requests() {
    const DEPTH: u32 = 64;
    let (mut bench, _) = shared(2, 1000, 4096);
    bench.add_client(0, Load::reads(4096, DEPTH));
    bench.run(100 * MILLISECOND);
    bench.set_stalled(0, true);
    for _ in 0..20 {
        bench.run(SECOND / 2);
        let waiting = bench.engines[0].store_status(STORE).unwrap().waiting;
        let unfetched = bench.shared.as_ref().unwrap().unfetched_grants(WorkerId(0));
        assert!(waiting > 0 && unfetched <= waiting + 2 * 16, "{unfetched} of {waiting}");
    }
}

/// Permitted excess with stalled workers, in addition to [`late`]: grants that are fetched within
/// [`GRANT_AGE_MAX`], one request per disk, and the catch-up time for each worker that declines
/// grants.
fn excess_max(rate: u64, workers: usize, disks: usize) -> f64 {
    let ns = (CATCH_UP_WINDOW * workers as u32 + GRANT_AGE_MAX).as_nanos() as u64 + DELAY_MAX_NS;
    late(rate, 1) + (rate * ns) as f64 / SECOND as f64 + disks as f64
}

/// Runs the bench while a worker proceeds for 1 ms after each stall only.
fn run_with_stalls(bench: &mut Bench, worker: usize, stall_ms: u64, cycles: u64) {
    for _ in 0..cycles {
        bench.set_stalled(worker, true);
        bench.run(stall_ms * MILLISECOND);
        bench.set_stalled(worker, false);
        bench.run(MILLISECOND);
    }
}

/// All grants of a worker that fetches them every 26 ms are younger than 26 ms, and some are older
/// than [`GRANT_AGE_MAX`].
#[test]
fn a_worker_with_long_rounds_gets_the_maximum_of_its_disk() {
    for max in [20, 100, 300, 500] {
        let mut bench = one_disk_each(2, &deep(), max, 16);
        run_with_stalls(&mut bench, 0, 25, 20);
        let before = completion_counts(&bench);
        run_with_stalls(&mut bench, 0, 25, 200);
        let after = completion_counts(&bench);
        let max_count = max * 26 * 200 / 1000;
        for worker in 0..2 {
            let delivered = after[worker] - before[worker];
            let min_count = if worker == 0 { max_count * 9 / 10 } else { max_count * 97 / 100 };
            assert!(
                (min_count..=max_count + 1 + late(max, 1) as u64).contains(&delivered),
                "{max}: {worker} {delivered}"
            );
            let excess = bench.device().excess(&[worker as u32], max, 0);
            assert!(excess <= excess_max(max, 1, 1), "{max}: {worker} {excess}");
        }
        check_end(&mut bench);
    }
}

#[test]
fn a_worker_with_long_rounds_gets_its_share_of_a_common_maximum() {
    for (max, stall_ms) in [(300, 25), (1000, 25)] {
        let (mut bench, disks) = shared(2, max, 4096);
        run_with_stalls(&mut bench, 0, stall_ms, 20);
        let start = bench.device().now;
        let before = completion_counts(&bench);
        run_with_stalls(&mut bench, 0, stall_ms, 200);
        let after = completion_counts(&bench);
        let span = bench.device().now - start;
        let max_count = max * span / SECOND;
        let delivered: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        let sum: u64 = delivered.iter().sum();
        let case = format!("{max}, {stall_ms} ms: {delivered:?} of {max_count}");
        // While it is the stalled worker's turn to distribute the next grant, the other one may be
        // idle for longer than the catch-up time.
        assert!(sum * 100 >= max_count * 90, "{case}");
        let excess = bench.device().excess(&disks, max, 0);
        assert!(excess <= excess_max(max, 2, disks.len()), "{case}: {excess}");
        // Disks 0 and 2 are on the stalled worker, with 16 requests each per round at most.
        let share = (max_count / 2).min(2 * 16 * 200);
        assert!((delivered[0] + delivered[2]) * 100 >= share * 70, "{case}");
        check_end(&mut bench);
    }
}

/// Another worker with queued requests takes over soon after the time of the next grant, which the
/// stalled worker should have distributed after each return.
#[test]
fn a_worker_that_is_stalled_again_and_again_does_not_delay_a_common_maximum() {
    let (mut bench, disks) = shared(2, 300, 4096);
    run_with_stalls(&mut bench, 0, 100, 20);
    let start = bench.device().now;
    run_with_stalls(&mut bench, 0, 100, 100);
    let max_count = 300 * (bench.device().now - start) / SECOND;
    let delivered: u64 =
        disks.iter().map(|disk| bench.device().count(*disk, start, u64::MAX)).sum();
    assert!(delivered * 100 >= max_count * 85, "{delivered} of {max_count}");
    let excess = bench.device().excess(&disks, 300, 0);
    assert!(excess <= excess_max(300, 2, disks.len()), "{excess}");
    check_end(&mut bench);
}

/// All operations of the common maximum are granted between the worker's rounds, and its grants are
/// too old when it fetches them. It dispatches one request of each disk per round nevertheless.
#[test]
fn each_disk_of_a_worker_with_very_long_rounds_proceeds() {
    for max in [100, 300] {
        let (mut bench, disks) = shared_by(2, 4, max, Load::reads(4096, 16));
        run_with_stalls(&mut bench, 0, 200, 5);
        let before = completion_counts(&bench);
        run_with_stalls(&mut bench, 0, 200, 20);
        let after = completion_counts(&bench);
        // The disks of the worker have even numbers.
        for disk in disks.iter().map(|disk| *disk as usize).filter(|disk| disk % 2 == 0) {
            let delivered = after[disk] - before[disk];
            assert!(delivered >= 19, "{max}: disk {disk}: {delivered} in 20 rounds");
        }
        let excess = bench.device().excess(&disks, max, 0);
        assert!(excess <= excess_max(max, 2, disks.len()), "{max}: {excess}");
        check_end(&mut bench);
    }
}

#[test]
fn a_cap_of_the_store_limits_all_workers_together() {
    for stalled in [None, Some(0), Some(1)] {
        let mut bench = one_disk_each(2, &deep(), 0, 16);
        bench.run(100 * MILLISECOND);
        if let Some(worker) = stalled {
            bench.set_stalled(worker, true);
        }
        let cap = |iops| TimedRateLimit { reserved_iops: iops, ..TimedRateLimit::default() };
        for iops in [400, 0, 200] {
            let change = [ConfigStep::SetCap(Some(cap(iops)))];
            assert!(bench.shared.as_ref().unwrap().apply(&change));
            bench.run(PAUSE_MAX);
            let start = bench.device().now;
            bench.run(SECOND);
            let count = |disk| bench.device().count(disk, start, u64::MAX);
            let delivered = count(0) + count(1);
            // The grants of a stalled worker count until it declines them.
            let min_count = if stalled.is_some() { iops * 9 / 10 } else { iops * 97 / 100 };
            let max_count = iops + late(iops, 1) as u64;
            assert!(
                (min_count..=max_count).contains(&delivered),
                "{stalled:?}, {iops}: {delivered}"
            );
        }
        (0..2).for_each(|worker| bench.set_stalled(worker, false));
        assert!(bench.shared.as_ref().unwrap().apply(&[ConfigStep::SetCap(None)]));
        bench.run(PAUSE_MAX);
        let before = completion_counts(&bench);
        bench.run(SECOND);
        let delivered: u64 = completion_counts(&bench)
            .iter()
            .zip(before)
            .map(|(answered_count, before)| answered_count - before)
            .sum();
        assert!(delivered > 1900, "{stalled:?}: {delivered} of 2000 without a cap");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Workers are stalled at any time and for any time. The common maximum of all disks holds over
    /// any time window, also when the workers return, and no request is lost or stuck.
    #[test]
    fn a_common_maximum_holds_while_workers_are_stalled_and_return(
        workers in 2usize..5,
        max in prop::sample::select(vec![300u64, 1000, 3000]),
        stalls in prop::collection::vec(
            (0usize..4, any::<bool>(), prop_oneof![
                0u64..MILLISECOND, 0u64..30 * MILLISECOND, 0u64..700 * MILLISECOND,
            ]),
            1..16,
        ),
        seed in any::<u64>(),
    ) {
        // A worker has 512 requests, more than the permitted excess at each rate.
        let (mut bench, disks) = shared_by(workers, 8, max, Load::reads(8192, 64));
        prop_assert!(excess_max(max, workers, disks.len()) < 512.0);
        bench.random.0 = seed;
        bench.run(100 * MILLISECOND);
        for (at, is_stalled, pause) in stalls {
            bench.set_stalled(at % workers, is_stalled);
            bench.run(pause);
        }
        let all: Vec<usize> = (0..workers).collect();
        set_stalled(&mut bench, &all, false);
        bench.run(300 * MILLISECOND);
        let from = bench.device().now;
        bench.run(SECOND);
        let got: u64 =
            disks.iter().map(|disk| bench.device().count(*disk, from, u64::MAX)).sum();
        prop_assert!(got * 100 >= max * 97, "{got} of {max} afterwards");
        let excess = bench.device().excess(&disks, max, 0);
        let most = excess_max(max, workers, disks.len());
        prop_assert!(excess <= most, "{excess} above {most}");
        check_end(&mut bench);
    }
}
