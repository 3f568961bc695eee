//! Key of the address tables.

use crate::hash::mix;

/// MAC address on a VLAN of a switch, with its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressKey {
    /// MAC address in bits 0 to 47, VLAN number in bits 48 to 59 (0: untagged VLAN).
    pub(crate) mac_and_vlan: u64,
    /// Index of the switch in `Tables::switches`.
    pub(crate) switch_index: u16,
    pub(crate) hash: u64,
}

impl AddressKey {
    /// Creates the key of the address `mac` on VLAN number `vlan` of the switch with index `index`
    /// and hash salt `salt`.
    #[inline]
    pub(crate) fn new(salt: u64, index: u16, vlan: u16, mac: u64) -> Self {
        let word = mac | u64::from(vlan) << 48;
        Self { mac_and_vlan: word, switch_index: index, hash: mix(word, salt) }
    }

    #[inline]
    pub(crate) fn vlan(&self) -> u16 {
        (self.mac_and_vlan >> 48) as u16 & 0x0fff
    }
}
