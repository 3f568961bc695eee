use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn bits(rate: u64, burst: u32) -> RateLimit {
    RateLimit::from_bit_rate(BitRate::new(rate).unwrap(), burst)
}

/// Simulates a caller that always has work and retries exactly at the returned times. Returns the
/// cost admitted from `from` to `deadline`.
fn backlogged(limit: RateLimit, from: Time, deadline: Time, cost: u32) -> u64 {
    let mut state = RateLimitState::default();
    let (mut now, mut admitted) = (from, 0);
    while now < deadline {
        match limit.admit(state, now, cost) {
            Ok(next) => {
                state = next;
                admitted += u64::from(cost);
            }
            Err(retry_at) => {
                assert!(retry_at > now, "a wait that does not end");
                now = retry_at;
            }
        }
    }
    admitted
}

#[test]
fn small_frames_at_100_gbit_are_exact() {
    let start = Time::from_ns(86_400 * 365 * SECOND);
    let deadline = start + Duration::from_millis(20);
    let admitted = backlogged(bits(100_000_000_000, 65_536), start, deadline, 64);
    let due = 12_500_000_000 / 50 + 65_536;
    assert!(admitted <= due + 1, "{admitted} > {due}");
    assert!(due - admitted <= 64, "{admitted} of {due}");
}

#[test]
fn a_burst_of_one_frame_keeps_the_rate() {
    let limit = RateLimit::from_frame_rate(1000, 1).unwrap();
    let admitted = backlogged(limit, Time::ZERO, Time::from_ns(10 * SECOND), 1);
    assert!((9_999..=10_001).contains(&admitted), "{admitted}");
    assert_eq!(RateLimit::from_frame_rate(0, 5), None);
}

#[test]
fn a_frame_above_the_burst_is_paid_for_afterwards() {
    let limit = bits(8_000_000, 1500);
    let state = limit.admit(RateLimitState::default(), Time::ZERO, 64_000).unwrap();
    let retry_at = limit.admit(state, Time::ZERO, 1500).unwrap_err();
    assert!(retry_at.since(Time::from_ns(64_000_000)) <= Duration::from_nanos(1), "{retry_at}");
    assert!(retry_at >= Time::from_ns(64_000_000), "{retry_at}");
    assert!(limit.admit(state, retry_at, 1500).is_ok());
}

#[test]
fn a_late_clock_reading_gives_no_second_burst() {
    let limit = bits(200_000_000_000, 100_000);
    let later = Time::from_ns(50 * SECOND);
    let mut state = RateLimitState::default();
    while let Ok(next) = limit.admit(state, later, 1000) {
        state = next;
    }
    let earlier = Time::from_ns(49 * SECOND);
    assert!(limit.admit(state, earlier, 1000).unwrap_err() > later);
}

#[test]
fn idling_past_the_wrap_of_the_units_leaves_one_burst() {
    // At 2^37 bytes per second the units wrap every 2^27 s, about 4 years.
    let limit = bits(1 << 40, 100_000);
    let first = Time::from_ns(SECOND);
    let state = limit.admit(RateLimitState::default(), first, 100_000).unwrap();
    for seconds in [1u64 << 26, (1 << 27) - 100, (1 << 27) + 100, (1 << 33) + 100] {
        let now = first + Duration::from_secs(seconds);
        let state = limit.admit(state, now, 100_000).unwrap();
        assert!(limit.admit(state, now, 1).is_err());
    }
}

#[test]
fn the_slowest_and_the_fastest_rate_do_not_overflow() {
    let slow = bits(1, 1);
    let state = slow.admit(RateLimitState::default(), Time::ZERO, 1).unwrap();
    let retry_at = slow.admit(state, Time::ZERO, 1).unwrap_err();
    assert!((8 * SECOND..=8 * SECOND + 1).contains(&retry_at.as_ns()), "{retry_at}");
    let debt = slow.admit(RateLimitState::default(), Time::ZERO, u32::MAX).unwrap();
    assert_eq!(slow.admit(debt, Time::ZERO, 1), Err(Time::NEVER));
    let fast = bits(u64::MAX, u32::MAX);
    for now in [0, 1, SECOND, u64::MAX / 2, u64::MAX] {
        assert!(fast.admit(RateLimitState::default(), Time::from_ns(now), 1500).is_ok());
    }
    assert!(RateLimit::from_frame_rate(u64::MAX, u32::MAX).is_some());
}

fn any_rate() -> impl Strategy<Value = u64> {
    // Uniform over the magnitudes from 8 bit/s to 1.6 Tbit/s.
    (3u32..41, any::<u64>()).prop_map(|(bits, low)| (1 << bits) | (low & ((1 << bits) - 1)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the caller requests, at most rate × window + burst + one unit is admitted in any
    /// window.
    #[test]
    fn never_more_than_the_rate(
        rate in any_rate(),
        burst in 9_000u32..1_000_000,
        start in 0u64..(1 << 60),
        asks in prop::collection::vec((0u64..100_000, 1u32..9_000), 1..200),
        patience in any::<bool>(),
    ) {
        let limit = bits(rate, burst);
        let mut state = RateLimitState::default();
        let mut now = Time::from_ns(start);
        let mut admitted = Vec::new();
        for (gap_ns, cost) in asks {
            now = now + Duration::from_nanos(gap_ns);
            match limit.admit(state, now, cost) {
                Ok(next) => {
                    state = next;
                    admitted.push((now, cost));
                }
                Err(time) if patience && time != Time::NEVER => {
                    // The returned time is the earliest at which the cost is admitted.
                    let before = Time::from_ns(time.as_ns() - 1);
                    prop_assert!(limit.admit(state, before, cost).is_err());
                    state = limit.admit(state, time, cost).unwrap();
                    admitted.push((time, cost));
                    now = time;
                }
                Err(_) => {}
            }
        }
        for first in 0..admitted.len() {
            let mut sum = 0u128;
            for (time, cost) in &admitted[first..] {
                sum += u128::from(*cost);
                let window_ns = time.since(admitted[first].0).as_nanos();
                // In 8 billionths of a byte, so that nothing is rounded here.
                let allowed = u128::from(rate) * window_ns
                    + (u128::from(burst) + 1) * 8 * u128::from(SECOND);
                prop_assert!(sum * 8 * u128::from(SECOND) <= allowed);
            }
        }
    }

    /// A backlogged caller gets the permitted rate, except for less than one cost.
    #[test]
    fn never_less_than_the_rate(
        rate in any_rate(),
        cost in 1u32..10_000,
        bursts in 2u32..20,
        // Up to 18 years: before the units first wrap.
        start in 0u64..(1 << 59),
    ) {
        // The clock has a resolution of 1 ns, which the burst must compensate.
        let per_ns = u32::try_from(rate / (8 * SECOND)).unwrap() + 1;
        let limit = bits(rate, cost * bursts + per_ns);
        // The time is that of a thousand costs, at any rate.
        let span = BitRate::new(rate).unwrap().time_for_bytes(u64::from(cost) * 1000);
        let start = Time::from_ns(start);
        let admitted = backlogged(limit, start, start + span, cost);
        let due = u128::from(rate) * span.as_nanos() / (8 * u128::from(SECOND));
        prop_assert!(u128::from(admitted) + u128::from(cost) >= due);
    }
}
