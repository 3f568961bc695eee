//! Messages that change a VF: `RTM_SETLINK` on the network device of its physical function. Each
//! setting has a message of its own, so that an error identifies the setting.

use suimon_netif::attributes::push_attribute;
use suimon_ports::VfSettingsChange;

use super::link_socket::link_message;
use super::vf_info::{
    VF_INFO, VF_LINK_STATE, VF_MAC, VF_RATE, VF_SPOOF_CHECK, VF_TRUST, VF_VLAN, VFINFO_LIST,
    link_state_number,
};

/// Size in bytes of the address in `struct ifla_vf_mac`.
const ADDRESS_BYTES: usize = 32;

/// Encodes the bodies of the messages for all settings in `change`, each with its configuration
/// key. `device` is the interface index of the physical function, `index` the index of the VF.
pub(super) fn encode_messages(
    device: u32,
    index: u16,
    change: &VfSettingsChange,
) -> Vec<(&'static str, Vec<u8>)> {
    let vf = u32::from(index);
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
    let mut changes: Vec<(&'static str, u16, Vec<u8>)> = Vec::new();
    if let Some(mac) = change.mac {
        let mut value = words(&[vf]);
        value.extend(mac.octets());
        value.resize(size_of::<u32>() + ADDRESS_BYTES, 0);
        changes.push(("mac", VF_MAC, value));
    }
    if let Some(vlan) = change.vlan {
        let id = vlan.map_or(0, |vlan| u32::from(vlan.get()));
        // The priority in the tag is 0.
        changes.push(("vlan", VF_VLAN, words(&[vf, id, 0])));
    }
    if let Some(enabled) = change.spoof_check {
        changes.push(("spoof_check", VF_SPOOF_CHECK, words(&[vf, u32::from(enabled)])));
    }
    if let Some(enabled) = change.trust {
        changes.push(("trust", VF_TRUST, words(&[vf, u32::from(enabled)])));
    }
    if let Some((min, max)) = change.rates_mbps {
        let field = if min > 0 { "bandwidth_min_bps" } else { "bandwidth_max_bps" };
        changes.push((field, VF_RATE, words(&[vf, min, max])));
    }
    if let Some(state) = change.link_state {
        let state = link_state_number(state);
        changes.push(("link_state", VF_LINK_STATE, words(&[vf, state])));
    }
    let message = |value: &[u8], kind| {
        let (mut info, mut list, mut body) = (Vec::new(), Vec::new(), link_message(device));
        push_attribute(&mut info, kind, value);
        push_attribute(&mut list, VF_INFO, &info);
        push_attribute(&mut body, VFINFO_LIST, &list);
        body
    };
    changes.iter().map(|(field, kind, value)| (*field, message(value, *kind))).collect()
}

#[cfg(test)]
mod tests {
    use suimon_frame::{MacAddr, VlanId};
    use suimon_ports::VfLinkState;

    use super::super::vf_info::decode_vf_list;
    use super::*;
    use suimon_netif::attributes::attribute;
    use suimon_netif::netlink::LINK_BYTES;

    #[test]
    fn encoded_changes_decode_to_the_same_settings() {
        let change = VfSettingsChange {
            mac: Some(MacAddr::new([2, 0, 0, 0, 0, 1])),
            vlan: Some(VlanId::new(7)),
            spoof_check: Some(false),
            trust: Some(true),
            rates_mbps: Some((0, 50)),
            link_state: Some(VfLinkState::Enable),
        };
        let bodies = encode_messages(9, 2, &change);
        let fields: Vec<_> = bodies.iter().map(|(field, _)| *field).collect();
        let expected = ["mac", "vlan", "spoof_check", "trust", "bandwidth_max_bps", "link_state"];
        assert_eq!(fields, expected);
        for (_, body) in &bodies {
            assert_eq!(suimon_netif::attributes::u32_at(body, 4), Some(9));
        }
        // Combines the settings of all messages to those of one function.
        let mut info = Vec::new();
        for (_, body) in &bodies {
            let list = attribute(&body[LINK_BYTES..], VFINFO_LIST).unwrap();
            info.extend(attribute(list, VF_INFO).unwrap());
        }
        let mut list = Vec::new();
        push_attribute(&mut list, VF_INFO, &info);
        let read = decode_vf_list(&list).remove(&2).unwrap();
        assert_eq!(Some(read.mac), change.mac);
        assert_eq!(Some(read.vlan), change.vlan);
        assert_eq!((read.spoof_check, read.trust), (change.spoof_check, change.trust));
        assert_eq!((read.rate_min_mbps, read.rate_max_mbps), (0, 50));
        assert_eq!(read.link_state, change.link_state);
        assert_eq!(encode_messages(9, 2, &VfSettingsChange::default()), []);
    }
}
