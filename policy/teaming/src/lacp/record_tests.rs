use super::super::constants::VERSION;
use super::*;

fn actor() -> PortInfo {
    PortInfo {
        system_priority: 1,
        system: MacAddr::new([2, 0, 0, 0, 0, 1]),
        key: 33,
        port_priority: 5,
        port: 7,
        state: PortState::ACTIVITY.or(PortState::AGGREGATION).or(PortState::DEFAULTED),
    }
}

fn partner() -> PortInfo {
    PortInfo {
        system_priority: 2,
        system: MacAddr::new([2, 0, 0, 0, 0, 2]),
        key: 44,
        port_priority: 6,
        port: 8,
        state: PortState::ACTIVITY.or(PortState::AGGREGATION).or(PortState::SYNCHRONIZATION),
    }
}

/// Returns a LACPDU from a Partner that has recorded the local end correctly.
fn pdu() -> Lacpdu {
    Lacpdu { version: VERSION, actor: partner(), partner: actor(), collector_max_delay: 0 }
}

fn vars() -> Variables {
    let mut vars = Variables::new(actor());
    vars.partner = partner();
    vars.selected = Selected::Selected;
    vars
}

type Change = fn(&mut Lacpdu);
type AnyChange = Box<dyn Fn(&mut Lacpdu)>;

/// Returns changes of each field that identifies one end of the link.
fn identity(field: fn(&mut Lacpdu) -> &mut PortInfo) -> Vec<AnyChange> {
    vec![
        Box::new(move |pdu| field(pdu).system_priority += 1),
        Box::new(move |pdu| field(pdu).system = MacAddr::new([2, 9, 9, 9, 9, 9])),
        Box::new(move |pdu| field(pdu).key += 1),
        Box::new(move |pdu| field(pdu).port_priority += 1),
        Box::new(move |pdu| field(pdu).port += 1),
        Box::new(move |pdu| field(pdu).state.set(PortState::AGGREGATION, false)),
    ]
}

/// 6.4.9, recordPDU: conditions under which the Partner counts as in sync.
#[test]
fn the_partner_is_in_sync_if_its_state_and_its_view_of_the_actor_match() {
    let rows: [(&str, Change, bool); 9] = [
        ("a) it knows us", |_| {}, true),
        (
            "a) other bits of our state do not matter",
            |pdu| {
                pdu.partner.state = PortState::from_octet(0xff);
            },
            true,
        ),
        (
            "it does not say so",
            |pdu| {
                pdu.actor.state.set(PortState::SYNCHRONIZATION, false);
            },
            false,
        ),
        (
            "b) individual, and does not know us",
            |pdu| {
                pdu.actor.state.set(PortState::AGGREGATION, false);
                pdu.partner = PortInfo::default();
            },
            false,
        ),
        (
            "b) individual, active, and does not know us",
            |pdu| {
                pdu.actor.state = PortState::SYNCHRONIZATION.or(PortState::ACTIVITY);
                pdu.partner = PortInfo::default();
            },
            true,
        ),
        ("b) individual but not in sync", |pdu| pdu.actor.state = PortState::ACTIVITY, false),
        (
            "passive, knows that we are active",
            |pdu| {
                pdu.actor.state.set(PortState::ACTIVITY, false);
            },
            true,
        ),
        (
            "passive, takes us for passive",
            |pdu| {
                pdu.actor.state.set(PortState::ACTIVITY, false);
                pdu.partner.state.set(PortState::ACTIVITY, false);
            },
            false,
        ),
        (
            "takes us for individual",
            |pdu| {
                pdu.partner.state.set(PortState::AGGREGATION, false);
            },
            false,
        ),
    ];
    for (name, change, expected) in rows {
        let (mut vars, mut pdu) = (vars(), pdu());
        change(&mut pdu);
        if name.starts_with("b) individual, and") {
            // Neither the Actor of the PDU nor the local end is active.
            pdu.actor.state.set(PortState::ACTIVITY, false);
        }
        vars.record_pdu(&pdu);
        assert_eq!(vars.partner_has(PortState::SYNCHRONIZATION), expected, "{name}");
        let state = pdu.actor.state.with(PortState::SYNCHRONIZATION, expected);
        assert_eq!(vars.partner, PortInfo { state, ..pdu.actor }, "{name}");
        assert!(!vars.actor_has(PortState::DEFAULTED), "{name}");
    }
}

