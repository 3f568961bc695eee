//! VLAN identifiers and tags (IEEE 802.1Q-2022, section 9.6).

use core::fmt;

use serde::{Deserialize, Serialize};

/// VLAN identifier, 1 to 4094.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct VlanId(u16);

impl VlanId {
    /// Creates an identifier; `None` unless `id` is in 1..=4094 (0 and 4095 are reserved).
    pub const fn new(id: u16) -> Option<Self> {
        if id >= 1 && id <= 4094 { Some(Self(id)) } else { None }
    }

    /// Returns the identifier as a number, 1 to 4094.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for VlanId {
    type Error = &'static str;

    fn try_from(id: u16) -> Result<Self, Self::Error> {
        Self::new(id).ok_or("a VLAN is a number from 1 to 4094")
    }
}

impl From<VlanId> for u16 {
    fn from(vlan: VlanId) -> Self {
        vlan.0
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Tag control information of an 802.1Q tag: priority (3 bits), drop-eligible (1 bit) and VLAN
/// identifier (12 bits, 0: priority tag).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag(u16);

impl VlanTag {
    /// Creates a tag from its control information in wire format.
    pub const fn from_tci(tci: u16) -> Self {
        Self(tci)
    }

    /// Creates a tag of `vlan` with priority 0.
    pub const fn for_vlan(vlan: VlanId) -> Self {
        Self(vlan.0)
    }

    /// Returns the control information in wire format.
    pub const fn tci(self) -> u16 {
        self.0
    }

    /// Returns the VLAN of the tag; `None` for a priority tag (0) or the reserved value 4095.
    pub const fn vlan(self) -> Option<VlanId> {
        VlanId::new(self.0 & 0x0fff)
    }

    /// Returns true for a priority tag, which has no VLAN.
    pub const fn is_priority_only(self) -> bool {
        self.0 & 0x0fff == 0
    }

    /// Returns the tag with another VLAN and the same priority.
    pub const fn with_vlan(self, vlan: VlanId) -> Self {
        Self((self.0 & 0xf000) | vlan.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_identifiers_are_no_vlans() {
        for id in [0, 4095, 4096, u16::MAX] {
            assert_eq!(VlanId::new(id), None);
            assert!(VlanId::try_from(id).is_err());
        }
        for id in [1, 100, 4094] {
            assert_eq!(VlanId::new(id).map(VlanId::get), Some(id));
        }
    }

    #[test]
    fn a_tag_keeps_its_priority_on_another_vlan() {
        let tag = VlanTag::from_tci(0xb064);
        assert_eq!(tag.vlan(), VlanId::new(100));
        let moved = VlanId::new(7).map(|vlan| tag.with_vlan(vlan));
        assert_eq!(moved, Some(VlanTag::from_tci(0xb007)));
        assert!(VlanTag::from_tci(0xe000).is_priority_only());
        assert_eq!(VlanTag::from_tci(0xe000).vlan(), None);
        let reserved = VlanTag::from_tci(0x0fff);
        assert!(reserved.vlan().is_none() && !reserved.is_priority_only());
    }
}
