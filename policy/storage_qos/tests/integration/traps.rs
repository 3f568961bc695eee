//! Known faults of other schedulers of this kind.

use std::time::Duration;

use crate::array::{Array, Load, Rig, SECOND, bandwidth, limits};
use suimon_quantity::{Iops, TimedRateLimit};
use suimon_storage_qos::{Burst, Limits, PolicyKind, PolicySpec};

fn array() -> Array {
    Array { servers: 4, fixed_ns: 1_000_000, per_operation_ns: 0, noise_percent: 20 }
}

fn is_about(actual: f64, expected: f64, percent: f64) {
    assert!(
        (actual - expected).abs() <= expected * percent / 100.0,
        "{actual}, not about {expected}"
    );
}

/// Service that a disk received beyond its weight because of its minimum is not charged to it
/// later.
#[test]
fn a_disk_that_loses_its_minimum_is_not_starved() {
    let mut rig = Rig::new(array(), 4000);
    rig.set(0, limits(3500, 0, 10));
    rig.set(1, limits(0, 0, 1000));
    for disk in 0..2 {
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.run(Duration::from_secs(60));
    is_about(rig.iops(0, rig.now - 30 * SECOND), 3500.0, 2.0);
    for disk in 0..2 {
        rig.set(disk, limits(0, 0, 100));
    }
    rig.run(Duration::from_secs(2));
    let start = rig.now - SECOND;
    is_about(rig.iops(0, start), rig.iops(1, start), 5.0);
}

/// Operations that a disk's maximum prevented are not owed to it.
#[test]
fn a_disk_that_loses_its_maximum_gets_no_more_than_its_share() {
    let mut rig = Rig::new(array(), 4000);
    rig.set(0, limits(0, 50, 100));
    rig.set(1, Limits::default());
    for disk in 0..2 {
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.run(Duration::from_secs(60));
    rig.set(0, Limits::default());
    rig.run(Duration::from_secs(2));
    let start = rig.now - 1_900_000_000;
    is_about(rig.iops(0, start), rig.iops(1, start), 5.0);
}

/// Operations by weight count for the minimum: a disk whose share exceeds its minimum gets the
/// share, not both.
#[test]
fn a_minimum_is_no_addition_to_a_share() {
    let mut rig = Rig::new(array(), 4000);
    rig.set(0, limits(1000, 0, 100));
    rig.set(1, limits(0, 0, 100));
    for disk in 0..2 {
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.run(Duration::from_secs(10));
    let start = rig.now - 8 * SECOND;
    is_about(rig.iops(0, start), rig.iops(1, start), 2.0);
}

/// Capacity used beyond a disk's minimum is not a debt when other disks become active.
#[test]
fn a_disk_that_had_everything_still_has_its_minimum() {
    let mut rig = Rig::new(array(), 4000);
    rig.set(0, limits(2000, 0, 1));
    rig.set(1, limits(0, 0, 1000));
    rig.load(0, Some(Load::full(4096, 64)));
    rig.run(Duration::from_secs(60));
    assert!(rig.iops(0, rig.now - 10 * SECOND) > 3900.0);
    rig.load(1, Some(Load::full(4096, 64)));
    let start = rig.now;
    rig.run(Duration::from_secs(1));
    assert!(rig.iops(0, start) > 0.97 * 2000.0, "{}", rig.iops(0, start));
}

/// A burst has its configured rate and length, and is available again only after idling.
#[test]
fn a_burst_lasts_its_configured_time_and_becomes_available_again() {
    let fast = Array { servers: 16, fixed_ns: 500_000, ..array() };
    let mut rig = Rig::new(fast, 30_000);
    let burst = Some(Burst { iops: Iops::new(3000).unwrap(), seconds: 4 });
    rig.set(0, Limits { burst, ..limits(0, 1000, 100) });
    let second = |rig: &mut Rig, expected: f64| {
        let start = rig.now;
        rig.run(Duration::from_secs(1));
        is_about(rig.iops(0, start), expected, 4.0);
    };
    rig.load(0, Some(Load::full(4096, 32)));
    for _ in 0..4 {
        second(&mut rig, 3000.0);
    }
    for _ in 0..4 {
        second(&mut rig, 1000.0);
    }
    // Half of the credit is back after half of the time.
    rig.load(0, None);
    rig.run(Duration::from_secs(4));
    rig.load(0, Some(Load::full(4096, 32)));
    for _ in 0..2 {
        second(&mut rig, 3000.0);
    }
    second(&mut rig, 1000.0);
}

/// Many small and few large requests: disks with the same number of operations get the same share,
/// regardless of request size.
#[test]
fn large_and_small_requests_share_by_operations() {
    let array =
        Array { servers: 4, fixed_ns: 100_000, per_operation_ns: 100_000, noise_percent: 20 };
    let mut rig = Rig::new(array, 20_000);
    for (disk, bytes) in [(0, 8192), (1, 65_536), (2, 1 << 20)] {
        rig.set(disk, Limits::default());
        rig.load(disk, Some(Load::full(bytes, 64)));
    }
    rig.run(Duration::from_secs(40));
    let start = rig.now - 30 * SECOND;
    for disk in 1..3 {
        is_about(rig.iops(disk, start), rig.iops(0, start), 3.0);
    }
}

/// Changed weights take effect at once.
#[test]
fn a_new_weight_is_in_effect_at_once() {
    let mut rig = Rig::new(array(), 4000);
    for disk in 0..2 {
        rig.set(disk, Limits::default());
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.run(Duration::from_secs(5));
    rig.set(0, limits(0, 0, 300));
    rig.run(Duration::from_secs(1));
    let start = rig.now - 900_000_000;
    is_about(rig.iops(0, start), 3.0 * rig.iops(1, start), 5.0);
}

/// A minimum that the disk's own bandwidth prevents is not owed, and takes nothing from other
/// minimums.
#[test]
fn a_minimum_above_the_own_bandwidth_takes_nothing_from_others() {
    for depth in [1, 64] {
        let mut rig = Rig::new(array(), 4000);
        rig.set(0, Limits { max_bandwidth: bandwidth(8192 * 200), ..limits(1000, 0, 100) });
        rig.set(1, limits(2000, 0, 1));
        rig.set(2, limits(0, 0, 10_000));
        for (disk, depth) in [(0, depth), (1, 64), (2, 64)] {
            rig.load(disk, Some(Load::full(8192, depth)));
        }
        rig.run(Duration::from_secs(20));
        let start = rig.now - 15 * SECOND;
        is_about(rig.iops(0, start), 200.0, 2.0);
        is_about(rig.iops(1, start), 2000.0, 2.0);
        is_about(rig.iops(2, start), 1800.0, 3.0);
    }
}

/// Operations that the store could not perform are not owed when it recovers.
#[test]
fn a_slow_minute_is_not_made_up_for_at_others_cost() {
    let mut rig = Rig::new(array(), 4000);
    rig.set(0, limits(3000, 0, 1));
    rig.set(1, limits(0, 0, 10_000));
    for disk in 0..2 {
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.array.fixed_ns = 4_000_000;
    rig.run(Duration::from_secs(50));
    assert!(rig.iops(0, rig.now - 10 * SECOND) > 950.0);
    rig.array.fixed_ns = 1_000_000;
    rig.run(Duration::from_secs(2));
    let start = rig.now - SECOND;
    is_about(rig.iops(0, start), 3000.0, 5.0);
    is_about(rig.iops(1, start), 1000.0, 15.0);
}

/// Disks with a shared minimum get it together, also beside a disk with a large weight.
#[test]
fn a_shared_minimum_is_met_in_sum() {
    let mut rig = Rig::new(array(), 4000);
    let spec = PolicySpec { kind: PolicyKind::Aggregated, limits: limits(2400, 0, 1) };
    rig.set_policy(1, spec, &[0, 1, 2]);
    rig.set(3, limits(0, 0, 10_000));
    for disk in 0..4 {
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.run(Duration::from_secs(10));
    let start = rig.now - 8 * SECOND;
    for disk in 0..3 {
        is_about(rig.iops(disk, start), 800.0, 2.0);
    }
    is_about(rig.iops(3, start), 1600.0, 3.0);
    // Other disks use the minimum of an idle disk.
    rig.load(2, None);
    rig.run(Duration::from_secs(10));
    let start = rig.now - 8 * SECOND;
    is_about(rig.iops(0, start), 1200.0, 2.0);
}

/// Holding other disks back has no effect while a device is slow. After the device has recovered, a
/// minimum is met again after about as long.
#[test]
fn a_minimum_is_back_soon_after_a_fault() {
    let mut rig = Rig::new(Array { servers: 8, ..array() }, 8000);
    rig.set(0, limits(700, 0, 100));
    rig.set(1, Limits::default());
    rig.load(0, Some(Load::full(4096, 1)));
    rig.load(1, Some(Load::full(4096, 64)));
    rig.run(Duration::from_secs(20));
    let met = |rig: &Rig, start: u64| {
        let iops = rig.iops(0, start);
        assert!(iops > 0.97 * 700.0, "{iops}");
    };
    met(&rig, rig.now - 10 * SECOND);
    for fault in [1, 3, 10] {
        rig.array.fixed_ns = 20_000_000;
        rig.run(Duration::from_secs(fault));
        rig.array.fixed_ns = 1_000_000;
        rig.run(Duration::from_secs(fault.max(2) + 2));
        let start = rig.now;
        rig.run(Duration::from_secs(10));
        met(&rig, start);
    }
}

/// A maximum slightly above the minimum suffices to make up for slow requests, with one large
/// request at a time.
#[test]
fn a_minimum_is_met_below_a_maximum_next_to_it() {
    let array = Array { servers: 2, fixed_ns: 0, per_operation_ns: 114_000, noise_percent: 60 };
    for (min, max) in [(2857, 2919), (2857, 3200), (2857, 2857), (1000, 1000)] {
        let mut rig = Rig::new(array.clone(), 17_500);
        rig.set(0, limits(min, max, 100));
        for disk in 1..10 {
            rig.set(disk, Limits::default());
        }
        for disk in 0..10 {
            rig.load(disk, Some(Load::full(512 << 10, 1)));
        }
        rig.run(Duration::from_secs(3));
        for _ in 0..6 {
            let start = rig.now;
            rig.run(Duration::from_secs(5));
            let iops = rig.iops(0, start);
            let tolerance = 64.0 / 5.0;
            assert!(iops > 0.98 * min as f64 - tolerance, "{iops} of {min}, maximum {max}");
            assert!(iops < 1.016 * max as f64 + 2.0 * tolerance, "{iops} above {max}");
        }
    }
}

/// Below a cap, the minimum of a disk with one large request at a time is met beside disks whose
/// demand exceeds the cap; and the cap holds.
#[test]
fn a_minimum_is_met_first_below_a_cap() {
    let array =
        Array { servers: 8, fixed_ns: 4_000_000, per_operation_ns: 60_000, noise_percent: 30 };
    for (cap, min) in [(8000, 4000), (6000, 5000), (5000, 1000)] {
        let mut rig = Rig::new(array.clone(), 17_500);
        rig.cap(Some(TimedRateLimit { reserved_iops: cap, ..TimedRateLimit::default() }));
        rig.set(0, limits(min, 0, 1));
        for disk in 1..6 {
            rig.set(disk, limits(0, 0, 1000));
        }
        rig.load(0, Some(Load::full(512 << 10, 1)));
        for disk in 1..6 {
            rig.load(disk, Some(Load::full(64 << 10, 8)));
        }
        rig.run(Duration::from_secs(3));
        for _ in 0..4 {
            let start = rig.now;
            rig.run(Duration::from_secs(5));
            let (iops, total) = (rig.iops(0, start), rig.all_iops(start));
            assert!(iops > 0.98 * min as f64 - 64.0 / 5.0, "{iops} of {min} below {cap}");
            assert!(
                total < 1.01 * cap as f64 + 64.0 / 5.0 && total > 0.97 * cap as f64,
                "{total} of {cap}"
            );
        }
    }
}

/// Without a share, nothing is dispatched, regardless of minimums.
#[test]
fn a_cap_of_zero_takes_precedence_over_minimums() {
    let mut rig = Rig::new(array(), 4000);
    rig.cap(Some(TimedRateLimit::default()));
    rig.set(0, limits(1000, 0, 100));
    rig.load(0, Some(Load::full(4096, 8)));
    rig.run(Duration::from_secs(5));
    assert!(rig.iops(0, rig.now - 5 * SECOND) < 1.0);
    rig.cap(Some(TimedRateLimit { reserved_iops: 500, ..TimedRateLimit::default() }));
    let start = rig.now;
    rig.run(Duration::from_secs(5));
    is_about(rig.iops(0, start), 500.0, 2.0);
}
