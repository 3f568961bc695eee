use serde_json::json;
use suimon_contract::{Condition, Health, LacpCounters, PortCounters};

use super::*;

fn end(system: &str, priority: u16, bits: &[&str]) -> LacpPortStatus {
    LacpPortStatus {
        system_priority: priority,
        system: system.parse().unwrap(),
        key: 7,
        port_priority: 255,
        port: 12,
        state: bits.iter().map(|bit| (*bit).to_owned()).collect(),
    }
}

const IN_USE: [&str; 5] =
    ["activity", "aggregation", "synchronization", "collecting", "distributing"];

fn lacp(actor: LacpPortStatus, partner: LacpPortStatus) -> LacpMemberStatus {
    let is_used = has(&partner, "distributing");
    let states =
        if is_used { ("current", "collecting-distributing") } else { ("defaulted", "detached") };
    LacpMemberStatus {
        actor,
        partner,
        receive_state: states.0.to_owned(),
        periodic_state: "slow-periodic".to_owned(),
        mux_state: states.1.to_owned(),
        selection: "selected".to_owned(),
        collecting: is_used,
        distributing: is_used,
        actor_churn: "no-churn".to_owned(),
        partner_churn: "no-churn".to_owned(),
        looped_port: None,
        last_pdu_age_ms: is_used.then_some(17_400),
        counters: LacpCounters::default(),
    }
}

fn member(name: &str, state: TeamMemberState, reason: &str) -> TeamMemberStatus {
    let is_active = state == TeamMemberState::Active;
    TeamMemberStatus {
        uplink: name.parse().unwrap(),
        state,
        reason: reason.to_owned(),
        link_up: true,
        speed_mbps: is_active.then_some(10_000),
        is_primary: false,
        is_standby: false,
        rx_bps: if is_active { 9_412_000_000 } else { 0 },
        tx_bps: if is_active { 1_200_000 } else { 0 },
        rx_share_ppm: if is_active { 1_000_000 } else { 0 },
        tx_share_ppm: if is_active { 1_000_000 } else { 0 },
        flows_share_ppm: if is_active { 1_000_000 } else { 0 },
        nics: 0,
        counters: PortCounters::default(),
        lacp: None,
    }
}

fn team(config: serde_json::Value, members: Vec<TeamMemberStatus>) -> TeamStatus {
    TeamStatus {
        config: serde_json::from_value(config).unwrap(),
        switch: Some("lan".parse().unwrap()),
        condition: Condition { health: Health::Up, reason: None },
        counters: PortCounters {
            rx_frames: 12_345_678,
            rx_bytes: 9_876_543_210,
            tx_frames: 12,
            tx_bytes: 640,
            ..PortCounters::default()
        },
        mtu: 1500,
        speed_mbps: 10_000,
        lacp_partner: None,
        members,
    }
}

fn with_lacp() -> TeamStatus {
    let mut left_member = member("left", TeamMemberState::Active, "in use");
    let actor = || end("02:00:00:00:00:01", 32_768, &IN_USE);
    left_member.lacp = Some(lacp(actor(), end("02:00:00:00:00:02", 100, &IN_USE)));
    let mut right = member("right", TeamMemberState::Failed, "nobody speaks LACP there");
    let single = end("02:00:00:00:00:01", 32_768, &["activity", "short-timeout", "defaulted"]);
    right.lacp = Some(lacp(single, end("00:00:00:00:00:00", 65_535, &["expired"])));
    let config = json!({
        "name": "both", "members": ["left", "right"], "mode": "lacp", "lacp_timer": "fast",
        "vmq": {"max_workers": 2},
    });
    let mut team = team(config, vec![left_member, right]);
    team.lacp_partner = Some(LacpPartnerStatus {
        system: "02:00:00:00:00:02".parse().unwrap(),
        system_priority: 100,
        key: 7,
    });
    team
}

fn independent() -> TeamStatus {
    let mut left_member = member("left", TeamMemberState::Failed, "its link is down");
    left_member.link_up = false;
    let mut right = member("right", TeamMemberState::Active, "in use");
    right.nics = 3;
    right.is_primary = true;
    right.is_standby = true;
    let config = json!({
        "name": "spare", "members": ["left", "right"], "mode": "switch-independent",
        "algorithm": "hyper-v-port", "standby": "right",
    });
    let mut team = team(config, vec![left_member, right]);
    team.switch = None;
    team.condition = Condition { health: Health::Down, reason: Some("nobody uses it".to_owned()) };
    team
}

#[test]
fn teams_are_a_line_each() {
    insta::assert_snapshot!(TeamConfig::table(&[with_lacp(), independent()]).render());
}

#[test]
fn a_team_with_lacp_shows_the_state_of_both_ends_of_each_link() {
    insta::assert_snapshot!(TeamConfig::details(&with_lacp()));
}

#[test]
fn a_team_without_lacp_shows_its_roles_and_no_partner() {
    insta::assert_snapshot!(TeamConfig::details(&independent()));
}

#[test]
fn each_state_bit_has_its_letter_and_position() {
    let bits: Vec<_> = STATE_BITS.iter().map(|(bit, _)| *bit).collect();
    let state = |bits: &[&str]| letters(&end("02:00:00:00:00:01", 1, bits));
    assert_eq!((state(&bits).as_str(), state(&[]).as_str()), ("ATGSCDFE", "--------"));
    assert_eq!(state(&["expired", "activity"]), "A------E");
    assert_eq!(state(&IN_USE), "A-GSCD--");
    let sides = |actor: &[&str], partner: &[&str]| {
        let [actor, partner] = [actor, partner].map(|bits| end("02:00:00:00:00:01", 1, bits));
        in_sync(&lacp(actor, partner)).to_owned()
    };
    assert_eq!(sides(&["synchronization"], &[]), "actor only");
    assert_eq!(sides(&[], &["synchronization"]), "partner only");
    assert_eq!(sides(&IN_USE, &IN_USE), "both");
    assert_eq!(sides(&[], &["collecting"]), "no");
}
