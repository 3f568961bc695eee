//! Differences between the actual and the configured settings of a VF.

use suimon_contract::{VfConfig, VfLinkState};
use suimon_frame::MacAddr;
use suimon_ports::{self as ports, VfSettings, VfSettingsChange};

/// Unit of VF rates: 1 Mbit/s.
const MBPS: u64 = 1_000_000;

/// Returns the changes that apply the configured settings. Keys that `before` has and `desired`
/// omits are reset to their defaults, except the MAC address, which has no default.
pub(super) fn difference(
    is: &VfSettings,
    desired: &VfConfig,
    before: Option<&VfConfig>,
) -> VfSettingsChange {
    let wanted = required(is, desired, before);
    let changed = |is: Option<bool>, to: Option<bool>| to.filter(|to| is != Some(*to));
    let rates = (wanted.rate_min_mbps, wanted.rate_max_mbps);
    VfSettingsChange {
        mac: (wanted.mac != is.mac).then_some(wanted.mac),
        vlan: (wanted.vlan != is.vlan).then_some(wanted.vlan),
        spoof_check: changed(is.spoof_check, wanted.spoof_check),
        trust: changed(is.trust, wanted.trust),
        rates_mbps: (rates != (is.rate_min_mbps, is.rate_max_mbps)).then_some(rates),
        link_state: wanted.link_state.filter(|to| is.link_state != Some(*to)),
    }
}

/// Returns the settings that a VF must have: configured values, defaults for keys that were
/// removed, and present values for others.
fn required(is: &VfSettings, desired: &VfConfig, before: Option<&VfConfig>) -> VfSettings {
    // True if a key was configured before and is not any longer.
    let gone = |was_written: fn(&VfConfig) -> bool| {
        before.is_some_and(was_written) && !was_written(desired)
    };
    let flag = |to: Option<bool>, is: Option<bool>, gone: bool, without: bool| {
        to.or(if gone { Some(without) } else { is })
    };
    let rate = |to: Option<u64>, is: u32, gone: bool| match to {
        Some(bps) => u32::try_from(bps / MBPS).unwrap_or(u32::MAX),
        None if gone => 0,
        None => is,
    };
    VfSettings {
        mac: desired.mac.unwrap_or(is.mac),
        vlan: desired.vlan.or(if gone(|vf| vf.vlan.is_some()) { None } else { is.vlan }),
        spoof_check: flag(
            desired.spoof_check,
            is.spoof_check,
            gone(|vf| vf.spoof_check.is_some()),
            true,
        ),
        trust: flag(desired.trust, is.trust, gone(|vf| vf.trust.is_some()), false),
        rate_min_mbps: rate(
            desired.bandwidth_min_bps,
            is.rate_min_mbps,
            gone(|vf| vf.bandwidth_min_bps.is_some()),
        ),
        rate_max_mbps: rate(
            desired.bandwidth_max_bps,
            is.rate_max_mbps,
            gone(|vf| vf.bandwidth_max_bps.is_some()),
        ),
        link_state: desired.link_state.map(link_state).or(if gone(|vf| vf.link_state.is_some()) {
            Some(ports::VfLinkState::Auto)
        } else {
            is.link_state
        }),
    }
}

/// Returns the changes that restore the settings `was`.
pub(super) fn rollback_change(is: &VfSettings, was: &VfSettings) -> VfSettingsChange {
    let flag = |is: Option<bool>, was: Option<bool>| was.filter(|_| is != was);
    let rates = (was.rate_min_mbps, was.rate_max_mbps);
    VfSettingsChange {
        mac: (is.mac != was.mac).then_some(was.mac),
        vlan: (is.vlan != was.vlan).then_some(was.vlan),
        spoof_check: flag(is.spoof_check, was.spoof_check),
        trust: flag(is.trust, was.trust),
        rates_mbps: (rates != (is.rate_min_mbps, is.rate_max_mbps)).then_some(rates),
        link_state: was.link_state.filter(|_| is.link_state != was.link_state),
    }
}

/// Returns the keys that a change modifies, with their new values.
pub(super) fn changed_keys(change: &VfSettingsChange) -> Vec<(&'static str, String)> {
    let mut words = Vec::new();
    if let Some(mac) = change.mac {
        words.push(("mac", mac.to_string()));
    }
    if let Some(vlan) = change.vlan {
        words.push(("vlan", vlan.map_or_else(|| "none".to_owned(), |vlan| vlan.to_string())));
    }
    if let Some(on) = change.spoof_check {
        words.push(("spoof_check", on.to_string()));
    }
    if let Some(on) = change.trust {
        words.push(("trust", on.to_string()));
    }
    if let Some((least, most)) = change.rates_mbps {
        words.push(("bandwidth_min_bps", (u64::from(least) * MBPS).to_string()));
        words.push(("bandwidth_max_bps", (u64::from(most) * MBPS).to_string()));
    }
    if let Some(state) = change.link_state {
        let word = match state {
            ports::VfLinkState::Auto => "auto",
            ports::VfLinkState::Enable => "enable",
            ports::VfLinkState::Disable => "disable",
        };
        words.push(("link_state", word.to_owned()));
    }
    words
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
pub(super) const fn link_state_shown(state: ports::VfLinkState) -> VfLinkState {
    match state {
        ports::VfLinkState::Auto => VfLinkState::Auto,
        ports::VfLinkState::Enable => VfLinkState::Enable,
        ports::VfLinkState::Disable => VfLinkState::Disable,
    }
}

/// Returns a rate in bits per second; `None` if it is unlimited.
pub(super) fn bps(mbps: u32) -> Option<u64> {
    (mbps > 0).then(|| u64::from(mbps) * MBPS)
}

/// Returns the address of a VF; `None` for the zero address, which means that none was assigned.
pub(super) fn assigned_mac(mac: MacAddr) -> Option<MacAddr> {
    mac.is_station().then_some(mac)
}
