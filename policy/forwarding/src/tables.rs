//! Immutable tables of all switches of a host.

use suimon_frame::{MacAddr, VlanId, VlanTag};
use suimon_quantity::{PortId, SwitchId};

use crate::configured_addresses::ConfiguredAddresses;
use crate::key::AddressKey;
use crate::slot::PortSlot;
use crate::verdict::DropReason;

/// Value of `Port::trunk_index` for an access port.
pub(crate) const NO_TRUNK: u32 = u32::MAX;
/// Value of `Port::untagged_vlan` for a trunk without a VLAN for untagged frames.
pub(crate) const NO_VLAN: u16 = u16::MAX;

/// Properties of a port that are used for each frame, half a cache line.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// Configured address; 0 if there is none.
    pub(crate) mac: u64,
    pub(crate) id: PortId,
    /// Index of the port's VLAN set in `Tables::trunk_vlans`, or [`NO_TRUNK`].
    pub(crate) trunk_index: u32,
    pub(crate) learned_addresses_max: u32,
    /// Number of the VLAN whose frames are untagged on the link, or [`NO_VLAN`].
    pub(crate) untagged_vlan: u16,
    /// Index into `Tables::switches`.
    pub(crate) switch_index: u16,
    /// Length in bytes of the longest frame that may be sent to the port, without VLAN tag.
    pub(crate) frame_bytes_max: u16,
    /// True if the port is restricted to source address `mac` (port security).
    pub(crate) restricts_source: bool,
    /// True for a guest's NIC. It may not send from addresses bound to other NICs.
    pub(crate) is_nic: bool,
    pub(crate) isolated: bool,
    /// True if the first source address of the port is to be bound to it.
    pub(crate) binds_source: bool,
}

/// Switch in the tables. Its ports have contiguous slots: trunks first, then access ports by VLAN,
/// so that the ports of a VLAN are two ranges.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) id: SwitchId,
    pub(crate) salt: u64,
    pub(crate) ageing: Ageing,
    pub(crate) first_trunk_slot: u16,
    pub(crate) first_access_slot: u16,
    pub(crate) end_slot: u16,
    /// True if a trunk port of this switch has a configured address.
    pub(crate) has_trunk_address: bool,
    /// True if a trunk port of this switch has a bound address.
    pub(crate) has_trunk_bound_address: bool,
}

/// Ageing of a switch, in ticks (about 17 ms).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ageing {
    /// Age from which an entry is renewed by the next frame.
    pub(crate) refresh_ticks: u32,
    /// Age above which an entry has expired.
    pub(crate) expiry_ticks: u32,
}

/// Switches and ports of a host in the form used for forwarding. Created by [`Tables::build`];
/// immutable.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(crate) ports: Box<[Port]>,
    pub(crate) switches: Box<[Switch]>,
    pub(crate) trunk_vlans: Box<[[u64; 64]]>,
    /// Slot of each port, in ascending order of port identifiers.
    pub(crate) by_id: Box<[(PortId, PortSlot)]>,
    pub(crate) configured_addresses: ConfiguredAddresses,
    /// Bound addresses, each with the one NIC that may send from it.
    pub(crate) bound_addresses: ConfiguredAddresses,
    /// Hash of the properties on which learned addresses depend: tables with equal fingerprints
    /// need no check of learned addresses.
    pub(crate) fingerprint: u64,
}

impl Tables {
    /// Returns the slot of a port; `None` if the tables do not contain it.
    pub fn slot(&self, port: PortId) -> Option<PortSlot> {
        let index = self.by_id.binary_search_by_key(&port, |(id, _)| *id).ok()?;
        self.by_id.get(index).map(|(_, slot)| *slot)
    }

    /// Returns the port in a slot; `None` only for a slot of other tables.
    #[inline]
    pub fn port_id(&self, slot: PortSlot) -> Option<PortId> {
        self.port(slot).map(|port| port.id)
    }

    /// Returns the switch of the port in a slot; `None` only for a slot of other tables.
    pub fn port_switch(&self, slot: PortSlot) -> Option<SwitchId> {
        self.switch(self.port(slot)?.switch_index).map(|switch| switch.id)
    }

