//! Status of teams as API types.

use std::collections::BTreeMap;

use suimon_contract::{
    ApiError, Condition, Health, HostConfig, Name, ResourceKind, TeamConfig, TeamMemberState,
    TeamMemberStatus, TeamStatus,
};
use suimon_quantity::{CountedNoun, Time};
use suimon_teaming::{BUCKETS, MemberFault, MemberStatus};

use super::lacp_status::{lacp_status, partner_status};
use super::member::Member;
use super::rates::ppm;
use super::table::TeamTable;
use super::team_entry::TeamEntry;
use crate::PortKey;
use crate::errors::not_found;
use crate::ports::{find_using_switch, smallest_mtu};
use crate::shared::Shared;

impl Shared {
    /// Returns all teams in configured order.
    pub(crate) fn teams(&self) -> Vec<TeamStatus> {
        let config = &self.desired().config;
        config.teams.iter().map(|team| self.team_status(team, config)).collect()
    }

    /// Returns the status of a team.
    ///
    /// # Errors
    /// Fails if there is no such team.
    pub(crate) fn team(&self, name: &str) -> Result<TeamStatus, ApiError> {
        let config = &self.desired().config;
        let team = config.teams.iter().find(|team| team.name.as_str() == name);
        let team = team.ok_or_else(|| not_found(ResourceKind::Team, name))?;
        Ok(self.team_status(team, config))
    }

    fn team_status(&self, team: &TeamConfig, config: &HostConfig) -> TeamStatus {
        let switch = find_using_switch(config, &team.name);
        let id = self.ids().port(&PortKey::Team(team.name.clone()));
        let failures = self.member_failures(team);
        let view = view(&self.teams.table(), team, &failures, self.plane.now());
        let view = view.unwrap_or_else(|| unused(team, switch.is_some()));
        let mut members = view.members;
        for member in &mut members {
            let port = self.ports.find(&PortKey::Uplink(member.uplink.clone()));
            member.counters = self.counters(port.map(|port| port.id));
        }
        TeamStatus {
            config: team.clone(),
            switch: switch.map(|switch| switch.name.clone()),
            condition: view.condition,
            counters: self.counters(id),
            mtu: self.team_mtu(team, config),
            speed_mbps: view.speed_mbps,
            lacp_partner: view.lacp_partner,
            members,
        }
    }

    fn team_mtu(&self, team: &TeamConfig, config: &HostConfig) -> u16 {
        let of_name = |name| config.uplinks.iter().find(|uplink| &uplink.name == name);
        let uplinks: Vec<_> = team.members.iter().filter_map(of_name).collect();
        smallest_mtu(&uplinks, &|key| self.device_mtu(key)).unwrap_or(0)
    }

    /// Returns the health of a team: whether it carries frames, and otherwise the faults of its
    /// members. `None` if no switch uses the team.
    pub(crate) fn team_condition(&self, name: &Name) -> Option<Condition> {
        let desired = self.desired();
        let team = desired.config.teams.iter().find(|team| team.name == *name);
        let failures = team.map(|team| self.member_failures(team)).unwrap_or_default();
        self.teams.table().find(name).map(|entry| condition(entry, &failures))
    }

    /// Returns the reasons why devices of members are not open now. They replace the reasons
    /// recorded by the team, which a retry may have changed.
    fn member_failures(&self, team: &TeamConfig) -> Failures {
        let failure = |name: &Name| {
            let port = self.ports.find(&PortKey::Uplink(name.clone()))?;
            let condition = port.condition();
            let reason = condition.reason.filter(|_| condition.health == Health::Failed)?;
            Some((name.clone(), reason))
        };
        team.members.iter().filter_map(failure).collect()
    }
}

/// Reasons why the devices of uplinks are not open, by the uplink's name.
type Failures = BTreeMap<Name, String>;

/// Status of a team according to the table.
struct PublishedTeamStatus {
    condition: Condition,
    speed_mbps: u64,
    lacp_partner: Option<suimon_contract::LacpPartnerStatus>,
    members: Vec<TeamMemberStatus>,
}

fn view(
    table: &TeamTable,
    team: &TeamConfig,
    failures: &Failures,
    now: Time,
) -> Option<PublishedTeamStatus> {
    let entry = table.find(&team.name)?;
    let lacp = entry.lacp.as_ref();
    Some(PublishedTeamStatus {
        condition: condition(entry, failures),
        speed_mbps: active(entry)
            .map(|member| u64::from(member.link.speed.mbps.unwrap_or(0)))
            .sum(),
        lacp_partner: lacp.and_then(|side| partner_status(&side.lacp.team_state())),
        members: entry
            .members
            .iter()
            .map(|member| member_status(entry, member, failures, now))
            .collect(),
    })
}

/// Returns the members that may send frames.
fn active(entry: &TeamEntry) -> impl Iterator<Item = &Member> {
    let is_up = entry.is_up();
    entry.members.iter().filter(move |member| {
        is_up && entry.team.member_status(member.id()).is_some_and(|status| status.is_active)
    })
}

