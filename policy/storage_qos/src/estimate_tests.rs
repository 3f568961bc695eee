use proptest::prelude::*;

use super::*;
use crate::SAMPLE_INTERVAL;

const SECOND: u64 = 1_000_000_000;

/// Simulates a device that is always full, with a completion each `every_ns`, for `seconds`
/// seconds. Returns the time at the end in ns.
fn run(estimate: &mut CapacityEstimator, from: u64, every_ns: u64, seconds: u64) -> u64 {
    let deadline = from + seconds * SECOND;
    let (mut now_ns, mut sampled) = (from, from);
    while now_ns < deadline {
        now_ns += every_ns;
        estimate.handle_completed(Time::from_ns(now_ns), 1, 1, true);
        if now_ns >= sampled + SAMPLE_INTERVAL.as_nanos() as u64 {
            sampled = now_ns;
            estimate.sample(Time::from_ns(now_ns), 32);
        }
    }
    now_ns
}

#[test]
fn the_estimate_follows_a_full_device_that_gets_slower() {
    let mut estimate = CapacityEstimator::default();
    let end_ns = run(&mut estimate, SECOND, 100_000, 5);
    let actual = estimate.estimate().unwrap();
    assert!((9_900..=10_000).contains(&actual.iops), "{actual:?}");
    let end_ns = run(&mut estimate, end_ns, 400_000, 10);
    let actual = estimate.estimate().unwrap();
    assert!((2_500..=2_625).contains(&actual.iops), "{actual:?}");
    assert!(Time::from_ns(end_ns).since(actual.sampled_at) <= SAMPLE_INTERVAL);
    run(&mut estimate, end_ns, 100_000, 10);
    assert!(estimate.estimate().unwrap().iops > 9_500);
}

#[test]
fn a_device_with_little_load_gives_no_estimate() {
    let mut estimate = CapacityEstimator::default();
    for step in 1..1000 {
        let now = Time::from_ns(step * 10_000_000);
        estimate.handle_completed(now, 1, 1, false);
        assert!(!estimate.sample(now, 32));
    }
    assert_eq!(estimate.estimate(), None);
}

#[test]
fn time_without_requests_is_not_counted() {
    let mut estimate = CapacityEstimator::default();
    let mut now_ns = SECOND;
    // 60 % of each sample is under load, and the remainder is idle.
    for _ in 0..20 {
        for step in 0..3000u64 {
            estimate.handle_completed(Time::from_ns(now_ns + step * 100_000), 1, 1, true);
        }
        estimate.handle_completed(Time::from_ns(now_ns + 490_000_000), 1, 1, false);
        now_ns += 500_000_000;
        estimate.sample(Time::from_ns(now_ns), 32);
    }
    let actual = estimate.estimate().unwrap();
    assert!((9_900..=10_000).contains(&actual.iops), "{actual:?}");
}

#[test]
fn an_unsettled_depth_gives_no_estimate() {
    let mut estimate = CapacityEstimator::default();
    let mut now_ns = SECOND;
    for depth in [4, 6, 9, 13, 19, 28] {
        for _ in 0..500 {
            now_ns += 1_000_000;
            estimate.handle_completed(Time::from_ns(now_ns), 1, 1, true);
        }
        assert!(!estimate.sample(Time::from_ns(now_ns), depth), "{depth}");
    }
}

proptest! {
    /// For any load, the estimate is never above the throughput of the best half second and never
    /// below that of the worst.
    #[test]
    fn the_estimate_is_never_above_the_throughput(
        samples in prop::collection::vec((20_000u64..20_000_000, 1u32..64, any::<bool>()), 1..40),
    ) {
        let mut estimate = CapacityEstimator::default();
        let (mut now_ns, mut highest, mut lowest) = (SECOND, 0u64, u64::MAX);
        for (every_ns, cost, is_full) in samples {
            let window_start = now_ns;
            let mut operations = 0u64;
            while now_ns < window_start + SECOND / 2 {
                now_ns += every_ns;
                operations += u64::from(cost);
                estimate.handle_completed(Time::from_ns(now_ns), cost.into(), 1, is_full);
            }
            let is_sampled = estimate.sample(Time::from_ns(now_ns), 8);
            prop_assert!(is_full || !is_sampled);
            // One more completion may be counted at either end of the time span.
            let rate = operations * SECOND / (now_ns - window_start);
            (highest, lowest) = (highest.max(rate + 1), lowest.min(rate));
            if let Some(actual) = estimate.estimate() {
                prop_assert!(actual.iops <= highest, "{actual:?} above {highest}");
                prop_assert!(actual.iops + 2 >= lowest, "{actual:?} below {lowest}");
            }
        }
    }
}