    /// Returns the number of ports. Valid slots are below it.
    #[inline]
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Returns the port whose configured address is `mac` on a VLAN of a switch, or the uplink by
    /// which that address is reached; `None` if there is none.
    pub fn configured_port(
        &self,
        switch: SwitchId,
        vlan: Option<VlanId>,
        mac: MacAddr,
    ) -> Option<PortSlot> {
        let index = self.switches.binary_search_by_key(&switch, |switch| switch.id).ok()?;
        let index = u16::try_from(index).ok()?;
        let key = AddressKey::new(
            self.switch(index)?.salt,
            index,
            crate::vlan_set::number(vlan),
            mac.to_u64(),
        );
        self.configured_slot(&key)
    }

    /// Returns true if the port in a slot carries a VLAN; `None` is the untagged VLAN.
    pub fn carries(&self, slot: PortSlot, vlan: Option<VlanId>) -> bool {
        self.port(slot).is_some_and(|port| self.carries_number(port, crate::vlan_set::number(vlan)))
    }

    #[inline]
    pub(crate) fn port(&self, slot: PortSlot) -> Option<&Port> {
        self.ports.get(slot.index())
    }

    #[inline]
    pub(crate) fn switch(&self, index: u16) -> Option<&Switch> {
        self.switches.get(usize::from(index))
    }

    #[inline]
    pub(crate) fn carries_number(&self, port: &Port, vlan: u16) -> bool {
        if port.trunk_index == NO_TRUNK {
            port.untagged_vlan == vlan
        } else {
            self.trunk_carries(port, vlan)
        }
    }

    #[inline]
    fn trunk_carries(&self, port: &Port, vlan: u16) -> bool {
        self.trunk_vlans
            .get(port.trunk_index as usize)
            .and_then(|words| words.get(usize::from(vlan >> 6)))
            .is_some_and(|word| word >> (vlan & 63) & 1 != 0)
    }

    /// Returns the number of the VLAN to which a frame received on `port` with this tag belongs; 0
    /// is the untagged VLAN.
    ///
    /// A frame that belongs to the VLAN of untagged frames must not contain a tag: where it leaves
    /// untagged, the receiver would read the VLAN from that tag (double tagging).
    ///
    /// # Errors
    ///
    /// The reason for which the frame is dropped: the port does not carry the VLAN, or the tags are
    /// not permitted on it.
    #[inline]
    pub(crate) fn ingress_vlan(
        &self,
        port: &Port,
        tag: Option<VlanTag>,
        has_nested_tag: bool,
    ) -> Result<u16, DropReason> {
        match tag {
            Some(tag) if !tag.is_priority_only() => {
                let vlan = tag.tci() & 0x0fff;
                if port.trunk_index == NO_TRUNK {
                    Err(DropReason::TaggedOnAccess)
                } else if self.trunk_carries(port, vlan) {
                    Ok(vlan)
                } else {
                    Err(DropReason::VlanNotAllowed)
                }
            }
            _ if has_nested_tag && port.trunk_index == NO_TRUNK => Err(DropReason::TaggedOnAccess),
            _ if has_nested_tag => Err(DropReason::NestedTag),
            _ if port.untagged_vlan == NO_VLAN => Err(DropReason::UntaggedOnTrunk),
            _ => Ok(port.untagged_vlan),
        }
    }

    /// Returns the port whose configured address and VLAN are those of `key`, or the uplink by
    /// which the address is reached.
    #[inline]
    pub(crate) fn configured_slot(&self, key: &AddressKey) -> Option<PortSlot> {
        let slot = self.configured_addresses.access_port(key);
        slot.or_else(|| {
            self.trunk_slot(&self.configured_addresses, key, |switch| switch.has_trunk_address)
        })
    }

    /// Returns true if the port at `slot` is a NIC and the address is bound to another one.
    pub(crate) fn is_bound_to_other_nic(&self, key: &AddressKey, slot: PortSlot) -> bool {
        let owner = || {
            let owner = self.bound_addresses.access_port(key);
            owner.or_else(|| {
                self.trunk_slot(&self.bound_addresses, key, |switch| switch.has_trunk_bound_address)
            })
        };
        let is_nic = self.port(slot).is_some_and(|port| port.is_nic);
        is_nic && owner().is_some_and(|owner| owner != slot)
    }

    #[inline]
    fn trunk_slot(
        &self,
        addresses: &ConfiguredAddresses,
        key: &AddressKey,
        has_any: impl Fn(&Switch) -> bool,
    ) -> Option<PortSlot> {
        let switch = self.switch(key.switch_index).filter(|switch| has_any(switch))?;
        let carries =
            |slot| self.port(slot).is_some_and(|port| self.carries_number(port, key.vlan()));
        addresses.trunk_port(key, switch.salt, carries)
    }
}