fn condition(entry: &TeamEntry, failures: &Failures) -> Condition {
    let min_links = entry.team.spec().min_links;
    if entry.is_up() {
        return Condition { health: Health::Up, reason: None };
    }
    let statuses = entry.members.iter().filter_map(|member| entry.team.member_status(member.id()));
    let usable = statuses.filter(|status| status.is_usable).count();
    let mut reason =
        format!("{} usable, min_links is {min_links}", CountedNoun::new(usable, "member"));
    for member in &entry.members {
        let status = entry.team.member_status(member.id());
        if status.is_some_and(|status| !status.is_usable) {
            let detail = failed_reason(entry, member, failures);
            reason.push_str(&format!("; {}: {detail}", member.name()));
        }
    }
    Condition { health: Health::Down, reason: Some(reason) }
}

fn failed_reason(entry: &TeamEntry, member: &Member, failures: &Failures) -> String {
    if let Some(failure) = failures.get(member.name()) {
        return failure.clone();
    }
    let is_up = entry.team.member_status(member.id()).is_some_and(|status| status.link.up);
    let fault = if is_up { MemberFault::NotDistributing } else { MemberFault::LinkDown };
    entry.fault_text(member, fault)
}

fn member_status(
    entry: &TeamEntry,
    member: &Member,
    failures: &Failures,
    now: Time,
) -> TeamMemberStatus {
    let Some(status) = entry.team.member_status(member.id()) else {
        return idle_member(member.name(), "the team is being changed");
    };
    let (state, reason) = member_state(entry, member, &status, failures);
    let is_active = state == TeamMemberState::Active;
    let sum = |value_of: fn(&Member) -> u64| {
        entry.members.iter().map(value_of).fold(0, u64::saturating_add)
    };
    let rates = member.rates;
    let lacp = entry.lacp.as_ref().and_then(|side| side.lacp.member_state(member.id()));
    TeamMemberStatus {
        uplink: member.name().clone(),
        state,
        reason,
        link_up: member.properties.is_open && member.link.is_up,
        speed_mbps: member
            .link
            .speed
            .mbps
            .filter(|_| member.properties.is_open && member.link.is_up),
        is_primary: status.is_primary,
        is_standby: status.is_standby,
        rx_bps: rates.rx_bps,
        tx_bps: rates.tx_bps,
        rx_share_ppm: ppm(rates.rx_bps, sum(|member| member.rates.rx_bps)),
        tx_share_ppm: ppm(rates.tx_bps, sum(|member| member.rates.tx_bps)),
        flows_share_ppm: if is_active { ppm(status.buckets.into(), BUCKETS as u64) } else { 0 },
        nics: if is_active { status.assigned_ports } else { 0 },
        counters: suimon_contract::PortCounters::default(),
        lacp: lacp.map(|state| lacp_status(&state, now)),
    }
}

fn member_state(
    entry: &TeamEntry,
    member: &Member,
    status: &MemberStatus,
    failures: &Failures,
) -> (TeamMemberState, String) {
    if !status.is_usable {
        return (TeamMemberState::Failed, failed_reason(entry, member, failures));
    }
    if !entry.is_up() {
        let needed = CountedNoun::new(entry.team.spec().min_links, "member");
        let reason = format!("the team is down: it needs {needed}");
        return (TeamMemberState::Inactive, reason);
    }
    if !status.is_active {
        let reason = "the standby, idle because all other members are usable".to_owned();
        return (TeamMemberState::Inactive, reason);
    }
    let reason = match (status.is_standby, status.is_primary) {
        (true, _) => "the standby, active in place of a failed member",
        (false, true) => "active, and the primary",
        (false, false) => "active",
    };
    (TeamMemberState::Active, reason.to_owned())
}

/// Returns the status of a team that is not in the table.
fn unused(team: &TeamConfig, is_used: bool) -> PublishedTeamStatus {
    let reason =
        if is_used { "being created" } else { "not open, because no switch uses the team" };
    PublishedTeamStatus {
        condition: Condition { health: Health::Down, reason: Some(reason.to_owned()) },
        speed_mbps: 0,
        lacp_partner: None,
        members: team.members.iter().map(|name| idle_member(name, reason)).collect(),
    }
}

fn idle_member(uplink: &Name, reason: &str) -> TeamMemberStatus {
    TeamMemberStatus {
        uplink: uplink.clone(),
        state: TeamMemberState::Failed,
        reason: reason.to_owned(),
        link_up: false,
        speed_mbps: None,
        is_primary: false,
        is_standby: false,
        rx_bps: 0,
        tx_bps: 0,
        rx_share_ppm: 0,
        tx_share_ppm: 0,
        flows_share_ppm: 0,
        nics: 0,
        counters: suimon_contract::PortCounters::default(),
        lacp: None,
    }
}
