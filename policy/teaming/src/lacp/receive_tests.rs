use core::time::Duration;

use suimon_frame::MacAddr;

use super::super::PortInfo;
use super::super::record::PARTNER_ADMIN;
use super::*;

const START: Time = Time::from_ns(1_000_000_000_000);

fn time_at(seconds: u64) -> Time {
    START + Duration::from_secs(seconds)
}

fn actor() -> PortInfo {
    PortInfo { key: 33, port: 7, state: PortState::AGGREGATION, ..PortInfo::default() }
}

fn partner() -> PortInfo {
    let state = PortState::ACTIVITY.or(PortState::AGGREGATION).or(PortState::SYNCHRONIZATION);
    let system = MacAddr::new([2, 0, 0, 0, 0, 2]);
    PortInfo { system, key: 44, port: 8, state, ..PortInfo::default() }
}

fn pdu(vars: &Variables) -> Lacpdu {
    Lacpdu { version: 1, actor: partner(), partner: vars.actor, collector_max_delay: 0 }
}

/// Returns a machine in this state, with a link, selected, and with a Partner in sync.
fn machine(state: ReceiveState) -> (ReceiveMachine, Variables) {
    let mut vars = Variables::new(actor());
    vars.port_enabled = true;
    vars.partner = partner();
    vars.selected = Selected::Selected;
    (ReceiveMachine { state, current_while: Some(time_at(3)) }, vars)
}

type Setup = fn(&mut Variables);
type Row = (&'static str, ReceiveState, Setup, u64, Option<ReceiveState>);

/// Returns every transition of Figure 6-18, and every state without one. Rows: from, condition,
/// time, to.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    use ReceiveState::*;
    let none: Setup = |_| {};
    let link_down: Setup = |vars| vars.port_enabled = false;
    vec![
        ("INITIALIZE, UCT", Initialize, none, 0, Some(PortDisabled)),
        ("INITIALIZE, UCT, no link", Initialize, link_down, 0, Some(PortDisabled)),
        ("PORT_DISABLED, port_moved", PortDisabled, |vars| vars.port_moved = true, 0, Some(Initialize)),
        ("PORT_DISABLED, port_moved, no link", PortDisabled,
            |vars| { vars.port_moved = true; vars.port_enabled = false; }, 0, Some(Initialize)),
        ("PORT_DISABLED, port_enabled && LACP_Enabled", PortDisabled, none, 0, Some(Expired)),
        ("PORT_DISABLED, port_enabled && !LACP_Enabled", PortDisabled,
            |vars| vars.lacp_enabled = false, 0, Some(LacpDisabled)),
        ("PORT_DISABLED, else", PortDisabled, link_down, 100, None),
        ("EXPIRED, !port_enabled && !port_moved", Expired, link_down, 0, Some(PortDisabled)),
        ("EXPIRED, current_while_timer", Expired, none, 3, Some(Defaulted)),
        ("EXPIRED, else", Expired, none, 2, None),
        ("LACP_DISABLED, !port_enabled && !port_moved", LacpDisabled,
            |vars| { vars.port_enabled = false; vars.lacp_enabled = false; }, 0, Some(PortDisabled)),
        ("LACP_DISABLED, else", LacpDisabled, |vars| vars.lacp_enabled = false, 100, None),
        ("DEFAULTED, !port_enabled && !port_moved", Defaulted, link_down, 0, Some(PortDisabled)),
        ("DEFAULTED, else", Defaulted, |_| {}, 0, None),
        ("CURRENT, !port_enabled && !port_moved", Current, link_down, 0, Some(PortDisabled)),
        ("CURRENT, current_while_timer", Current, none, 3, Some(Expired)),
        ("CURRENT, else", Current, none, 2, None),
    ]
}

#[test]
fn every_transition_of_figure_6_18_and_no_other() {
    for (name, from, setup, seconds, to) in rows() {
        let (mut machine, mut vars) = machine(from);
        setup(&mut vars);
        if !matches!(from, ReceiveState::Current | ReceiveState::Expired) {
            machine.current_while = None;
        }
        assert_eq!(machine.transition(&mut vars, time_at(seconds)), to.is_some(), "{name}");
        assert_eq!(machine.state, to.unwrap_or(from), "{name}");
        if to.is_some() {
            check_entered(&machine, &vars, time_at(seconds), name);
        }
    }
}

