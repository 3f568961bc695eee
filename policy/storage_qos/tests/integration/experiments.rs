//! Experiments from publications, repeated in virtual time: `qos-host` (limits of ten disks on one
//! array) and the clients of dmclock's simulator.

use std::time::Duration;

use crate::array::{Array, Load, Rig, SECOND, limits};
use suimon_storage_qos::{Limits, StoreSpec};

/// Returns an array of five mirrored pairs of disks behind one LUN, used by ten VMs with random
/// writes of 512 KB at queue depth 1.
fn array_of_ten() -> Array {
    Array { servers: 5, fixed_ns: 6_700_000, per_operation_ns: 187_500, noise_percent: 15 }
}

/// Experiment `qos-host`: maximums and minimums on one host, changed under load.
#[test]
fn qos_host() {
    const BYTES: u32 = 512 << 10;
    let array = array_of_ten();
    let capacity = array.capability(64);
    let mut rig = Rig::new(array, capacity);
    for disk in 1..=10 {
        rig.set(disk, Limits::default());
        rig.load(disk, Some(Load::full(BYTES, 1)));
    }
    let disks = 1..=10u32;
    let (low, high) = (1..=5u32, 6..=10u32);

    // 1. No limits: equal shares.
    rig.run(Duration::from_secs(30));
    let start = rig.now - 20 * SECOND;
    let equal = capacity as f64 / 10.0;
    for disk in disks.clone() {
        let iops = rig.iops(disk, start);
        assert!((iops / equal - 1.0).abs() < 0.05, "disk {disk}: {iops} of {equal}");
    }

    // 2. Five disks have a maximum of 1000; the others' throughput rises.
    for disk in low.clone() {
        rig.set(disk, limits(0, 1000, 100));
    }
    rig.run(Duration::from_secs(30));
    let start = rig.now - 20 * SECOND;
    let rest = (capacity as f64 - 5000.0) / 5.0;
    for disk in low.clone() {
        let iops = rig.iops(disk, start);
        assert!((iops / 1000.0 - 1.0).abs() < 0.02, "disk {disk}: {iops}");
    }
    for disk in high.clone() {
        let iops = rig.iops(disk, start);
        assert!(iops > equal * 1.15 && iops < rest * 1.05, "disk {disk}: {iops} of {rest}");
    }

    // 3. The others have a minimum of 3000, taken from the first five.
    let before = rig.iops(6, start);
    assert!(before < 2950.0, "{before}: nothing would be shown");
    let changed = rig.now;
    for disk in high.clone() {
        rig.set(disk, limits(3000, 0, 100));
    }
    rig.run(Duration::from_secs(4));
    for disk in high.clone() {
        let iops = rig.logs[&disk].iops(changed + 2 * SECOND, rig.now);
        assert!(iops > 0.95 * 3000.0, "disk {disk}: {iops} two seconds after the change");
    }
    rig.run(Duration::from_secs(56));
    let start = rig.now - 50 * SECOND;
    for disk in high.clone() {
        let iops = rig.iops(disk, start);
        assert!(iops > 0.98 * 3000.0, "disk {disk}: {iops}");
    }
    for disk in low {
        let iops = rig.iops(disk, start);
        assert!(iops > 100.0 && iops < 1000.0, "disk {disk}: {iops}");
    }
    assert!(rig.events.is_empty(), "{:?}", rig.events);

    // 4. No limits.
    for disk in disks.clone() {
        rig.set(disk, Limits::default());
    }
    rig.run(Duration::from_secs(30));
    let start = rig.now - 20 * SECOND;
    for disk in disks {
        let iops = rig.iops(disk, start);
        assert!((iops / equal - 1.0).abs() < 0.05, "disk {disk}: {iops} of {equal}");
    }
}

/// Scenario `dmc_sim_100th` of dmclock's simulator: a hundred clients with a demand of 50 IOPS
/// each, on servers with 4000 IOPS together. Each client has a reservation of 20, a limit of 60 and
/// weight 1; the last one starts ten seconds after the others.
#[test]
fn dmclock_100_clients() {
    let array = Array { servers: 100, fixed_ns: 25_000_000, per_operation_ns: 0, noise_percent: 0 };
    let mut rig = Rig::with_spec(array, 4000, StoreSpec::default());
    let load = Load { bytes: 4096, depth: 100, every_ns: SECOND / 50 };
    for disk in 0..100 {
        rig.set(disk, limits(20, 60, 1));
    }
    for disk in 0..99 {
        rig.load(disk, Some(load));
    }
    rig.run(Duration::from_secs(10));
    let started_at = rig.now;
    rig.load(99, Some(load));
    rig.run(Duration::from_secs(14));
    for disk in 0..100 {
        let early = rig.logs[&disk].iops(started_at - 8 * SECOND, started_at);
        let late = rig.logs[&disk].iops(started_at + SECOND, rig.now);
        let share = if disk == 99 { 0.0 } else { 4000.0 / 99.0 };
        assert!((early - share).abs() <= 1.0, "client {disk}: {early} of {share}");
        assert!((20.0..=60.0).contains(&late), "client {disk}: {late}");
        assert!((late - 40.0).abs() <= 1.0, "client {disk}: {late} of 40");
        let window = Duration::from_secs(1);
        let allowed = limits(20, 60, 1).operations_max(window).unwrap();
        let excess = rig.logs[&disk].excess(60, false);
        assert!(excess <= (allowed - 60) as f64 + 1.0, "client {disk}: {excess}");
    }
}
