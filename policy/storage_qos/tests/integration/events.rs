//! Events for unmet minimums, and the displayed state of each disk.

use std::time::Duration;

use crate::array::{Array, Load, Rig, SECOND, bandwidth, limits, slot};
use suimon_quantity::{DiskId, Time};
use suimon_storage_qos::{
    DeliveryStats, Limits, LimitsOwner, LimitsSource, PolicyKind, PolicySpec, Proposal, QueueCause,
    StoreEvent, UnmetMinimum, UnmetReason,
};

fn array(servers: usize, fixed_ns: u64) -> Array {
    Array { servers, fixed_ns, per_operation_ns: 0, noise_percent: 20 }
}

/// Returns the emitted events for minimums, with their times.
fn minimums(rig: &Rig) -> Vec<&(u64, StoreEvent)> {
    let is_of_minimum = |(_, event): &&(u64, StoreEvent)| {
        matches!(event, StoreEvent::MinimumUnmet(_) | StoreEvent::MinimumMet { .. })
    };
    rig.events.iter().filter(is_of_minimum).collect()
}

/// Returns the first event for an unmet minimum, and its time after `since`.
fn unmet(start: &Rig, since: u64) -> (Duration, &UnmetMinimum) {
    let (reported_at, event) = minimums(start).first().copied().expect("an event was emitted");
    match event {
        StoreEvent::MinimumUnmet(unmet) => (Duration::from_nanos(reported_at - since), unmet),
        _ => panic!("{event:?}"),
    }
}

fn is_about(actual: u64, expected: u64, percent: u64) {
    let difference = actual.abs_diff(expected);
    assert!(difference * 100 <= expected * percent, "{actual}, not about {expected}");
}

#[test]
fn forced_minimums_are_reported_after_a_minute_with_the_disks_served() {
    let mut rig = Rig::new(array(4, 1_000_000), 4000);
    let force = |disk, min| Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits(min, 0, 100)));
    rig.propose(&[force(0, 4000), force(1, 2000), force(2, 0)], true);
    let started_at = rig.now;
    for disk in 0..3 {
        rig.load(disk, Some(Load::full(4096, 32)));
    }
    rig.run(Duration::from_secs(75));
    let (after, unmet) = unmet(&rig, started_at);
    assert!((60..=66).contains(&after.as_secs()), "{after:?}");
    assert_eq!(
        (unmet.owner, unmet.reason),
        (LimitsOwner::Disk(DiskId(0)), UnmetReason::OtherDisks)
    );
    // The whole capacity is shared in proportion to the minimums.
    is_about(unmet.guaranteed_iops, 4000, 1);
    is_about(unmet.delivered_iops, 2667, 3);
    is_about(unmet.demanded_iops, unmet.delivered_iops, 3);
    assert_eq!(unmet.displaced_by[0].disk, DiskId(1));
    is_about(unmet.displaced_by[0].delivered_iops, 1333, 5);
    assert!(unmet.device_latency_ns >= 1_000_000, "{unmet:?}");
    assert!(unmet.external_iops < 200, "{unmet:?}");
    assert_eq!(minimums(&rig).len(), 2, "{:?}", rig.events);
    // One further event is emitted when the shortage ends.
    rig.load(1, None);
    rig.load(2, None);
    rig.run(Duration::from_secs(10));
    assert!(matches!(minimums(&rig)[2].1, StoreEvent::MinimumMet { .. }), "{:?}", rig.events);
    // The event for the capacity was emitted once, too.
    let lows = rig.events.iter().filter(|(_, event)| matches!(event, StoreEvent::CapacityLow(_)));
    assert_eq!(lows.count(), 1, "{:?}", rig.events);
}

