//! Whether uplinks make sense: each by itself, and with the teams they are in.

use std::collections::BTreeMap;

use crate::finding::{Finding, Place};
use crate::vmq_fits::vmq_fits;
use crate::{ErrorCode, HostConfig, Kind, Name, TeamConfig, TeamMode, UplinkConfig, UplinkDriver};

/// What is wrong between the keys of one uplink.
pub(crate) fn uplink_fits(place: Place, uplink: &UplinkConfig, findings: &mut Vec<Finding>) {
    if uplink.driver != UplinkDriver::AfXdp && !uplink.host_addresses.is_empty() {
        findings.push(place.finding(
            ErrorCode::KeyNotApplicable,
            "host_addresses",
            "only an uplink with driver = \"af_xdp\" has it, others leave the host its frames; \
             remove it",
        ));
    }
    vmq_fits(place, &uplink.vmq, findings);
}

/// The host has no addresses on members of teams whose other side chooses the member that
/// a frame comes by: it hears of one device only.
pub(crate) fn host_addresses_fit_teams(config: &HostConfig, findings: &mut Vec<Finding>) {
    let chosen_for: BTreeMap<&Name, &TeamConfig> = config
        .teams
        .iter()
        .filter(|team| team.mode != TeamMode::SwitchIndependent)
        .flat_map(|team| team.members.iter().map(move |member| (member, team)))
        .collect();
    for (index, uplink) in config.uplinks.iter().enumerate() {
        let team = chosen_for.get(&uplink.name).filter(|_| !uplink.host_addresses.is_empty());
        let Some(team) = team else { continue };
        findings.push(Place::new(Kind::Uplink, index).finding(
            ErrorCode::KeyNotApplicable,
            "host_addresses",
            format!(
                "the uplink is a member of team `{}`, and the switch on its other side sends what \
                 is for the host by any member; remove it and give the host a NIC on an internal \
                 switch, or set mode = \"switch-independent\" there",
                team.name
            ),
        ));
    }
}

#[cfg(test)]
#[path = "uplink_fits_tests.rs"]
mod tests;
