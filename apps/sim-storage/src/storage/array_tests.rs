//! Model of an array compared with its parameters.

use suimon_quantity::Time;
use suimon_sim_kernel::{EventQueue, RandomStream, SECOND_NS};

use crate::storage::array::{Array, ArrayEvent, ArraySpec, Io};
use crate::storage::drive::DriveSpec;

fn spec() -> ArraySpec {
    ArraySpec {
        pairs: 5,
        stripe_kb: 256,
        write_cache_mb: 0,
        read_hit_percent: 0,
        link_mb_s: 800,
        controller_us: 100,
        noise_percent: 0,
        drive: DriveSpec {
            rpm: 7200,
            seek_track_us: 440,
            seek_average_us: 8500,
            seek_full_us: 18_080,
            media_mb_s: 100,
            capacity_gb: 1000,
            reorder_window: 1,
        },
    }
}

/// Returns the requests per second at a queue depth. `offset_of` returns the offset of each request
/// by its number.
fn rate(
    spec: ArraySpec,
    depth: u64,
    bytes: u32,
    is_write: bool,
    offset_of: &mut dyn FnMut(u64) -> u64,
) -> f64 {
    let mut array = Array::new(spec, RandomStream::new(1, "array"));
    let mut agenda: EventQueue<ArrayEvent> = EventQueue::new(Time::ZERO);
    let mut requested = 0;
    let mut submit = |array: &mut Array, now: Time| {
        array.send(now, Io { tag: requested, offset: offset_of(requested), bytes, is_write });
        requested += 1;
    };
    (0..depth).for_each(|_| submit(&mut array, Time::ZERO));
    let mut completed = 0u64;
    let until = Time::from_ns(60 * SECOND_NS);
    loop {
        for (time, event) in array.take_planned() {
            agenda.schedule(time, event);
        }
        let Some(event) = agenda.next(until) else { break };
        array.handle(agenda.now(), event);
        for _ in array.take_completed() {
            completed += 1;
            submit(&mut array, agenda.now());
        }
    }
    completed as f64 / 60.0
}

fn random_offsets(bytes: u64) -> impl FnMut(u64) -> u64 {
    let mut random = RandomStream::new(3, "places");
    move |_| random.draw_below(5_000_000_000_000 / bytes) * bytes
}

#[test]
fn seeks_take_the_times_of_the_manual() {
    let drive = spec().drive;
    assert_eq!(drive.seek_ns(0), 440_000);
    assert_eq!(drive.seek_ns(1_000_000_000_000), 18_080_000);
    let mut random = RandomStream::new(1, "seeks");
    let mut random_offset = || random.draw_below(1_000_000_000_000);
    let seeks = 100_000;
    let sum: u64 =
        (0..seeks).map(|_| drive.seek_ns(random_offset().abs_diff(random_offset()))).sum();
    let mean_us = sum as f64 / seeks as f64 / 1000.0;
    assert!((mean_us / 8500.0 - 1.0).abs() < 0.01, "{mean_us}");
}

/// Verifies that a small read at depth 1 takes one seek and half a rotation.
#[test]
fn one_read_at_a_time_takes_a_seek_and_half_a_rotation() {
    let ms = 1000.0 / rate(spec(), 1, 4096, false, &mut random_offsets(4096));
    let expected = 8.5 + 60_000.0 / 7200.0 / 2.0 + 0.041 + 0.105;
    assert!((ms / expected - 1.0).abs() < 0.03, "{ms} of {expected}");
}

/// Verifies that the rate rises with the queue depth until all drives are saturated: ten for reads.
#[test]
fn the_rate_rises_with_the_queue_depth_until_all_drives_are_saturated() {
    let rates: Vec<f64> = [1, 4, 16, 64, 256]
        .map(|depth| rate(spec(), depth, 4096, false, &mut random_offsets(4096)))
        .to_vec();
    let expected = 10.0 * 1000.0 / (8.5 + 4.17 + 0.041);
    assert!(rates[1] > 3.0 * rates[0], "{rates:?}");
    assert!(rates[3] > 0.9 * expected && rates[4] < 1.02 * expected, "{rates:?} of {expected}");
    let looked_ahead =
        ArraySpec { drive: DriveSpec { reorder_window: 16, ..spec().drive }, ..spec() };
    let nearest = rate(looked_ahead, 256, 4096, false, &mut random_offsets(4096));
    assert!(nearest > 1.3 * rates[4], "{nearest} of {rates:?}: the nearest first");
}

#[test]
fn sequential_reads_need_no_seeks() {
    let block = 256 << 10;
    let sequential = rate(spec(), 16, block, false, &mut |number| number * u64::from(block));
    let random = rate(spec(), 16, block, false, &mut random_offsets(block.into()));
    assert!(sequential > 2.5 * random, "{sequential} and {random}");
}

/// Verifies that a write occupies both drives of its pair, and that a cache acknowledges earlier as
/// long as it has space.
#[test]
fn writes_occupy_both_drives_and_a_cache_only_delays_this() {
    let uncached = rate(spec(), 64, 4096, true, &mut random_offsets(4096));
    let expected = 5.0 * 1000.0 / (8.5 + 4.17 + 0.041);
    assert!(uncached < 1.02 * expected && uncached > 0.85 * expected, "{uncached} of {expected}");
    let cached = ArraySpec { write_cache_mb: 16, ..spec() };
    let in_cache = f64::from(16 << 20) / 4096.0;
    let cached_rate = rate(cached, 64, 4096, true, &mut random_offsets(4096)) - in_cache / 60.0;
    assert!((cached_rate / expected - 1.0).abs() < 0.05, "{cached_rate} of {expected}");
}
