use core::time::Duration;

use super::super::PortInfo;
use super::*;

fn time_at(seconds: u64) -> Time {
    Time::from_ns(7_000_000_000) + Duration::from_secs(seconds)
}

type Setup = fn(&mut Variables);

/// Every transition of Figure 6-19, and every state without one. Rows: from, condition, time, to.
/// The timer expires after 1 s, in SLOW_PERIODIC after 30 s. Unless the row says otherwise, both
/// ends are active and the Partner uses the Short Timeout.
#[test]
#[rustfmt::skip]
fn every_transition_of_figure_6_19_and_no_other() {
    use PeriodicState::*;
    let long_timeout: Setup = |vars| vars.partner.state.set(PortState::TIMEOUT, false);
    let none: Setup = |_| {};
    let passive: Setup = |vars| {
        vars.actor.state.set(PortState::ACTIVITY, false);
        vars.partner.state.set(PortState::ACTIVITY, false);
    };
    let link_down: Setup = |vars| vars.port_enabled = false;
    let disabled: Setup = |vars| vars.lacp_enabled = false;
    let rows: Vec<(&str, PeriodicState, Setup, u64, Option<PeriodicState>)> = vec![
        ("NO_PERIODIC, UCT", NoPeriodic, none, 0, Some(FastPeriodic)),
        ("NO_PERIODIC, !port_enabled", NoPeriodic, link_down, 99, None),
        ("NO_PERIODIC, !LACP_Enabled", NoPeriodic, disabled, 99, None),
        ("NO_PERIODIC, both passive", NoPeriodic, passive, 99, None),
        ("NO_PERIODIC, only the Partner active", NoPeriodic,
            |vars| vars.actor.state.set(PortState::ACTIVITY, false), 0, Some(FastPeriodic)),
        ("NO_PERIODIC, only the Actor active", NoPeriodic,
            |vars| vars.partner.state.set(PortState::ACTIVITY, false), 0, Some(FastPeriodic)),
        ("FAST_PERIODIC, !port_enabled", FastPeriodic, link_down, 1, Some(NoPeriodic)),
        ("FAST_PERIODIC, !LACP_Enabled", FastPeriodic, disabled, 0, Some(NoPeriodic)),
        ("FAST_PERIODIC, both passive", FastPeriodic, passive, 0, Some(NoPeriodic)),
        ("FAST_PERIODIC, periodic_timer", FastPeriodic, none, 1, Some(PeriodicTx)),
        ("FAST_PERIODIC, Long Timeout", FastPeriodic, long_timeout, 0, Some(SlowPeriodic)),
        ("FAST_PERIODIC, else", FastPeriodic, none, 0, None),
        ("SLOW_PERIODIC, !port_enabled", SlowPeriodic, link_down, 0, Some(NoPeriodic)),
        ("SLOW_PERIODIC, !LACP_Enabled", SlowPeriodic, disabled, 0, Some(NoPeriodic)),
        ("SLOW_PERIODIC, both passive", SlowPeriodic, passive, 0, Some(NoPeriodic)),
        ("SLOW_PERIODIC, periodic_timer", SlowPeriodic, long_timeout, 30, Some(PeriodicTx)),
        ("SLOW_PERIODIC, Short Timeout", SlowPeriodic, none, 0, Some(PeriodicTx)),
        ("SLOW_PERIODIC, else", SlowPeriodic, long_timeout, 29, None),
        ("PERIODIC_TX, Short Timeout", PeriodicTx, none, 0, Some(FastPeriodic)),
        ("PERIODIC_TX, Long Timeout", PeriodicTx, long_timeout, 0, Some(SlowPeriodic)),
        ("PERIODIC_TX, !port_enabled", PeriodicTx, link_down, 0, Some(NoPeriodic)),
        ("PERIODIC_TX, !LACP_Enabled", PeriodicTx, disabled, 0, Some(NoPeriodic)),
        ("PERIODIC_TX, both passive", PeriodicTx, passive, 0, Some(NoPeriodic)),
    ];
    for (name, from, setup, seconds, to) in rows {
        let mut vars = Variables::new(PortInfo::default());
        vars.port_enabled = true;
        vars.actor.state.set(PortState::ACTIVITY, true);
        vars.partner.state.set(PortState::ACTIVITY.or(PortState::TIMEOUT), true);
        setup(&mut vars);
        let timer = match from {
            NoPeriodic => None,
            SlowPeriodic => Some(time_at(30)),
            FastPeriodic | PeriodicTx => Some(time_at(1)),
        };
        let mut machine = PeriodicMachine { state: from, timer };
        let now = time_at(seconds);
        assert_eq!(machine.transition(&mut vars, now), to.is_some(), "{name}");
        assert_eq!(machine.state, to.unwrap_or(from), "{name}");
        assert_eq!(vars.ntt, to == Some(PeriodicTx), "{name}");
        match to {
            Some(NoPeriodic) => assert_eq!(machine.timer, None, "{name}"),
            Some(FastPeriodic) => assert_eq!(machine.timer, Some(now + Duration::from_secs(1)), "{name}"),
            Some(SlowPeriodic) => assert_eq!(machine.timer, Some(now + Duration::from_secs(30)), "{name}"),
            Some(PeriodicTx) | None => assert_eq!(machine.timer, timer, "{name}"),
        }
    }
}