/// 6.4.9, recordPDU a): each field of the local end has to match.
#[test]
fn a_partner_with_one_wrong_field_is_not_in_sync_and_gets_an_update() {
    for change in identity(|pdu| &mut pdu.partner) {
        let (mut vars, mut pdu) = (vars(), pdu());
        change(&mut pdu);
        vars.record_pdu(&pdu);
        assert!(!vars.partner_has(PortState::SYNCHRONIZATION), "{pdu:?}");
        vars.update_ntt(&pdu);
        assert!(vars.ntt, "{pdu:?}");
    }
}

/// 6.4.9, recordPDU: two passive ends do not maintain the link.
#[test]
fn two_passive_ends_are_not_in_sync() {
    let (mut vars, mut pdu) = (vars(), pdu());
    vars.actor.state.set(PortState::ACTIVITY, false);
    pdu.actor.state.set(PortState::ACTIVITY, false);
    vars.record_pdu(&pdu);
    assert!(!vars.partner_has(PortState::SYNCHRONIZATION));
}

/// 6.4.9, update_Selected: identity of the Partner and Aggregation; no other bit.
#[test]
fn another_partner_unselects() {
    for change in identity(|pdu| &mut pdu.actor) {
        let (mut vars, mut pdu) = (vars(), pdu());
        change(&mut pdu);
        vars.update_selected(&pdu);
        assert_eq!(vars.selected, Selected::Unselected, "{pdu:?}");
    }
    let (mut vars, mut pdu) = (vars(), pdu());
    pdu.actor.state = PortState::AGGREGATION;
    vars.update_selected(&pdu);
    assert_eq!(vars.selected, Selected::Selected);
}

/// 6.4.9, update_Default_Selected: same comparison, against the configured Partner.
#[test]
fn falling_back_to_the_configured_partner_unselects_unless_it_is_the_one() {
    let mut vars = vars();
    vars.update_default_selected();
    assert_eq!(vars.selected, Selected::Unselected);
    vars.selected = Selected::Selected;
    vars.record_default();
    vars.update_default_selected();
    assert_eq!(vars.selected, Selected::Selected);
}

/// 6.4.9, recordDefault: the default Partner is individual and in sync.
#[test]
fn the_configured_partner_is_individual_and_in_sync() {
    let mut vars = vars();
    vars.record_default();
    assert_eq!(vars.partner, PARTNER_ADMIN);
    assert!(vars.partner_has(PortState::SYNCHRONIZATION));
    assert!(!vars.partner_has(PortState::AGGREGATION));
    assert!(vars.actor_has(PortState::DEFAULTED));
}

/// 6.4.9, update_NTT: Activity, Timeout, Synchronization and Aggregation are compared.
#[test]
fn relevant_errors_in_the_partners_view_of_the_actor_need_an_update() {
    let cases = [
        (PortState::ACTIVITY, true),
        (PortState::TIMEOUT, true),
        (PortState::AGGREGATION, true),
        (PortState::SYNCHRONIZATION, true),
        (PortState::COLLECTING, false),
        (PortState::DISTRIBUTING, false),
        (PortState::DEFAULTED, false),
        (PortState::EXPIRED, false),
    ];
    for (bit, expected) in cases {
        let (mut vars, mut pdu) = (vars(), pdu());
        pdu.partner.state = pdu.partner.state.with(bit, !pdu.partner.state.has(bit));
        vars.update_ntt(&pdu);
        assert_eq!(vars.ntt, expected, "{bit:?}");
    }
}
