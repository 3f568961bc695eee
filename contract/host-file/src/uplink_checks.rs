//! Validation of uplinks: each by itself, and together with its team.

use std::collections::BTreeMap;

use crate::finding::{Finding, FindingLocation};
use crate::vmq_checks::check_vmq;
use crate::{
    ErrorCode, HostConfig, Name, ResourceKind, TeamConfig, TeamMode, UplinkConfig, UplinkDriver,
};

/// Reports invalid combinations of one uplink's keys.
pub(crate) fn check_uplink(
    location: FindingLocation,
    uplink: &UplinkConfig,
    findings: &mut Vec<Finding>,
) {
    if uplink.driver != UplinkDriver::AfXdp && !uplink.host_addresses.is_empty() {
        findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            "host_addresses",
            "applies only to driver = \"af_xdp\"; other drivers leave the host its frames. Remove \
             this key",
        ));
    }
    check_vmq(location, &uplink.vmq, findings);
}

/// Reports an error for each host address on a member of a team that is not switch-independent. The
/// adjacent switch selects the member that receives a frame, but the host's address is bound to one
/// device.
pub(crate) fn check_host_addresses_of_teams(config: &HostConfig, findings: &mut Vec<Finding>) {
    let chosen_for: BTreeMap<&Name, &TeamConfig> = config
        .teams
        .iter()
        .filter(|team| team.mode != TeamMode::SwitchIndependent)
        .flat_map(|team| team.members.iter().map(move |member| (member, team)))
        .collect();
    for (index, uplink) in config.uplinks.iter().enumerate() {
        let team = chosen_for.get(&uplink.name).filter(|_| !uplink.host_addresses.is_empty());
        let Some(team) = team else { continue };
        findings.push(FindingLocation::new(ResourceKind::Uplink, index).finding(
            ErrorCode::KeyNotApplicable,
            "host_addresses",
            format!(
                "the uplink is a member of team `{}`, and the switch on its other side may send \
                 the host's frames on any member; remove this key and connect the host by an \
                 internal switch, or set mode = \"switch-independent\" of the team",
                team.name
            ),
        ));
    }
}

#[cfg(test)]
#[path = "uplink_checks_tests.rs"]
mod tests;