#[test]
fn external_load_on_the_device_is_reported() {
    let mut rig = Rig::new(array(8, 1_000_000), 8000);
    rig.set(0, limits(6000, 0, 100));
    rig.set(1, Limits::default());
    for disk in 0..2 {
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.run(Duration::from_secs(30));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
    rig.array.fixed_ns = 2_000_000;
    let started_at = rig.now;
    rig.run(Duration::from_secs(70));
    let (after, unmet) = unmet(&rig, started_at);
    assert!((60..=66).contains(&after.as_secs()), "{after:?}");
    assert_eq!(unmet.reason, UnmetReason::ExternalLoad);
    is_about(unmet.external_iops, 4000, 5);
    is_about(unmet.delivered_iops, 4000, 5);
}

#[test]
fn a_limiting_queue_depth_is_reported_and_delays_no_other_disk() {
    let mut rig = Rig::new(array(8, 1_000_000), 8000);
    rig.set(0, limits(3000, 0, 100));
    rig.set(1, Limits::default());
    rig.load(0, Some(Load::full(4096, 1)));
    rig.load(1, Some(Load::full(4096, 64)));
    let started_at = rig.now;
    rig.run(Duration::from_secs(90));
    let (_, unmet) = unmet(&rig, started_at);
    assert_eq!(unmet.reason, UnmetReason::DeviceLatency);
    assert!(unmet.delivered_iops < 1010, "{unmet:?}");
    let total = rig.all_iops(started_at + 5 * SECOND);
    assert!(total > 0.9 * 8000.0, "{total}: others are held back in vain");
}

#[test]
fn a_disk_with_little_demand_is_guaranteed_little() {
    let mut rig = Rig::new(array(4, 1_000_000), 4000);
    rig.set(0, limits(3000, 0, 100));
    rig.set(1, Limits::default());
    rig.load(0, Some(Load { bytes: 4096, depth: 8, every_ns: SECOND / 100 }));
    rig.load(1, Some(Load::full(4096, 64)));
    rig.run(Duration::from_secs(100));
    assert!(rig.events.is_empty(), "{:?}", rig.events);
    let iops = rig.iops(0, rig.now - 50 * SECOND);
    assert!((iops - 100.0).abs() < 2.0, "{iops}");
    let other_iops = rig.iops(1, rig.now - 50 * SECOND);
    assert!(other_iops > 0.95 * 3900.0, "{other_iops}");
}

/// Returns the share of `cause` in all queueing time.
fn part(delivery: &DeliveryStats, cause: QueueCause) -> f64 {
    let total: u64 = QueueCause::ALL.iter().map(|cause| delivery.queue_time.ns(*cause)).sum();
    delivery.queue_time.ns(cause) as f64 / total.max(1) as f64
}

#[test]
fn a_disk_displays_its_throughput_and_wait_reason() {
    let mut rig = Rig::new(array(16, 1_000_000), 16_000);
    rig.set(0, limits(500, 1000, 100));
    rig.set(1, Limits { max_bandwidth: bandwidth(4096 * 700), ..Limits::default() });
    let shared = PolicySpec { kind: PolicyKind::Aggregated, limits: limits(0, 600, 100) };
    rig.set_policy(1, shared, &[2, 3]);
    for disk in 0..4 {
        rig.load(disk, Some(Load::full(4096, 10)));
    }
    rig.run(Duration::from_secs(400));
    let now = Time::from_ns(rig.now);
    let cases = [
        (0, 1000, 500, QueueCause::OwnMaximum),
        (1, 700, 0, QueueCause::OwnBandwidth),
        (2, 300, 0, QueueCause::SharedPolicy),
        (3, 300, 0, QueueCause::SharedPolicy),
    ];
    for (disk, delivered, guaranteed, cause) in cases {
        let view = rig.scheduler.view(now, slot(disk)).unwrap();
        for (delivery, seconds) in [(view.short, 5), (view.long, 300)] {
            let window = delivery.window_ns / SECOND;
            assert!((seconds..=seconds * 11 / 10).contains(&window), "{window} of {seconds} s");
            is_about(delivery.per_second(delivery.delivered_operations), delivered, 2);
            is_about(delivery.per_second(delivery.guaranteed_operations), guaranteed, 1);
            assert!(part(&delivery, cause) > 0.97, "disk {disk}: {delivery:?}");
            // Nine of ten requests are always queued.
            let waits = delivery.queue_time.ns(cause) as f64 / delivery.window_ns as f64;
            assert!((7.0..10.0).contains(&waits), "disk {disk}: {waits}");
        }
    }
}

#[test]
fn waiting_for_the_device_and_for_minimums_of_others_is_distinguished() {
    let mut rig = Rig::new(array(4, 1_000_000), 4000);
    for disk in 0..2 {
        rig.set(disk, Limits::default());
        rig.load(disk, Some(Load::full(4096, 64)));
    }
    rig.run(Duration::from_secs(10));
    let view = |rig: &Rig| rig.scheduler.view(Time::from_ns(rig.now), slot(1)).unwrap().short;
    assert!(part(&view(&rig), QueueCause::DeviceDepth) > 0.99, "{:?}", view(&rig));
    rig.set(0, limits(3500, 0, 100));
    rig.run(Duration::from_secs(10));
    assert!(part(&view(&rig), QueueCause::OthersMinimums) > 0.5, "{:?}", view(&rig));
}
