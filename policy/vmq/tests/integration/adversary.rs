//! Adversarial loads that provoke repeated moves, an hour of each in virtual time.

use std::f64::consts::TAU;
use std::time::Duration;

use crate::host::{Host, Noise};

const HOUR: Duration = Duration::from_secs(3600);

/// Function that sets the demand of each queue, in percent of a worker, for a time in seconds since
/// the start.
type Series = Box<dyn FnMut(f64, &mut [f64])>;

/// Returns a square wave: high in one half of each period, low in the other.
fn square(period_s: f64, low: f64, high: f64) -> Series {
    Box::new(move |index, requested| {
        requested.fill(if index % period_s < period_s / 2.0 { high } else { low });
    })
}

/// Returns a sawtooth between `low` and `high`.
fn sawtooth(period_s: f64, low: f64, high: f64) -> Series {
    Box::new(move |index, requested| {
        let phase = index % period_s / period_s;
        let height = if phase < 0.5 { phase * 2.0 } else { 2.0 - phase * 2.0 };
        requested.fill(low + (high - low) * height);
    })
}

/// Returns a load in which groups of queues are busy in turn: group `n` has the queues with this
/// remainder modulo `groups`.
fn alternating(period_s: f64, groups: usize, high: f64) -> Series {
    Box::new(move |index, requested| {
        let round = (index / period_s) as usize % groups;
        for (number, percent) in requested.iter_mut().enumerate() {
            *percent = if number % groups == round { high } else { 2.0 };
        }
    })
}

/// Returns a load in which two queues are busy, always a different pair.
fn pairs(period_s: f64) -> Series {
    Box::new(move |index, requested| {
        let round = (index / period_s) as usize;
        let (first, second) =
            (round % requested.len(), (round / requested.len() + round + 1) % requested.len());
        requested.fill(5.0);
        requested[first] = 60.0;
        requested[second] = 60.0;
    })
}

/// Returns a load that is typical of a host: a slow curve, decaying bursts, and noise at every
/// step.
fn recorded(seed: u64, mean: f64) -> Series {
    let mut noise = Noise::new(seed);
    let mut bursts: Vec<f64> = Vec::new();
    Box::new(move |time_s, loads| {
        bursts.resize(loads.len(), 0.0);
        let curve = 1.0 + 0.3 * (time_s / 1800.0 * TAU).sin();
        for (percent, burst) in loads.iter_mut().zip(&mut bursts) {
            *burst = if noise.next() < 0.004 { mean * 2.0 * noise.next() } else { *burst * 0.9 };
            *percent = mean * curve * (0.6 + 0.8 * noise.next()) + *burst;
        }
    })
}

/// Simulates an hour of the load. Moves never exceed the burst, one a minute and one return per
/// queue; in the second half hour, with the burst used up, they are at most one a minute.
fn an_hour(name: &str, queues: usize, workers_max: u16, mut series: Series) {
    let mut host = Host::of(workers_max, 8, queues);
    let start = host.now;
    host.run_with(HOUR, |host, elapsed| series(elapsed.as_secs_f64(), &mut host.loads));
    let (total, settled) = (host.moves.len(), host.moves_since(start + HOUR / 2));
    println!(
        "{name}, {queues} queues, at most {workers_max}: {total} moves, \
         {settled} in the second half hour; hold {:?}",
        host.vmq.pack_delay()
    );
    let saved = (queues * 6).max(16);
    assert!(total <= saved + 60 + queues, "{name}: {total}");
    // One more move, which may fall on the edge of the half hour.
    assert!(settled <= 30 + 1, "{name}: {settled}");
}

#[test]
fn square_waves_of_every_period() {
    for period_s in [0.2, 0.25, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 240.0, 600.0] {
        for (low, high) in [(1.0, 60.0), (7.0, 12.0)] {
            let name = format!("square wave of {period_s} s from {low} to {high} %");
            an_hour(&name, 8, 4, square(period_s, low, high));
        }
    }
}

#[test]
fn sawtooth_at_the_marks() {
    for period_s in [1.0, 10.0, 20.0, 40.0, 100.0, 300.0] {
        for (low, high) in [(7.0, 11.0), (0.0, 50.0)] {
            let name = format!("sawtooth of {period_s} s from {low} to {high} %");
            an_hour(&name, 8, 4, sawtooth(period_s, low, high));
        }
    }
}

#[test]
fn queues_that_take_turns() {
    for period_s in [0.5, 1.0, 4.0, 10.0, 30.0, 60.0] {
        for groups in [2, 3] {
            let name = format!("{groups} groups in turns of {period_s} s");
            an_hour(&name, 8, 4, alternating(period_s, groups, 90.0));
        }
        an_hour(&format!("pairs for {period_s} s"), 8, 4, pairs(period_s));
        an_hour(&format!("two alternate each {period_s} s"), 2, 4, alternating(period_s, 2, 95.0));
        an_hour(&format!("pairs for {period_s} s on two"), 4, 2, pairs(period_s));
    }
}

#[test]
fn noisy_loads() {
    for seed in 0..2 {
        for mean in [1.0, 8.0, 12.0, 30.0, 45.0, 70.0] {
            an_hour(&format!("noise {seed} around {mean} %"), 8, 4, recorded(seed, mean));
        }
    }
}

/// A constant load causes no moves once the placement has settled.
#[test]
fn a_steady_load_moves_nothing() {
    for percent in 0..150 {
        let mut host = Host::of(4, 8, 5);
        for (number, load) in host.loads.iter_mut().enumerate() {
            *load = f64::from(percent) * (1.0 + number as f64 / 5.0);
        }
        host.run(Duration::from_secs(60));
        let settled = host.now;
        host.run(Duration::from_secs(600));
        assert_eq!(host.moves_since(settled), 0, "{percent} %: {:?}", host.moves);
    }
}
