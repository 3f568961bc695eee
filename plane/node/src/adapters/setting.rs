//! Differences between the actual and the configured settings of a VF.

use suimon_contract::{VfConfig, VfLinkState};
use suimon_frame::MacAddr;
use suimon_ports::{self as ports, VfSettings, VfSettingsChange};

/// Bits per second in 1 Mbit/s, the unit in which a VF's rates are configured by the driver.
const MBPS: u64 = 1_000_000;

/// Returns the changes that apply the configured settings. Keys that `before` has and `desired`
/// omits are reset to their defaults, except the MAC address, which has no default.
pub(super) fn difference(
    current: &VfSettings,
    desired: &VfConfig,
    before: Option<&VfConfig>,
) -> VfSettingsChange {
    let required = required(current, desired, before);
    let changed = |current: Option<bool>, desired_value: Option<bool>| {
        desired_value.filter(|desired_value| current != Some(*desired_value))
    };
    let rates = (required.rate_min_mbps, required.rate_max_mbps);
    VfSettingsChange {
        mac: (required.mac != current.mac).then_some(required.mac),
        vlan: (required.vlan != current.vlan).then_some(required.vlan),
        spoof_check: changed(current.spoof_check, required.spoof_check),
        trust: changed(current.trust, required.trust),
        rates_mbps: (rates != (current.rate_min_mbps, current.rate_max_mbps)).then_some(rates),
        link_state: required
            .link_state
            .filter(|desired_state| current.link_state != Some(*desired_state)),
    }
}

/// Returns the settings that a VF must have: configured values, defaults for keys that were
/// removed, and present values for others.
fn required(current: &VfSettings, desired: &VfConfig, before: Option<&VfConfig>) -> VfSettings {
    // True if a key was configured before and is not any longer.
    let is_removed = |was_written: fn(&VfConfig) -> bool| {
        before.is_some_and(was_written) && !was_written(desired)
    };
    let flag =
        |desired_value: Option<bool>, current: Option<bool>, is_removed: bool, default: bool| {
            desired_value.or(if is_removed { Some(default) } else { current })
        };
    let rate = |desired_value: Option<u64>, current: u32, is_removed: bool| match desired_value {
        Some(bps) => u32::try_from(bps / MBPS).unwrap_or(u32::MAX),
        None if is_removed => 0,
        None => current,
    };
    VfSettings {
        mac: desired.mac.unwrap_or(current.mac),
        vlan: desired.vlan.or(if is_removed(|vf| vf.vlan.is_some()) { None } else { current.vlan }),
        spoof_check: flag(
            desired.spoof_check,
            current.spoof_check,
            is_removed(|vf| vf.spoof_check.is_some()),
            true,
        ),
        trust: flag(desired.trust, current.trust, is_removed(|vf| vf.trust.is_some()), false),
        rate_min_mbps: rate(
            desired.bandwidth_min_bps,
            current.rate_min_mbps,
            is_removed(|vf| vf.bandwidth_min_bps.is_some()),
        ),
        rate_max_mbps: rate(
            desired.bandwidth_max_bps,
            current.rate_max_mbps,
            is_removed(|vf| vf.bandwidth_max_bps.is_some()),
        ),
        link_state: desired.link_state.map(link_state).or(
            if is_removed(|vf| vf.link_state.is_some()) {
                Some(ports::VfLinkState::Auto)
            } else {
                current.link_state
            },
        ),
    }
}

/// Returns the changes that restore the settings `previous`.
pub(super) fn rollback_change(current: &VfSettings, previous: &VfSettings) -> VfSettingsChange {
    let flag =
        |current: Option<bool>, previous: Option<bool>| previous.filter(|_| current != previous);
    let rates = (previous.rate_min_mbps, previous.rate_max_mbps);
    VfSettingsChange {
        mac: (current.mac != previous.mac).then_some(previous.mac),
        vlan: (current.vlan != previous.vlan).then_some(previous.vlan),
        spoof_check: flag(current.spoof_check, previous.spoof_check),
        trust: flag(current.trust, previous.trust),
        rates_mbps: (rates != (current.rate_min_mbps, current.rate_max_mbps)).then_some(rates),
        link_state: previous.link_state.filter(|_| current.link_state != previous.link_state),
    }
}

/// Returns the keys that a change modifies, with their new values.
pub(super) fn changed_keys(change: &VfSettingsChange) -> Vec<(&'static str, String)> {
    let mut changes = Vec::new();
    if let Some(mac) = change.mac {
        changes.push(("mac", mac.to_string()));
    }
    if let Some(vlan) = change.vlan {
        changes.push(("vlan", vlan.map_or_else(|| "none".to_owned(), |vlan| vlan.to_string())));
    }
    if let Some(is_on) = change.spoof_check {
        changes.push(("spoof_check", is_on.to_string()));
    }
    if let Some(is_on) = change.trust {
        changes.push(("trust", is_on.to_string()));
    }
    if let Some((min_mbps, max_mbps)) = change.rates_mbps {
        changes.push(("bandwidth_min_bps", (u64::from(min_mbps) * MBPS).to_string()));
        changes.push(("bandwidth_max_bps", (u64::from(max_mbps) * MBPS).to_string()));
    }
    if let Some(state) = change.link_state {
        let name = match state {
            ports::VfLinkState::Auto => "auto",
            ports::VfLinkState::Enable => "enable",
            ports::VfLinkState::Disable => "disable",
        };
        changes.push(("link_state", name.to_owned()));
    }
    changes
}

/// Converts a link state of the API to that of the port trait.
const fn link_state(state: VfLinkState) -> ports::VfLinkState {
    match state {
        VfLinkState::Auto => ports::VfLinkState::Auto,
        VfLinkState::Enable => ports::VfLinkState::Enable,
        VfLinkState::Disable => ports::VfLinkState::Disable,
    }
}

/// Converts a link state of the port trait to that of the API.
pub(super) const fn to_api_link_state(state: ports::VfLinkState) -> VfLinkState {
    match state {
        ports::VfLinkState::Auto => VfLinkState::Auto,
        ports::VfLinkState::Enable => VfLinkState::Enable,
        ports::VfLinkState::Disable => VfLinkState::Disable,
    }
}

/// Converts a rate in Mbit/s to bits per second. Returns `None` for 0, which means unlimited.
pub(super) fn mbps_to_bps(mbps: u32) -> Option<u64> {
    (mbps > 0).then(|| u64::from(mbps) * MBPS)
}

/// Returns the address of a VF; `None` for the zero address, which means that none was assigned.
pub(super) fn assigned_mac(mac: MacAddr) -> Option<MacAddr> {
    mac.is_station().then_some(mac)
}
