//! Validation of the assignment of virtual functions to NICs.

use crate::finding::{Finding, FindingLocation};
use crate::{
    ErrorCode, HostConfig, NicBackend, NicConfig, ResourceKind, SwitchConfig, UplinkDriver,
};

/// Reports obstacles to `iov` of switches and `iov_weight` of NICs.
pub(crate) fn check_iov(config: &HostConfig, findings: &mut Vec<Finding>) {
    for (index, switch) in
        config.switches.iter().enumerate().filter(|(_, switch)| switch.iov_enabled)
    {
        if let Some((code, text)) = switch_cannot(config, switch) {
            findings
                .push(FindingLocation::new(ResourceKind::Switch, index).finding(code, "iov", text));
        }
    }
    let weighed = config.nics.iter().enumerate().filter(|(_, nic)| nic.iov_weight > 0);
    for (index, nic) in weighed {
        let location = FindingLocation::new(ResourceKind::Nic, index);
        for (code, key, text) in nic_cannot(nic) {
            findings.push(location.finding(code, key, text));
        }
    }
}

fn switch_cannot(config: &HostConfig, switch: &SwitchConfig) -> Option<(ErrorCode, String)> {
    let Some(name) = &switch.uplink else {
        let text = "applies only to external switches, which have an adapter as uplink; set kind \
                    = \"external\" and `uplink`, or remove this key";
        return Some((ErrorCode::KeyNotApplicable, text.to_owned()));
    };
    let Some(uplink) = config.uplinks.iter().find(|uplink| uplink.name == *name) else {
        let is_team = config.teams.iter().any(|team| team.name == *name);
        // Another check reports references to missing resources.
        return is_team.then(|| {
            let text = format!(
                "a VF uses its own adapter only and cannot follow the load balancing of \
                 team/{name}; set a single adapter as the switch's uplink, or remove this key"
            );
            (ErrorCode::Conflict, text)
        });
    };
    if uplink.driver == UplinkDriver::Tap {
        let text = format!("uplink/{name} is a TAP device, not an SR-IOV adapter; remove this key");
        return Some((ErrorCode::Conflict, text));
    }
    // A [[pf]] may name a PCI address instead of a device; only the host can match the two.
    if config.pfs.iter().any(|pf| pf.device == uplink.device || pf.device.contains(':')) {
        return None;
    }
    let device = &uplink.device;
    let text = format!(
        "no [[pf]] describes {device}, the device of uplink/{name}; add one with `suimon vf \
         enable {device} --count N` if `suimon vf list` lists the device"
    );
    Some((ErrorCode::Conflict, text))
}

fn nic_cannot(nic: &NicConfig) -> Vec<(ErrorCode, &'static str, &'static str)> {
    let mut faults = Vec::new();
    let mut add = |is_set: bool, code, key, text| {
        if is_set {
            faults.push((code, key, text));
        }
    };
    let not_here = ErrorCode::KeyNotApplicable;
    add(
        nic.backend != NicBackend::VhostUser,
        not_here,
        "iov_weight",
        "only a vhost-user NIC can be the standby of a VF; set backend = \"vhost-user\" or remove \
         this key",
    );
    add(
        nic.mac.is_none(),
        ErrorCode::MissingKey,
        "mac",
        "missing; a NIC and its VF need the same MAC address: set `mac`, or iov_weight = 0",
    );
    let by_switch_only = [
        (nic.trunk.is_some(), "trunk"),
        (nic.isolated, "isolated"),
        (nic.storm_limit_fps.is_some(), "storm_limit_fps"),
    ];
    for (is_set, key) in by_switch_only {
        add(
            is_set,
            ErrorCode::Conflict,
            key,
            "an adapter cannot enforce this for a VF, whose frames bypass the switch; remove this \
             key, or set iov_weight = 0",
        );
    }
    faults
}

#[cfg(test)]
mod tests {
    use crate::{ErrorCode, parse_toml, to_toml};

    const GOOD: &str = r#"
        [[switch]]
        name = "wan"
        kind = "external"
        uplink = "up"
        iov = true
        [[uplink]]
        name = "up"
        device = "wan0"
        [[nic]]
        name = "web"
        switch = "wan"
        backend = "vhost-user"
        mac = "52:54:00:00:00:01"
        iov_weight = 50
        [[pf]]
        name = "wan"
        device = "wan0"
        vfs = 2
    "#;

    #[test]
    fn a_switch_with_an_adapter_and_a_nic_with_a_weight_are_read_and_written() {
        let config = parse_toml(GOOD, None).unwrap();
        assert!(config.switches[0].iov_enabled);
        assert_eq!(config.nics[0].iov_weight, 50);
        assert_eq!(parse_toml(&to_toml(&config), None).unwrap(), config);
        // A VM may arrive from a node whose switch has `iov`.
        assert!(parse_toml(&GOOD.replace("iov = true", ""), None).is_ok());
        let config = parse_toml(&GOOD.replace("iov_weight = 50", ""), None).unwrap();
        assert_eq!(config.nics[0].iov_weight, 0, "off unless asked for, as in Hyper-V");
    }

    #[test]
    fn conflicts_are_reported_with_the_remedy() {
        use ErrorCode::{Conflict, InvalidValue, KeyNotApplicable, MissingKey};
        for (from, to, code, resource, field, part) in [
            (
                "\"wan0\"\n        vfs",
                "\"lan0\"\n vfs",
                Conflict,
                "switch/wan",
                "iov",
                "vf enable wan0",
            ),
            ("mac = \"52:54:00:00:00:01\"", "", MissingKey, "nic/web", "mac", "set `mac`"),
            ("= 50", "= 50\nisolated = true", Conflict, "nic/web", "isolated", "iov_weight = 0"),
            ("= 50", "= 50\ntrunk = [3]", Conflict, "nic/web", "trunk", "iov_weight = 0"),
            (
                "= 50",
                "= 50\nstorm_limit_fps = 3",
                Conflict,
                "nic/web",
                "storm_limit_fps",
                "adapter",
            ),
            ("= 50", "= 101", InvalidValue, "nic/web", "iov_weight", "100"),
            ("vhost-user", "legacy", KeyNotApplicable, "nic/web", "iov_weight", "standby"),
            (
                "device = \"wan0\"",
                "device = \"wan0\"\ndriver = \"tap\"",
                Conflict,
                "switch/wan",
                "iov",
                "TAP",
            ),
            (
                "kind = \"external\"\n        uplink = \"up\"",
                "kind = \"private\"",
                KeyNotApplicable,
                "switch/wan",
                "iov",
                "external",
            ),
        ] {
            let errors = parse_toml(&GOOD.replacen(from, to, 1), None).unwrap_err();
            let error = errors.iter().find(|error| error.field.as_deref() == Some(field));
            let error = error.unwrap_or_else(|| panic!("{field}: {errors:?}"));
            assert_eq!(
                (error.code, error.resource.as_deref()),
                (code, Some(resource)),
                "{errors:?}"
            );
            assert!(error.message.contains(part), "{errors:?}");
        }
        let team = GOOD.replace("uplink = \"up\"", "uplink = \"both\"").replace(
            "[[nic]]",
            "[[team]]\nname = \"both\"\nmembers = [\"up\"]\nmode = \"static\"\n[[nic]]",
        );
        let errors = parse_toml(&team, None).unwrap_err();
        assert!(
            errors.iter().any(|error| error.message.contains("load balancing of team/both")),
            "{errors:?}"
        );
    }
}
