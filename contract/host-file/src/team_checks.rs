//! Validation of teams: each by itself, and together with its members.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Finding, FindingLocation};
use crate::vmq_checks::check_vmq;
use crate::{ErrorCode, HostConfig, Name, ResourceKind, TeamConfig, TeamMode, UplinkDriver};

/// Reports invalid combinations of one team's keys.
pub(crate) fn check_team(
    location: FindingLocation,
    team: &TeamConfig,
    findings: &mut Vec<Finding>,
) {
    let mut members: BTreeSet<&Name> = BTreeSet::new();
    let mut duplicates: BTreeSet<&Name> = BTreeSet::new();
    for member in &team.members {
        if !members.insert(member) && duplicates.insert(member) {
            findings.push(location.finding(
                ErrorCode::InvalidValue,
                "members",
                format!("`{member}` is named more than once; name each member once"),
            ));
        }
    }
    lacp_fits(location, team, findings);
    for (role, member) in [("primary", &team.primary), ("standby", &team.standby)] {
        if let Some(member) = member {
            role_fits(location, team, role, member, findings);
        }
    }
    standby_fits(location, team, &members, findings);
    check_vmq(location, &team.vmq, findings);
}

fn lacp_fits(location: FindingLocation, team: &TeamConfig, findings: &mut Vec<Finding>) {
    if team.mode == TeamMode::Lacp {
        return;
    }
    let of_lacp = [
        ("lacp_timer", team.lacp_timer.is_some()),
        ("lacp_active", team.lacp_active.is_some()),
        ("lacp_system_priority", team.lacp_system_priority.is_some()),
    ];
    for (key, _) in of_lacp.iter().filter(|(_, present)| *present) {
        findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            key,
            "applies only to teams in LACP mode; remove this key or set mode = \"lacp\"",
        ));
    }
}

/// Reports a `primary` or `standby` (`role`) that is not a member of the team, or that the team's
/// mode does not permit.
fn role_fits(
    location: FindingLocation,
    team: &TeamConfig,
    role: &str,
    member: &Name,
    findings: &mut Vec<Finding>,
) {
    if team.mode != TeamMode::SwitchIndependent {
        findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            role,
            format!(
                "in this mode the switch on the other side selects members, so {role} does not \
                 apply; remove this key or set mode = \"switch-independent\""
            ),
        ));
    } else if !team.members.contains(member) {
        let members: Vec<_> = team.members.iter().map(|member| format!("`{member}`")).collect();
        findings.push(location.finding(
            ErrorCode::UnknownReference,
            role,
            format!("`{member}` is not a member of the team; set one of {}", members.join(", ")),
        ));
    }
}

/// Reports a standby without other members, and `min_links` that requires the standby.
fn standby_fits(
    location: FindingLocation,
    team: &TeamConfig,
    members: &BTreeSet<&Name>,
    findings: &mut Vec<Finding>,
) {
    let standby = team
        .standby
        .as_ref()
        .filter(|standby| team.mode == TeamMode::SwitchIndependent && members.contains(standby));
    if let Some(standby) = standby {
        if members.len() == 1 {
            findings.push(location.finding(
                ErrorCode::InvalidValue,
                "standby",
                format!("`{standby}` is the only member; add another member or remove this key"),
            ));
            return;
        }
        if team.primary.as_ref() == Some(standby) {
            findings.push(location.finding(
                ErrorCode::InvalidValue,
                "standby",
                format!(
                    "`{standby}` is also the primary; set another member for one of the two keys"
                ),
            ));
        }
    }
    let max = members.len().saturating_sub(usize::from(standby.is_some()));
    if usize::from(team.min_links) > max {
        let qualifier = if standby.is_some() { " without the standby" } else { "" };
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "min_links",
            format!("{} exceeds {max}, the number of members{qualifier}; lower it", team.min_links),
        ));
    }
}

/// Reports members with different MTUs: any of them may transmit a frame.
pub(crate) fn check_member_mtus(config: &HostConfig, findings: &mut Vec<Finding>) {
    let mtus: BTreeMap<&Name, u16> = config
        .uplinks
        .iter()
        .filter_map(|uplink| uplink.mtu.map(|mtu| (&uplink.name, mtu)))
        .collect();
    for (index, team) in config.teams.iter().enumerate() {
        let mut members = team.members.iter().filter_map(|name| Some((name, *mtus.get(name)?)));
        let Some((first, mtu)) = members.next() else { continue };
        if let Some((other, other_mtu)) = members.find(|(_, other)| *other != mtu) {
            findings.push(FindingLocation::new(ResourceKind::Team, index).finding(
                ErrorCode::InvalidValue,
                "members",
                format!(
                    "the `mtu` of `{first}` is {mtu} and that of `{other}` is {other_mtu}, but \
                     any member may send a frame; set the same MTU for all members"
                ),
            ));
        }
    }
}

/// Reports TAP members of teams in LACP mode. Frames that the host sends on a TAP arrive at the
/// switch itself, without a partner behind it.
pub(crate) fn check_lacp_members(config: &HostConfig, findings: &mut Vec<Finding>) {
    let taps: BTreeSet<&Name> = config
        .uplinks
        .iter()
        .filter(|uplink| uplink.driver == UplinkDriver::Tap)
        .map(|uplink| &uplink.name)
        .collect();
    for (index, team) in config.teams.iter().enumerate() {
        let tap = team.members.iter().find(|member| taps.contains(member));
        let Some(tap) = tap.filter(|_| team.mode == TeamMode::Lacp) else { continue };
        findings.push(FindingLocation::new(ResourceKind::Team, index).finding(
            ErrorCode::InvalidValue,
            "members",
            format!(
                "`{tap}` is a TAP device, which cannot carry LACPDUs; use uplinks with driver = \
                 \"af_packet\" or \"af_xdp\", or set mode = \"static\" or \"switch-independent\""
            ),
        ));
    }
}

#[cfg(test)]
#[path = "team_checks_tests.rs"]
mod tests;
