use core::time::Duration;

use proptest::prelude::*;

use super::super::PortInfo;
use super::*;

const MS: u64 = 1_000_000;

fn vars(lacp_enabled: bool, ntt: bool) -> Variables {
    let mut vars = Variables::new(PortInfo::default());
    vars.port_enabled = true;
    vars.lacp_enabled = lacp_enabled;
    vars.ntt = ntt;
    vars
}

/// 6.4.16, each rule: LACP_Enabled, periodic state, NTT; sent, NTT afterwards.
#[test]
fn ntt_is_sent_or_cleared_according_to_6_4_16() {
    use PeriodicState::*;
    for (enabled, periodic, ntt, sent) in [
        (true, FastPeriodic, true, true),
        (true, SlowPeriodic, true, true),
        (true, PeriodicTx, true, true),
        (true, FastPeriodic, false, false),
        // In NO_PERIODIC, and with LACP_Enabled FALSE, NTT is set FALSE.
        (true, NoPeriodic, true, false),
        (false, FastPeriodic, true, false),
        (false, NoPeriodic, true, false),
    ] {
        let mut vars = vars(enabled, ntt);
        let mut machine = TransmitMachine::default();
        let is_sent = machine.transition(&mut vars, periodic, Time::from_ns(5));
        assert_eq!(is_sent, sent, "{enabled} {periodic:?} {ntt}");
        assert!(!vars.ntt);
        assert_eq!(machine.deadline(&vars), None);
    }
}

/// 6.4.16: at most three in any Fast_Periodic_Time; the fourth is delayed.
#[test]
fn the_fourth_waits_until_a_second_after_the_first() {
    let mut machine = TransmitMachine::default();
    let mut vars = vars(true, false);
    let mut send = |ms: u64, ns: u64| {
        vars.ntt = true;
        let now = Time::from_ns(ms * MS + ns);
        let sent = machine.transition(&mut vars, PeriodicState::FastPeriodic, now);
        assert_eq!(vars.ntt, !sent);
        (sent, machine.deadline(&vars))
    };
    assert_eq!(send(0, 0), (true, None));
    assert_eq!(send(300, 0), (true, None));
    assert_eq!(send(300, 0), (true, None));
    let due = Time::from_ns(1000 * MS + 1);
    assert_eq!(send(400, 0), (false, Some(due)));
    assert_eq!(send(1000, 0), (false, Some(due)));
    assert_eq!(send(1000, 1), (true, None));
    assert_eq!(send(1001, 0), (false, Some(Time::from_ns(1300 * MS + 1))));
}

proptest! {
    #[test]
    fn no_second_has_more_than_three(gaps in proptest::collection::vec(0u64..700, 1..200)) {
        let mut rate = RateLimiter::default();
        let mut sent: Vec<Time> = Vec::new();
        let mut now = Time::ZERO;
        for gap in gaps {
            now = now + Duration::from_millis(gap);
            if rate.take(now) {
                sent.push(now);
            }
        }
        for four in sent.windows(4) {
            prop_assert!(four[3].since(four[0]) > Duration::from_secs(1), "{four:?}");
        }
    }
}
