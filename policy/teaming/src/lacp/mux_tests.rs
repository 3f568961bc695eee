use core::time::Duration;

use super::super::PortInfo;
use super::*;

fn time_at(seconds: u64) -> Time {
    Time::from_ns(7_000_000_000) + Duration::from_secs(seconds)
}

/// Figure 6-22: every transition, and every state without one, for all values of Selected, Ready
/// and Partner Synchronization.
#[test]
fn every_transition_of_figure_6_22_and_no_other() {
    use MuxState::*;
    for from in [Detached, Waiting, Attached, CollectingDistributing] {
        for selected in [Selected::Unselected, Selected::Standby, Selected::Selected] {
            for (ready, in_sync) in [(false, false), (false, true), (true, false), (true, true)] {
                let to = match (from, selected, ready, in_sync) {
                    // Selected = SELECTED or STANDBY.
                    (Detached, Selected::Selected | Selected::Standby, ..) => Some(Waiting),
                    // Selected = UNSELECTED.
                    (Waiting, Selected::Unselected, ..) => Some(Detached),
                    // Selected = SELECTED and Ready = TRUE.
                    (Waiting, Selected::Selected, true, _) => Some(Attached),
                    // Selected = UNSELECTED or STANDBY.
                    (Attached, Selected::Unselected | Selected::Standby, ..) => Some(Detached),
                    // Selected = SELECTED and Partner.Synchronization = TRUE.
                    (Attached, Selected::Selected, _, true) => Some(CollectingDistributing),
                    // Selected = UNSELECTED or STANDBY or Partner.Synchronization = FALSE.
                    (CollectingDistributing, Selected::Unselected | Selected::Standby, ..)
                    | (CollectingDistributing, Selected::Selected, _, false) => Some(Attached),
                    _ => None,
                };
                check(from, selected, ready, in_sync, to);
            }
        }
    }
}

fn check(from: MuxState, selected: Selected, ready: bool, in_sync: bool, to: Option<MuxState>) {
    let name = format!("{from:?} {selected:?} ready {ready} in sync {in_sync}");
    let mut vars = Variables::new(PortInfo::default());
    let mut machine = MuxMachine::new(&mut vars);
    machine.enter(from, &mut vars, time_at(0));
    vars.ntt = false;
    vars.selected = selected;
    vars.ready = ready;
    vars.partner.state.set(PortState::SYNCHRONIZATION, in_sync);
    let before = (machine.clone(), vars.clone());
    assert_eq!(machine.transition(&mut vars, time_at(5)), to.is_some(), "{name}");
    let Some(to) = to else {
        assert_eq!((machine, vars), before, "{name}");
        return;
    };
    assert_eq!(machine.state, to, "{name}");
    let bits = [PortState::SYNCHRONIZATION, PortState::COLLECTING, PortState::DISTRIBUTING];
    let set = bits.map(|bit| vars.actor_has(bit));
    // Contents of the figure's boxes: Actor bits, NTT, wait_while_timer.
    let (expected, ntt, timer) = match to {
        MuxState::Detached => ([false, false, false], true, None),
        MuxState::Waiting => ([false, false, false], false, Some(time_at(7))),
        MuxState::Attached => ([true, false, false], true, None),
        MuxState::CollectingDistributing => ([true, true, true], true, None),
    };
    assert_eq!(set, expected, "{name}");
    assert_eq!(vars.ntt, ntt, "{name}");
    assert_eq!(machine.wait_while, timer, "{name}");
}

/// 6.4.8, Ready_N; 6.4.4, Aggregate_Wait_Time is 2 s.
#[test]
fn a_port_is_ready_when_it_has_waited_for_two_seconds() {
    let mut vars = Variables::new(PortInfo::default());
    let mut machine = MuxMachine::new(&mut vars);
    vars.selected = Selected::Standby;
    assert!(machine.transition(&mut vars, time_at(0)));
    assert!(!machine.tick(&mut vars, time_at(1)) && !vars.ready_n);
    assert!(machine.tick(&mut vars, time_at(2)) && vars.ready_n);
    assert!(!machine.tick(&mut vars, time_at(3)), "once");
    // A port that leaves has to wait again.
    vars.selected = Selected::Unselected;
    assert!(machine.transition(&mut vars, time_at(4)) && !vars.ready_n);
}

/// Figure 6-22, BEGIN.
#[test]
fn a_port_begins_detached() {
    let mut vars = Variables::new(PortInfo::default());
    vars.actor.state = PortState::from_octet(0xff);
    let machine = MuxMachine::new(&mut vars);
    assert_eq!(machine, MuxMachine { state: MuxState::Detached, wait_while: None });
    assert_eq!(vars.actor.state.octet(), !0x38);
    assert!(vars.ntt);
}
