use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::CATCH_UP_WINDOW;

const SECOND: u64 = 1_000_000_000;

fn time_at(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// Dispatches as much as is permitted up to `end`, in requests of `cost` operations. Returns the
/// times of the dispatches.
fn run(gate: &mut CapMeter, from: u64, end: u64, cost: u32) -> Vec<u64> {
    let (mut now, mut admitted) = (from, Vec::new());
    while now < end {
        if gate.is_open(time_at(now)) {
            gate.charge(cost);
            admitted.push(now);
        } else {
            let next = gate.closed_until().unwrap();
            assert!(next.as_ns() > now, "it would be looked at again at once");
            now = next.as_ns();
        }
    }
    admitted
}

#[test]
fn a_lease_expires_and_the_reservation_stays() {
    let cap = TimedRateLimit {
        leased_iops_until: Some((5000, time_at(SECOND))),
        reserved_iops: 1000,
        next_iops_from: None,
    };
    let mut gate = CapMeter::default();
    assert!(gate.is_open(time_at(0)));
    gate.set_cap(time_at(0), Some(cap));
    let admitted = run(&mut gate, 0, 3 * SECOND, 1);
    let early = admitted.iter().filter(|time| **time < SECOND).count();
    let late = admitted.len() - early;
    assert!((4990..=5001).contains(&early), "{early}");
    assert!((1990..=2021).contains(&late), "{late}");
}

#[test]
fn a_closed_cap_admits_nothing_and_the_fallback_rate_starts_on_time() {
    let late = Some((500, time_at(2 * SECOND)));
    let mut gate = CapMeter::default();
    gate.set_cap(
        time_at(0),
        Some(TimedRateLimit { next_iops_from: late, ..TimedRateLimit::default() }),
    );
    assert!(!gate.is_open(time_at(SECOND)));
    assert_eq!(gate.closed_until(), Some(time_at(2 * SECOND)));
    let admitted = run(&mut gate, SECOND, 3 * SECOND, 1);
    assert!(admitted.iter().all(|time| *time >= 2 * SECOND));
    assert!((490..=511).contains(&admitted.len()), "{}", admitted.len());
    gate.set_cap(time_at(3 * SECOND), Some(TimedRateLimit::default()));
    assert!(!gate.is_open(time_at(4 * SECOND)));
    assert_eq!(gate.closed_until(), Some(Time::NEVER));
    gate.set_cap(time_at(4 * SECOND), None);
    assert!(gate.is_open(time_at(4 * SECOND)));
}

#[test]
fn an_expired_lease_admits_nothing_after_idling() {
    let cap = TimedRateLimit {
        leased_iops_until: Some((100_000, time_at(SECOND))),
        reserved_iops: 10,
        next_iops_from: None,
    };
    let mut gate = CapMeter::default();
    gate.set_cap(time_at(0), Some(cap));
    let admitted = run(&mut gate, 30 * SECOND, 31 * SECOND, 1);
    assert!(admitted.len() <= 11, "{}", admitted.len());
}

#[test]
fn refunded_requests_may_be_admitted_again() {
    let mut gate = CapMeter::default();
    gate.set_cap(
        time_at(0),
        Some(TimedRateLimit { reserved_iops: 100, ..TimedRateLimit::default() }),
    );
    assert!(gate.is_open(time_at(0)));
    gate.charge(50);
    assert_eq!(gate.closed_until(), Some(time_at(SECOND / 2)));
    gate.refund(50);
    assert!(gate.is_open(time_at(0)));
    let admitted = run(&mut gate, 0, SECOND, 1).len();
    assert!((99..=101).contains(&admitted), "{admitted}");
}

proptest! {
    /// Whenever caps are replaced, no time window has more dispatches than they permitted.
    #[test]
    fn never_more_than_the_caps_allowed(
        caps in prop::collection::vec(
            (1_u64..SECOND, 0_u64..20_000, 0_u64..2_000, 1_u64..SECOND), 1..8),
        cost in 1_u32..8,
    ) {
        let mut gate = CapMeter::default();
        let (mut now, mut admitted) = (0, Vec::new());
        // Permitted rates with the start of each.
        let mut allowed: Vec<(u64, u64)> = Vec::new();
        for (span, leased, reserved, lease) in &caps {
            let end = now + lease;
            let cap =
                TimedRateLimit { leased_iops_until: Some((*leased, time_at(end))), reserved_iops: *reserved, next_iops_from: None };
            gate.set_cap(time_at(now), Some(cap));
            allowed.push((now, (*leased).max(*reserved)));
            if end < now + span {
                allowed.push((end, *reserved));
            }
            admitted.extend(run_bounded(&mut gate, now, now + span, cost));
            now += span;
        }
        let rate_max = allowed.iter().map(|(_, rate)| *rate).max().unwrap_or_default();
        let capacity_between = |from: u64, to: u64| {
            let mut sum = 0_u128;
            for (index, (begin, rate)) in allowed.iter().enumerate() {
                let end = allowed.get(index + 1).map_or(now, |next| next.0);
                let (begin, end) = ((*begin).max(from), end.min(to));
                sum += u128::from(end.saturating_sub(begin)) * u128::from(*rate);
            }
            sum / u128::from(SECOND)
        };
        let slack = u128::from(rate_max) * CATCH_UP_WINDOW.as_nanos() / u128::from(SECOND)
            + u128::from(cost) + 1;
        for (first, from) in admitted.iter().enumerate().step_by(7) {
            for (last, to) in admitted.iter().enumerate().skip(first).step_by(5) {
                let completed = (last - first + 1) as u128 * u128::from(cost);
                prop_assert!(completed <= capacity_between(*from, *to) + slack, "{completed} from {from} to {to}");
            }
        }
    }
}

/// As [`run`], also for caps that never permit a dispatch.
fn run_bounded(gate: &mut CapMeter, from: u64, end: u64, cost: u32) -> Vec<u64> {
    let (mut now, mut admitted) = (from, Vec::new());
    while now < end {
        if gate.is_open(time_at(now)) {
            gate.charge(cost);
            admitted.push(now);
            now += u64::try_from(Duration::from_micros(20).as_nanos()).unwrap();
        } else {
            now = gate.closed_until().map_or(end, |next| next.as_ns().max(now + 1));
        }
    }
    admitted
}
