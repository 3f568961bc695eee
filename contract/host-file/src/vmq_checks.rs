//! Validation of VMQ of teams and uplinks: by itself, and against the host's workers.

use std::collections::BTreeMap;

use crate::finding::{Finding, FindingLocation};
use crate::{ErrorCode, HostConfig, Name, ResourceKind, VmqConfig};

/// Reports invalid combinations of one `vmq` table's keys.
pub(crate) fn check_vmq(location: FindingLocation, vmq: &VmqConfig, findings: &mut Vec<Finding>) {
    let (Some(base), Some(highest)) = (vmq.base_worker, vmq.max_worker_number) else {
        return;
    };
    if highest < base {
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "vmq.max_worker_number",
            format!("{highest} is below base_worker {base}; set {base} or more"),
        ));
    }
}

/// Reports VMQ settings that do not fit the host's workers and teams.
pub(crate) fn check_vmq_against_host(config: &HostConfig, findings: &mut Vec<Finding>) {
    let teams: BTreeMap<&Name, &Name> = config
        .teams
        .iter()
        .flat_map(|team| team.members.iter().map(|member| (member, &team.name)))
        .collect();
    for (index, uplink) in config.uplinks.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Uplink, index);
        base_exists(location, &uplink.vmq, config, findings);
        let team = teams.get(&uplink.name).filter(|_| !uplink.vmq.is_default());
        if let Some(team) = team {
            findings.push(location.finding(
                ErrorCode::KeyNotApplicable,
                "vmq",
                format!(
                    "the uplink is a member of team `{team}`, whose `vmq` applies; remove this \
                     table and set it for the team"
                ),
            ));
        }
    }
    for (index, team) in config.teams.iter().enumerate() {
        base_exists(FindingLocation::new(ResourceKind::Team, index), &team.vmq, config, findings);
    }
}

fn base_exists(
    location: FindingLocation,
    vmq: &VmqConfig,
    config: &HostConfig,
    findings: &mut Vec<Finding>,
) {
    let Some(base) = vmq.base_worker else { return };
    let count = config.host.worker_count();
    if usize::from(base) < count {
        return;
    }
    let accepted = match count.saturating_sub(1) {
        0 => "there is one worker, set 0".to_owned(),
        highest => format!("set a number from 0 to {highest}"),
    };
    findings.push(location.finding(
        ErrorCode::InvalidValue,
        "vmq.base_worker",
        format!("there is no worker {base}; {accepted}, or add CPUs to `worker_cpus` of [host]"),
    ));
}

#[cfg(test)]
#[path = "vmq_checks_tests.rs"]
mod tests;
