//! Reaction times of the placement in virtual time: less than 2 s to spread, less than 10 s to
//! pack.

use std::time::Duration;

use crate::host::{Host, STEP, workers};
use suimon_vmq::VmqSpec;

const SPREAD_MAX: Duration = Duration::from_secs(2);
const PACK_MAX: Duration = Duration::from_secs(10);

/// Returns the demand of a VM's queue with this number of sessions, in percent of a worker.
fn demand_of(sessions: u32) -> f64 {
    match sessions {
        0 => 0.1,
        1 => 4.0,
        11 => 22.0,
        80 => 65.0,
        _ => 140.0,
    }
}

/// Returns the maximum total load of these queues on `workers` workers.
fn attainable(loads: &[f64], workers: usize) -> f64 {
    let total: f64 = loads.iter().map(|percent| percent.min(100.0)).sum();
    total.min(workers as f64 * 100.0)
}

/// Simulates load steps up and down with `queues` queues on at most `max` of `present` workers.
/// Returns the longest times to spread and to pack.
fn steps(max: u16, present: u16, threads: u16, queues: usize) -> (Duration, Duration) {
    let mut slowest = (Duration::ZERO, Duration::ZERO);
    for phase in 0..5u32 {
        for sessions in [1, 11, 80, 420] {
            let spec = VmqSpec { max_workers: max, ..VmqSpec::default() };
            let mut host = Host::new(spec, workers(present, threads, 1), queues);
            host.loads.fill(demand_of(1));
            host.run(Duration::from_secs(30) + STEP * phase);
            let started_at = host.now;
            host.loads.fill(demand_of(sessions));
            host.run(Duration::from_secs(3));
            slowest.0 = slowest.0.max(host.last_shed(started_at).unwrap_or_default());
            host.run(Duration::from_secs(57));
            let usable = usize::from(max.min(present / threads));
            let best = attainable(&host.loads, usable);
            let throughput = host.throughput();
            assert!(throughput >= best * 0.95, "{throughput} of {best}");
            let ended_at = host.now;
            host.loads.fill(demand_of(0));
            host.run(Duration::from_secs(60));
            assert_eq!(host.used(), [0], "{sessions} sessions, {queues} queues");
            slowest.1 = slowest.1.max(host.last_move(ended_at).unwrap_or_default());
        }
    }
    slowest
}

#[test]
fn steps_of_load_spread_in_two_seconds_and_pack_in_ten() {
    for (max, present, threads, queues) in [
        (4, 8, 1, 4),
        (4, 8, 1, 8),
        (8, 8, 1, 8),
        (8, 8, 1, 64),
        (4, 8, 2, 8),
        (16, 16, 1, 32),
        (2, 2, 1, 8),
    ] {
        let (spread, pack) = steps(max, present, threads, queues);
        println!(
            "{queues} queues, at most {max} of {present} workers: spread {spread:?}, pack {pack:?}"
        );
        assert!(spread < SPREAD_MAX, "{spread:?}");
        assert!(pack < PACK_MAX, "{pack:?}");
    }
}

#[test]
fn load_that_comes_and_goes_packs_in_ten_seconds_three_times() {
    let mut host = Host::of(4, 8, 8);
    for _ in 0..3 {
        let started_at = host.now;
        host.loads.fill(demand_of(80));
        host.run(Duration::from_secs(20));
        assert!(host.last_shed(started_at).unwrap() < SPREAD_MAX);
        let ended_at = host.now;
        host.loads.fill(demand_of(0));
        host.run(Duration::from_secs(20));
        assert_eq!(host.used(), [0]);
        assert!(host.last_move(ended_at).unwrap() < PACK_MAX);
    }
}

/// Queues moved by packing may return even if the budget is used up.
#[test]
fn a_step_spreads_in_two_seconds_after_an_hour_of_adversity() {
    for period_s in [10.0, 20.0, 90.0, 240.0] {
        let mut host = Host::of(4, 8, 8);
        host.run_with(Duration::from_secs(3600), |host, elapsed| {
            let is_high = elapsed.as_secs_f64() % period_s < period_s / 2.0;
            host.loads.fill(if is_high { 60.0 } else { 1.0 });
        });
        host.loads.fill(1.0);
        // The hold is at most 15 minutes.
        host.run(Duration::from_secs(1000));
        assert_eq!(host.used(), [0], "{period_s}");
        let started_at = host.now;
        host.loads.fill(demand_of(420));
        host.run(Duration::from_secs(2));
        assert_eq!(host.used(), [0, 1, 2, 3]);
        assert!(host.throughput() > 399.0);
        host.run(Duration::from_secs(28));
        assert!(host.last_shed(started_at).unwrap() < SPREAD_MAX, "{period_s}");
    }
}

/// Experiment with `max_workers`: surplus workers are emptied at once with one move per queue;
/// further ones come into use with the load.
#[test]
fn max_workers_changes_under_load() {
    let mut host = Host::of(4, 8, 8);
    host.loads.fill(90.0);
    host.run(Duration::from_secs(30));
    assert_eq!(host.used().len(), 4);
    assert!(host.throughput() > 399.0);

    let raised = host.now;
    host.set_spec(|spec| spec.max_workers = 8);
    host.run(Duration::from_secs(30));
    assert_eq!(host.used().len(), 8);
    assert!(host.throughput() > 719.0);
    assert!(host.last_move(raised).unwrap() < SPREAD_MAX);

    for max in [4, 1] {
        let (lowered, before) = (host.now, host.moves.len());
        host.set_spec(|spec| spec.max_workers = max);
        let moved: Vec<_> = host.moves[before..].iter().map(|(_, moved)| moved.queue).collect();
        assert_eq!(host.used(), [0, 1, 2, 3][..usize::from(max)], "at once");
        assert_eq!(moved.len(), if max == 4 { 4 } else { 6 }, "one for each: {moved:?}");
        host.run(Duration::from_secs(10));
        assert_eq!(host.moves_since(lowered), 0, "and no other");
    }
    assert!(host.throughput() > 99.0);
}

#[test]
fn queues_leave_a_worker_that_is_busy_with_other_tasks() {
    let mut host = Host::of(1, 4, 4);
    host.loads.fill(10.0);
    host.run(Duration::from_secs(5));
    assert_eq!(host.used(), [0]);
    let started_at = host.now;
    host.other[0] = 98.0;
    host.run(Duration::from_secs(10));
    assert_eq!(host.used(), [1], "all of them, because no more than one may be used");
    assert!(host.last_shed(started_at).unwrap() < SPREAD_MAX);
    assert!(host.throughput() > 39.0);
}
