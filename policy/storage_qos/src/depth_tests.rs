use super::*;

/// Simulates a device that takes `least_ns` for each of up to `servers` requests at a time, and
/// longer for more. Returns the depth after `completions` completions.
fn served(
    depth: &mut DepthController,
    now: &mut Time,
    least_ns: u64,
    servers: u64,
    completions: u32,
) -> u32 {
    for _ in 0..completions {
        let limit = u64::from(depth.limit());
        let latency_ns = least_ns * limit.div_ceil(servers);
        *now = *now + Duration::from_nanos((latency_ns / limit).max(1));
        depth.in_flight = depth.limit();
        depth.handle_full();
        depth.handle_completed(*now, 1, 1, latency_ns);
    }
    depth.limit()
}

/// Short latencies at the beginning, such as those of a cache, do not lower the permitted latency
/// permanently.
#[test]
fn initial_cache_hits_do_not_lower_the_permitted_latency() {
    let mut depth = DepthController::new(&StoreSpec::default());
    // The run ends before the first periodic probe.
    let mut now = Time::from_ns(1);
    served(&mut depth, &mut now, 20_000, 64, 200);
    let after = served(&mut depth, &mut now, 400_000, 32, 5_000);
    assert!(now < Time::ZERO + PROBE_EVERY, "{now:?}");
    assert!((16..=120).contains(&after), "{after}");
}

#[test]
fn the_depth_does_not_grow_if_requests_only_wait_in_the_device() {
    let mut depth = DepthController::new(&StoreSpec::default());
    let mut now = Time::from_ns(1);
    let after = served(&mut depth, &mut now, 400_000, 1, 5_000);
    assert!(after <= 3 * START, "{after}");
}

/// A few large requests among many small ones, too few to determine their permitted latency, do not
/// reduce the depth.
#[test]
fn few_large_requests_do_not_reduce_the_depth() {
    let mut depth = DepthController::new(&StoreSpec::default());
    let mut now = Time::from_ns(1);
    for number in 0..2_000u32 {
        let (cost, latency_ns) = if number % 20 == 0 { (64, 3_000_000) } else { (1, 200_000) };
        now = now + Duration::from_nanos(latency_ns / 8);
        depth.in_flight = depth.limit();
        depth.handle_full();
        depth.handle_completed(now, cost, 1, latency_ns);
    }
    assert!(depth.limit() >= 16, "{}", depth.limit());
}

/// Simulates completions of a device that has one request at a time from each of many disks or, if
/// `is_alone`, many requests of one disk. Returns the depth afterwards.
fn used(depth: &mut DepthController, now: &mut Time, is_alone: bool, completions: u32) -> u32 {
    for _ in 0..completions {
        let limit = u64::from(depth.limit());
        // Throughput grows with depth, at a decreasing rate.
        let latency_ns = 30_000 + 11_000 * limit;
        *now = *now + Duration::from_nanos(latency_ns / limit);
        depth.in_flight = depth.limit();
        depth.handle_full();
        depth.record_single_disk(*now, is_alone);
        depth.handle_completed(*now, 1, 1, latency_ns);
    }
    depth.limit()
}

/// A single disk gets the device's full throughput. When another disk becomes active, the shared
/// depth is the same as before.
#[test]
fn a_single_disk_uses_the_full_depth() {
    let mut depth = DepthController::new(&StoreSpec::default());
    let mut now = Time::from_ns(1);
    let shared = used(&mut depth, &mut now, false, 2_000);
    assert!((4..=18).contains(&shared), "{shared}");
    // The disk has been the only user for less than `GONE_AFTER`.
    assert_eq!(used(&mut depth, &mut now, true, 1), shared);
    now = now + GONE_AFTER;
    let single_depth = used(&mut depth, &mut now, true, 2_000);
    assert!((120..=182).contains(&single_depth), "{single_depth}");
    assert_eq!(used(&mut depth, &mut now, false, 1), shared);
    assert_eq!(used(&mut depth, &mut now, true, 200), shared);
}

/// The depth does not become too large on a slow device even if only one disk uses it.
#[test]
fn a_single_disk_does_not_fill_a_slow_device() {
    let mut depth = DepthController::new(&StoreSpec::default());
    let mut now = Time::from_ns(1);
    for _ in 0..2_000 {
        depth.record_single_disk(now, true);
        served(&mut depth, &mut now, 8_000_000, 1, 1);
    }
    assert!(depth.limit() <= 3 * START, "{}", depth.limit());
}
