use serde_json::{Value, json};

use super::*;
use crate::{Health, LacpCounters, LacpPortStatus};

fn port(state: &[&str]) -> LacpPortStatus {
    LacpPortStatus {
        system_priority: 32_768,
        system: "02:00:00:00:00:01".parse().unwrap(),
        key: 1,
        port_priority: 255,
        port: 2,
        state: state.iter().map(|bit| (*bit).to_owned()).collect(),
    }
}

fn team() -> TeamStatus {
    let config = json!({"name": "both", "members": ["left"], "mode": "lacp"});
    let lacp = LacpMemberStatus {
        actor: port(&["activity", "aggregation"]),
        partner: port(&[]),
        receive_state: "current".to_owned(),
        periodic_state: "slow-periodic".to_owned(),
        mux_state: "collecting-distributing".to_owned(),
        selection: "selected".to_owned(),
        collecting: true,
        distributing: true,
        actor_churn: "no-churn".to_owned(),
        partner_churn: "monitor".to_owned(),
        looped_port: Some(3),
        last_pdu_age_ms: Some(400),
        counters: LacpCounters { lacpdus_rx: 1, ..LacpCounters::default() },
    };
    let member = TeamMemberStatus {
        uplink: "left".parse().unwrap(),
        state: TeamMemberState::Active,
        reason: "in use".to_owned(),
        link_up: true,
        speed_mbps: Some(10_000),
        is_primary: true,
        is_standby: false,
        rx_bps: 1,
        tx_bps: 2,
        rx_share_ppm: 1_000_000,
        tx_share_ppm: 1_000_000,
        flows_share_ppm: 1_000_000,
        nics: 0,
        counters: PortCounters::default(),
        lacp: Some(lacp),
    };
    TeamStatus {
        config: serde_json::from_value(config).unwrap(),
        switch: Some("lan".parse().unwrap()),
        condition: Condition { health: Health::Up, reason: None },
        counters: PortCounters::default(),
        mtu: 1500,
        speed_mbps: 10_000,
        lacp_partner: Some(LacpPartnerStatus {
            system: "02:00:00:00:00:02".parse().unwrap(),
            system_priority: 1,
            key: 7,
        }),
        members: vec![member],
    }
}

/// Fails if a published key is renamed.
#[test]
fn keys_are_as_published_and_read_as_they_are_written() {
    let json = serde_json::to_value(team()).unwrap();
    assert_eq!(serde_json::from_value::<TeamStatus>(json.clone()).unwrap(), team());
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn absent_values_are_omitted() {
    let mut status = team();
    status.switch = None;
    status.lacp_partner = None;
    status.members[0].lacp = None;
    status.members[0].speed_mbps = None;
    let json = serde_json::to_value(&status).unwrap();
    assert!(json.get("switch").or(json.get("lacp_partner")).is_none(), "{json}");
    let member = &json["members"][0];
    assert!(member.get("lacp").or(member.get("speed_mbps")).is_none(), "{json}");
    assert_eq!(serde_json::from_value::<TeamStatus>(json).unwrap(), status);
}

#[test]
fn states_are_shown_as_they_are_serialised() {
    for state in [TeamMemberState::Active, TeamMemberState::Inactive, TeamMemberState::Failed] {
        assert_eq!(serde_json::to_value(state).unwrap(), Value::from(state.to_string()));
    }
}
