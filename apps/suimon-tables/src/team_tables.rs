//! Text output of teams: state of each member, and LACP on its link.

use suimon_contract::{
    LacpMemberStatus, LacpPartnerStatus, LacpPortStatus, TeamConfig, TeamMemberState,
    TeamMemberStatus, TeamStatus,
};

use crate::columns;
use crate::detail_text::{DetailText, health, serialized_name};
use crate::resource_tables::TextOutput;
use crate::table::{Table, or_dash};
use crate::units;

impl TextOutput for TeamConfig {
    fn table(statuses: &[TeamStatus]) -> Table {
        let mut table = Table::new(&columns::TEAMS);
        for team in statuses {
            table.add_row([
                team.config.name.to_string(),
                serialized_name(&team.config.mode),
                serialized_name(&team.config.algorithm),
                or_dash(team.switch.as_ref()),
                format!("{} of {}", active(team), team.members.len()),
                units::speed(team.speed_mbps),
                units::decimal_bytes(team.counters.rx_bytes),
                units::decimal_bytes(team.counters.tx_bytes),
                health(&team.condition),
            ]);
        }
        table
    }

    fn details(status: &TeamStatus) -> String {
        let mut lines = DetailText::from_resource(&status.config, &status.condition);
        lines.add("used by switch", or_dash(status.switch.as_ref()));
        lines.add("members active", format!("{} of {}", active(status), status.members.len()));
        lines.add("speed of active", units::speed(status.speed_mbps));
        lines.add("mtu in effect", status.mtu);
        if status.config.lacp().is_some() {
            lines.add("lacp partner", status.lacp_partner.as_ref().map_or("–".to_owned(), partner));
        }
        lines.add_counters(&status.counters);
        lines.add_table(&member_table(&status.members));
        if status.members.iter().any(|member| member.lacp.is_some()) {
            lines.add_table(&lacp_table(&status.members));
        }
        lines.into_text()
    }
}

fn active(team: &TeamStatus) -> usize {
    team.members.iter().filter(|member| member.state == TeamMemberState::Active).count()
}

fn partner(partner: &LacpPartnerStatus) -> String {
    let LacpPartnerStatus { system, system_priority, key } = partner;
    format!("{system}, system priority {system_priority}, key {key}")
}

fn member_table(members: &[TeamMemberStatus]) -> Table {
    let mut table = Table::new(&columns::TEAM_MEMBERS);
    for member in members {
        table.add_row([
            member.uplink.to_string(),
            member.state.to_string(),
            role(member),
            if member.link_up { "up" } else { "down" }.to_owned(),
            or_dash(member.speed_mbps.map(|mbps| units::speed(mbps.into()))),
            units::bit_rate(member.rx_bps),
            units::percent(member.rx_share_ppm),
            units::bit_rate(member.tx_bps),
            units::percent(member.tx_share_ppm),
            units::percent(member.flows_share_ppm),
            member.nics.to_string(),
            member.reason.clone(),
        ]);
    }
    table
}

fn role(member: &TeamMemberStatus) -> String {
    match (member.is_primary, member.is_standby) {
        (true, true) => "primary, standby",
        (true, false) => "primary",
        (false, true) => "standby",
        (false, false) => "–",
    }
    .to_owned()
}

fn lacp_table(members: &[TeamMemberStatus]) -> Table {
    let mut table = Table::new(&columns::LACP_LINKS);
    for member in members {
        let Some(lacp) = &member.lacp else { continue };
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let partner = is_known(&lacp.partner).then_some(&lacp.partner);
        table.add_row([
            member.uplink.to_string(),
            or_dash(partner.map(|partner| partner.system)),
            or_dash(partner.map(|partner| partner.system_priority)),
            or_dash(partner.map(|partner| partner.key)),
            or_dash(partner.map(|partner| partner.port)),
            letters(&lacp.actor),
            letters(&lacp.partner),
            in_sync(lacp).to_owned(),
            yes(lacp.collecting),
            yes(lacp.distributing),
            lacp.receive_state.clone(),
            lacp.mux_state.clone(),
            or_dash(lacp.last_pdu_age_ms.map(|ms| format!("{} ago", units::age(ms / 1000)))),
        ]);
    }
    table
}

/// Returns true if the partner is known, from an LACPDU or by configured defaults.
fn is_known(partner: &LacpPortStatus) -> bool {
    partner.system.octets() != [0; 6]
}

/// State bits and the letters that switches display for them, lowest bit first (IEEE 802.1AX-2014,
/// 6.4.2.3).
const STATE_BITS: [(&str, char); 8] = [
    ("activity", 'A'),
    ("short-timeout", 'T'),
    ("aggregation", 'G'),
    (SYNCHRONIZATION, 'S'),
    ("collecting", 'C'),
    ("distributing", 'D'),
    ("defaulted", 'F'),
    ("expired", 'E'),
];

const SYNCHRONIZATION: &str = "synchronization";

/// Formats state bits as letters: `A-GSCD--`.
fn letters(end: &LacpPortStatus) -> String {
    STATE_BITS.iter().map(|(bit, letter)| if has(end, bit) { *letter } else { '-' }).collect()
}

fn has(end: &LacpPortStatus, bit: &str) -> bool {
    end.state.iter().any(|set| set == bit)
}

/// Returns a text that states which ends of the link are synchronized.
fn in_sync(lacp: &LacpMemberStatus) -> &'static str {
    match (has(&lacp.actor, SYNCHRONIZATION), has(&lacp.partner, SYNCHRONIZATION)) {
        (true, true) => "both",
        (true, false) => "actor only",
        (false, true) => "partner only",
        (false, false) => "no",
    }
}

#[cfg(test)]
#[path = "team_tables_tests.rs"]
mod tests;
