//! Capacity estimates of an array in virtual time, and the resulting events.

use std::time::Duration;

use crate::array::{Array, Load, Rig, SECOND, limits};
use proptest::prelude::*;
use suimon_storage_qos::StoreEvent;

fn drive(servers: usize, fixed_ns: u64) -> Array {
    Array { servers, fixed_ns, per_operation_ns: 0, noise_percent: 20 }
}

#[test]
fn a_store_too_slow_for_its_minimums_is_reported_and_so_is_its_recovery() {
    let array = drive(16, 1_600_000);
    let mut rig = Rig::new(array.clone(), array.capability(1));
    for disk in 0..4 {
        rig.set(disk, limits(2000, 0, 100));
        rig.load(disk, Some(Load::full(8192, 64)));
    }
    rig.run(Duration::from_secs(60));
    let estimate = rig.scheduler.estimate().unwrap();
    assert!((9_500..=10_200).contains(&estimate.iops), "{estimate:?}");
    // All minimums are met, so no event is emitted.
    assert!(rig.events.is_empty(), "{:?}", rig.events);

    rig.array.fixed_ns *= 2;
    rig.run(Duration::from_secs(10));
    let estimate = rig.scheduler.estimate().unwrap();
    assert!((4_700..=5_300).contains(&estimate.iops), "{estimate:?}");
    rig.run(Duration::from_secs(60));
    let event = rig.events.iter().find_map(|(_, event)| match event {
        StoreEvent::CapacityLow(low) => Some(*low),
        _ => None,
    });
    let low = event.unwrap();
    assert_eq!((low.reserved_iops, low.needed_iops), (8000, 8889));

    rig.array.fixed_ns /= 2;
    rig.run(Duration::from_secs(80));
    let ends =
        |(_, event): &&(u64, StoreEvent)| matches!(event, StoreEvent::CapacitySufficient { .. });
    assert_eq!(rig.events.iter().filter(ends).count(), 1, "{:?}", rig.events);
    let lows = |(_, event): &&(u64, StoreEvent)| matches!(event, StoreEvent::CapacityLow(_));
    assert_eq!(rig.events.iter().filter(lows).count(), 1, "{:?}", rig.events);
}

#[test]
fn a_noisy_fully_reserved_store_is_sufficient() {
    let array = Array { noise_percent: 60, ..drive(2, 2_000_000) };
    let capacity = array.capability(1);
    let mut rig = Rig::new(array, capacity);
    for disk in 0..4 {
        rig.set(disk, limits(capacity * 9 / 10 / 4, 0, 100));
        rig.load(disk, Some(Load::full(8192, 64)));
    }
    let mut dips = 0;
    for _ in 0..1800 {
        rig.run(Duration::from_millis(500));
        let estimate = rig.scheduler.estimate().map_or(0, |estimate| estimate.iops);
        dips += u32::from(estimate < capacity);
    }
    assert!(dips > 100, "the estimate is below what was declared now and then: {dips}");
    assert!(rig.events.is_empty(), "{:?}", rig.events);
}

#[test]
fn throughput_limited_by_maximums_is_not_an_estimate_of_capacity() {
    let array = drive(16, 1_600_000);
    let mut rig = Rig::new(array.clone(), array.capability(1));
    for disk in 0..4 {
        rig.set(disk, limits(0, 500, 100));
        rig.load(disk, Some(Load::full(8192, 64)));
    }
    rig.run(Duration::from_secs(60));
    // At a moment in which all disks are released at once, the device may be full, which gives an
    // estimate for that moment.
    if let Some(estimate) = rig.scheduler.estimate() {
        assert!(estimate.iops > 5_000, "{estimate:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any device and load, the estimate never exceeds the throughput of the best second by
    /// more than the completions at the edges of a sample.
    #[test]
    fn an_estimate_is_never_above_the_throughput(
        servers in 1usize..32,
        fixed_ns in 400_000u64..8_000_000,
        noise_percent in 0u64..60,
        depths in prop::collection::vec(1u32..64, 1..6),
        bytes in 1u32..130_000,
    ) {
        let array = Array { servers, fixed_ns, per_operation_ns: 0, noise_percent };
        let mut rig = Rig::new(array.clone(), array.capability(1));
        for (disk, depth) in (0u32..).zip(&depths) {
            rig.set(disk, limits(0, 0, 100));
            rig.load(disk, Some(Load::full(bytes, *depth)));
        }
        let start = rig.now;
        rig.run(Duration::from_secs(20));
        let cost = f64::from(bytes.div_ceil(8192));
        let windows = (0..).map(|step| start + step * SECOND / 4);
        let windows = windows.take_while(|from| from + SECOND / 2 <= rig.now);
        let delivered = |from: u64| -> f64 {
            rig.logs.values().map(|log| log.iops(from, from + SECOND / 2)).sum()
        };
        let highest = windows.map(delivered).fold(0.0, f64::max);
        if let Some(estimate) = rig.scheduler.estimate() {
            // One completion more or less at each edge of half a second, and the sample is not
            // aligned with the windows.
            let slack = highest * 0.1 + 4.0 * cost;
            prop_assert!(estimate.iops as f64 <= highest + slack, "{estimate:?} above {highest}");
        }
    }
}