/// Asserts the values that the box of the entered state in Figure 6-18 sets.
fn check_entered(machine: &ReceiveMachine, vars: &Variables, now: Time, name: &str) {
    let synchronization = vars.partner_has(PortState::SYNCHRONIZATION);
    let expired = vars.actor_has(PortState::EXPIRED);
    let defaulted = vars.actor_has(PortState::DEFAULTED);
    match machine.state {
        ReceiveState::Initialize => {
            assert_eq!(vars.selected, Selected::Unselected, "{name}");
            assert_eq!(vars.partner, PARTNER_ADMIN, "{name}");
            assert!(defaulted && !expired && !vars.port_moved, "{name}");
        }
        ReceiveState::PortDisabled => {
            // Partner and selection are kept for the Partner's return.
            assert!(!synchronization, "{name}");
            assert_eq!(vars.partner.port, partner().port, "{name}");
            assert_eq!(vars.selected, Selected::Selected, "{name}");
        }
        ReceiveState::Expired => {
            assert!(!synchronization && expired, "{name}");
            assert!(vars.partner_has(PortState::TIMEOUT), "{name}");
            assert_eq!(vars.partner.port, partner().port, "{name}");
            assert_eq!(vars.selected, Selected::Selected, "{name}");
            assert_eq!(machine.current_while, Some(now + Duration::from_secs(3)), "{name}");
        }
        ReceiveState::LacpDisabled => {
            assert_eq!(vars.selected, Selected::Unselected, "{name}");
            assert!(defaulted && !expired && synchronization, "{name}");
            assert!(!vars.partner_has(PortState::AGGREGATION), "{name}");
        }
        ReceiveState::Defaulted => {
            // update_Default_Selected, before recordDefault.
            assert_eq!(vars.selected, Selected::Unselected, "{name}");
            assert_eq!(vars.partner, PARTNER_ADMIN, "{name}");
            assert!(defaulted && !expired, "{name}");
        }
        ReceiveState::Current => unreachable!("only a LACPDU leads there"),
    }
}

/// Figure 6-18: transitions on a received LACPDU; in other states it is ignored.
#[test]
fn a_lacpdu_leads_to_current_from_expired_defaulted_and_current_only() {
    use ReceiveState::*;
    for (from, is_taken) in [
        (Initialize, false),
        (PortDisabled, false),
        (LacpDisabled, false),
        (Expired, true),
        (Defaulted, true),
        (Current, true),
    ] {
        for (timeout, seconds) in [(true, 3), (false, 90)] {
            let (mut machine, mut vars) = machine(from);
            vars.actor.state.set(PortState::TIMEOUT, timeout);
            vars.actor.state.set(PortState::EXPIRED.or(PortState::DEFAULTED), true);
            vars.partner.port = 99;
            let before = (machine.clone(), vars.clone());
            let pdu = pdu(&vars);
            assert_eq!(machine.handle_pdu(&mut vars, &pdu, time_at(1)), is_taken, "{from:?}");
            if !is_taken {
                assert_eq!((machine, vars), before, "{from:?}");
                continue;
            }
            assert_eq!(machine.state, Current);
            assert_eq!(vars.selected, Selected::Unselected, "update_Selected, {from:?}");
            assert_eq!(vars.partner, partner(), "recordPDU, {from:?}");
            assert!(!vars.ntt, "update_NTT, {from:?}");
            assert_eq!(machine.current_while, Some(time_at(1 + seconds)), "{from:?}");
            assert!(!vars.actor_has(PortState::EXPIRED));
            assert!(!vars.actor_has(PortState::DEFAULTED));
        }
    }
}

/// 6.4.12: a Partner that returns while in PORT_DISABLED causes no change of selection.
#[test]
fn the_same_partner_after_a_broken_link_changes_no_selection() {
    let (mut machine, mut vars) = machine(ReceiveState::Current);
    vars.port_enabled = false;
    assert!(machine.transition(&mut vars, time_at(1)));
    vars.port_enabled = true;
    assert!(machine.transition(&mut vars, time_at(2)));
    assert_eq!(machine.state, ReceiveState::Expired);
    let pdu = pdu(&vars);
    assert!(machine.handle_pdu(&mut vars, &pdu, time_at(3)));
    assert_eq!(vars.selected, Selected::Selected);
    assert!(vars.partner_has(PortState::SYNCHRONIZATION));
}

/// Figure 6-18, BEGIN.
#[test]
fn a_port_begins_with_the_configured_partner() {
    let mut vars = Variables::new(actor());
    vars.partner = partner();
    let machine = ReceiveMachine::new(&mut vars);
    assert_eq!(machine.state, ReceiveState::Initialize);
    check_entered(&machine, &vars, Time::ZERO, "BEGIN");
}
