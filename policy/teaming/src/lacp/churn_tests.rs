use core::time::Duration;

use super::*;

fn time_at(seconds: u64) -> Time {
    Time::from_ns(7_000_000_000) + Duration::from_secs(seconds)
}

/// Every transition of Figures 6-23 and 6-24, and every state without one. Rows: from, enabled, in
/// sync, time in ms, to. The timer expires at 60 s.
#[test]
#[rustfmt::skip]
fn every_transition_of_figures_6_23_and_6_24_and_no_other() {
    use ChurnState::*;
    let rows = [
        ("MONITOR, Synchronization", Monitor, true, true, 0, Some(NoChurn)),
        ("MONITOR, Synchronization as the timer ends", Monitor, true, true, 60, Some(NoChurn)),
        ("MONITOR, churn timer", Monitor, true, false, 60, Some(Churn)),
        ("MONITOR, else", Monitor, true, false, 59, None),
        ("NO_CHURN, !Synchronization", NoChurn, true, false, 0, Some(Monitor)),
        ("NO_CHURN, else", NoChurn, true, true, 99, None),
        ("CHURN, Synchronization", Churn, true, true, 0, Some(NoChurn)),
        ("CHURN, else", Churn, true, false, 99, None),
        ("NO_CHURN, !port_enabled", NoChurn, false, true, 0, Some(Monitor)),
        ("CHURN, !port_enabled", Churn, false, false, 0, Some(Monitor)),
    ];
    for (name, from, enabled, in_sync, seconds, to) in rows {
        let timer = (from == Monitor).then(|| time_at(60));
        let mut machine = super::ChurnMachine { state: from, timer };
        let now = time_at(seconds);
        assert_eq!(machine.transition(enabled, in_sync, now), to.is_some(), "{name}");
        assert_eq!(machine.state, to.unwrap_or(from), "{name}");
        let is_timed = to.unwrap_or(from) == Monitor && enabled;
        assert_eq!(machine.timer.is_some(), is_timed, "{name}");
        if to == Some(Monitor) && enabled {
            assert_eq!(machine.timer, Some(now + Duration::from_secs(60)), "{name}");
        }
    }
}

/// Figures 6-23 and 6-24: while the port is disabled, MONITOR is entered continuously.
#[test]
fn the_timer_starts_when_the_port_is_enabled() {
    let mut machine = ChurnMachine::new();
    assert!(!machine.transition(false, false, time_at(0)));
    assert_eq!(machine.timer, None);
    assert!(machine.transition(true, false, time_at(500)));
    assert_eq!(machine, ChurnMachine { state: ChurnState::Monitor, timer: Some(time_at(560)) });
    assert!(!machine.transition(false, false, time_at(510)));
    assert_eq!(machine.timer, None);
}
