//! Constant load above the capacity of the workers: queues stay. Modelled after guests that shared
//! two CPUs with the workers.

use std::time::Duration;

use crate::host::{Host, Noise, PERIOD};

const MINUTE: Duration = Duration::from_secs(60);
/// Time after the start of a load in which queues may be moved as necessary.
const SETTLED: Duration = Duration::from_secs(10);
const SPREAD_MAX: Duration = Duration::from_secs(2);
const NOISY_SPREAD_MAX: Duration = Duration::from_secs(15);
const PACK_MAX: Duration = Duration::from_secs(10);
/// Demand of a queue that is never satisfied.
const ENDLESS: f64 = 1000.0;

/// Function that changes the host before each step, for a time in seconds since the start.
type Series = Box<dyn FnMut(f64, &mut Host)>;

/// Returns a load in which all queues demand more than available, so that moves do not change the
/// sum; each queue's load varies every quarter of a second.
fn saturated(seed: u64) -> Series {
    let mut noise = Noise::new(seed);
    let mut changed_at = f64::NEG_INFINITY;
    Box::new(move |time_s, host| {
        host.loads.fill(ENDLESS);
        if time_s - changed_at >= PERIOD.as_secs_f64() {
            changed_at = time_s;
            host.weights.fill_with(|| 0.5 + noise.next());
        }
    })
}

/// Returns a load in which the first queue uses a whole worker. The others demand little, but
/// occasionally another program uses a worker's CPU for a second or two.
fn stolen(seed: u64, load: f64, apart_s: f64) -> Series {
    let mut noise = Noise::new(seed);
    // Times at which each worker's CPU is taken and returned.
    let mut stolen_ranges: Vec<(f64, f64)> = Vec::new();
    Box::new(move |time_s, host| {
        stolen_ranges.resize(host.stretch.len(), (0.0, 0.0));
        host.loads.fill_with(|| load * (0.5 + noise.next()));
        host.loads[0] = ENDLESS;
        for (stretch, (from, to)) in host.stretch.iter_mut().zip(&mut stolen_ranges) {
            if time_s >= *to {
                *from = time_s + apart_s * (0.5 + noise.next());
                *to = *from + 0.5 + 1.75 * noise.next();
            }
            *stretch = if time_s < *from { 1.0 } else { 8.0 };
        }
    })
}

/// Returns a load in which the first queue is serviced before all others on its worker, which get
/// almost nothing: shares are unequal.
fn starving(seed: u64) -> Series {
    let mut saturated = saturated(seed);
    Box::new(move |time_s, host| {
        saturated(time_s, host);
        host.weights[0] = 60.0;
    })
}

/// Numbers of queues, permitted workers and existing workers.
const HOSTS: [(usize, u16, u16); 5] = [(5, 2, 2), (5, 4, 8), (8, 2, 8), (16, 4, 8), (24, 8, 8)];

/// Simulates ten minutes of the load: after the first seconds there is at most one move a minute.
fn ten_minutes(name: &str, mut series: impl FnMut(u64) -> Series) {
    for (queues, max, present) in HOSTS {
        for seed in 0..4 {
            let mut host = Host::of(max, present, queues);
            host.loads.fill(0.1);
            host.run(MINUTE);
            let started_at = host.now;
            let mut series = series(seed);
            host.run_with(MINUTE * 10, |host, elapsed| series(elapsed.as_secs_f64(), host));
            let times = host.moves.iter().map(|(time, _)| time.since(started_at));
            let late_moves: Vec<f64> =
                times.filter(|time| *time > SETTLED).map(|time| time.as_secs_f64()).collect();
            println!("{name}, {queues} queues on {max} of {present}: {late_moves:?}");
            let is_apart = |pair: &[f64]| pair[1] - pair[0] >= MINUTE.as_secs_f64();
            assert!(
                late_moves.windows(2).all(is_apart),
                "{name}: {late_moves:?}: {:#?}",
                host.moves
            );
        }
    }
}

#[test]
fn saturated_workers_keep_their_queues() {
    ten_minutes("saturated", saturated);
}

#[test]
fn workers_whose_time_is_stolen_keep_their_queues() {
    for (load, apart_s) in [(5.0, 4.0), (12.0, 4.0), (12.0, 8.0), (25.0, 3.0)] {
        ten_minutes("stolen", |seed| stolen(seed, load, apart_s));
    }
}

#[test]
fn a_queue_that_starves_others_causes_no_repeated_moves() {
    ten_minutes("starving", starving);
}

/// Asserts that after overload of any duration queues are spread after a load step, and packed
/// after its end.
fn a_step_and_its_end(apart_s: f64, spread_max: Duration) {
    for seed in 0..8 {
        let mut host = Host::of(8, 8, 8);
        let mut series = stolen(seed, 12.0, apart_s);
        host.run_with(MINUTE * 5, |host, elapsed| series(elapsed.as_secs_f64(), host));
        host.stretch.fill(1.0);
        host.loads.fill(90.0);
        let started_at = host.now;
        host.run(spread_max);
        let spread = host.throughput();
        println!("seed {seed}: {spread}, spread after {:?}", host.last_shed(started_at));
        assert!(spread >= 8.0 * 90.0 * 0.95, "seed {seed}: {spread}");
        host.run(MINUTE);
        let ended_at = host.now;
        host.loads.fill(0.1);
        host.run(MINUTE);
        assert_eq!(host.used(), [0], "seed {seed}");
        let packed = host.last_move(ended_at).unwrap();
        assert!(packed < PACK_MAX, "seed {seed}: {packed:?}");
    }
}

#[test]
fn a_step_after_steady_overload_is_followed_at_once() {
    a_step_and_its_end(1e9, SPREAD_MAX);
}

/// Queues are spread after the step as soon as it exceeds the usual interruptions by external load.
#[test]
fn a_step_after_unsteady_overload_is_followed_soon() {
    a_step_and_its_end(10.0, NOISY_SPREAD_MAX);
}
