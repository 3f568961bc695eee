//! Decoding of `IFLA_VFINFO_LIST`, the settings of virtual functions (`linux/if_link.h`).
//!
//! This module performs no I/O.

use std::collections::BTreeMap;

use suimon_frame::{MacAddr, VlanId};
use suimon_netif::attributes::{attributes, u32_at};
use suimon_ports::{VfLinkState, VfSettings};

pub(super) const VFINFO_LIST: u16 = 22;
pub(super) const VF_INFO: u16 = 1;
pub(super) const VF_MAC: u16 = 1;
pub(super) const VF_VLAN: u16 = 2;
pub(super) const VF_SPOOF_CHECK: u16 = 4;
pub(super) const VF_LINK_STATE: u16 = 5;
pub(super) const VF_RATE: u16 = 6;
pub(super) const VF_TRUST: u16 = 9;
/// Link states, indexed by their numbers `IFLA_VF_LINK_STATE_…`.
const LINK_STATES: [VfLinkState; 3] =
    [VfLinkState::Auto, VfLinkState::Enable, VfLinkState::Disable];
/// Mask of a VLAN ID in a `u32` of rtnetlink.
const VLAN_MASK: u32 = 0x0fff;

/// Decodes the value of `IFLA_VFINFO_LIST`: the settings of all VFs, by VF index. Invalid entries
/// are omitted.
pub(super) fn decode_vf_list(list: &[u8]) -> BTreeMap<u16, VfSettings> {
    let infos = attributes(list).filter(|(kind, _)| *kind == VF_INFO);
    infos.filter_map(|(_, info)| vf_info(info)).collect()
}

fn vf_info(info: &[u8]) -> Option<(u16, VfSettings)> {
    let mut settings = VfSettings {
        mac: MacAddr::default(),
        vlan: None,
        spoof_check: None,
        trust: None,
        rate_min_mbps: 0,
        rate_max_mbps: 0,
        link_state: None,
    };
    let mut index = None;
    for (kind, value) in attributes(info) {
        // Each value begins with the index of the function.
        let Some(word) = u32_at(value, 4) else { continue };
        match kind {
            VF_MAC => {
                index = u32_at(value, 0).and_then(|vf| u16::try_from(vf).ok());
                settings.mac = mac(value)?;
            }
            VF_VLAN => {
                settings.vlan = u16::try_from(word & VLAN_MASK).ok().and_then(VlanId::new);
            }
            VF_SPOOF_CHECK => settings.spoof_check = flag(word),
            VF_TRUST => settings.trust = flag(word),
            VF_LINK_STATE => {
                let state = usize::try_from(word).ok().and_then(|word| LINK_STATES.get(word));
                settings.link_state = state.copied();
            }
            VF_RATE => {
                settings.rate_min_mbps = word;
                settings.rate_max_mbps = u32_at(value, 8)?;
            }
            _ => {}
        }
    }
    Some((index?, settings))
}

/// Decodes `IFLA_VF_MAC`: VF index (4 bytes), then a field of 32 bytes that begins with the MAC
/// address. Returns `None` for less than 10 bytes.
fn mac(value: &[u8]) -> Option<MacAddr> {
    value.get(4..)?.first_chunk().copied().map(MacAddr::new)
}

/// Decodes a flag; `None` for values other than 0 and 1, such as all bits set, which drivers
/// without support report.
const fn flag(word: u32) -> Option<bool> {
    match word {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Returns the number of a link state in rtnetlink (`IFLA_VF_LINK_STATE_…`).
pub(super) const fn link_state_number(state: VfLinkState) -> u32 {
    match state {
        VfLinkState::Auto => 0,
        VfLinkState::Enable => 1,
        VfLinkState::Disable => 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use suimon_netif::attributes::push_attribute;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn info(attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let (mut inner, mut list) = (Vec::new(), Vec::new());
        for (kind, value) in attributes {
            push_attribute(&mut inner, *kind, value);
        }
        push_attribute(&mut list, VF_INFO, &inner);
        list
    }

    fn address(vf: u32, octets: [u8; 6]) -> Vec<u8> {
        let mut value = vf.to_ne_bytes().to_vec();
        value.extend(octets);
        value.resize(36, 0);
        value
    }

    #[test]
    fn reported_vf_settings_are_read_and_unsupported_ones_are_distinguished() {
        let mut list = info(&[
            (VF_MAC, address(3, [2, 0, 0, 0, 0, 9])),
            (VF_VLAN, words(&[3, 20, 0])),
            (VF_RATE, words(&[3, 10, 100])),
            (VF_SPOOF_CHECK, words(&[3, 1])),
            (VF_TRUST, words(&[3, 0])),
            (VF_LINK_STATE, words(&[3, 2])),
        ]);
        list.extend(info(&[
            (VF_MAC, address(0, [0; 6])),
            (VF_VLAN, words(&[0, 0, 0])),
            (VF_SPOOF_CHECK, words(&[0, u32::MAX])),
            (VF_LINK_STATE, words(&[0, 7])),
        ]));
        let settings = decode_vf_list(&list);
        assert_eq!(settings.keys().copied().collect::<Vec<_>>(), [0, 3]);
        let third = &settings[&3];
        assert_eq!(third.mac, MacAddr::new([2, 0, 0, 0, 0, 9]));
        assert_eq!(third.vlan, VlanId::new(20));
        assert_eq!((third.rate_min_mbps, third.rate_max_mbps), (10, 100));
        assert_eq!((third.spoof_check, third.trust), (Some(true), Some(false)));
        assert_eq!(third.link_state, Some(VfLinkState::Disable));
        let first = &settings[&0];
        assert_eq!((first.vlan, first.spoof_check, first.trust), (None, None, None));
        assert_eq!(first.link_state, None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_vf_list(&bytes);
            let mut list = Vec::new();
            push_attribute(&mut list, VF_INFO, &bytes);
            let _ = decode_vf_list(&list);
        }
    }
}
