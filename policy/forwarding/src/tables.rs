//! The immutable tables of all switches of a host.

use suimon_frame::{MacAddr, VlanId, VlanTag};
use suimon_quantity::{PortId, SwitchId};

use crate::statics::Statics;
use crate::verdict::DropReason;

/// A port's place in one [`Tables`]. It means nothing to any other: after new
/// tables, ask again with [`Tables::slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSlot(pub(crate) u16);

impl PortSlot {
    /// Counts from 0 and is below [`Tables::slots`], for tables of the caller's.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// `Port::trunk` of an access port.
pub(crate) const ACCESS: u32 = u32::MAX;
/// `Port::untagged` of a trunk without a VLAN for untagged frames.
pub(crate) const NO_VLAN: u16 = u16::MAX;

/// A port as the switch sees it for each frame: half a cache line.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// The configured address, 0 if there is none.
    pub(crate) mac: u64,
    pub(crate) id: PortId,
    /// Which of `Tables::trunks`, or [`ACCESS`].
    pub(crate) trunk: u32,
    pub(crate) learned_max: u32,
    /// Number of the VLAN whose frames have no tag on the wire, or [`NO_VLAN`].
    pub(crate) untagged: u16,
    /// Which of `Tables::switches`.
    pub(crate) switch: u16,
    /// The longest frame it takes, untagged.
    pub(crate) frame_bytes_max: u16,
    /// Its only source address is `mac`.
    pub(crate) guarded: bool,
    /// True for a guest's NIC. It may not send from addresses bound to other NICs.
    pub(crate) is_nic: bool,
    pub(crate) isolated: bool,
    /// True if the first source address of the port is to be bound to it.
    pub(crate) binds_source: bool,
}

/// A switch as the tables hold it. Its ports lie side by side: trunks first, then
/// access ports by VLAN, so that the members of a VLAN are two ranges.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) id: SwitchId,
    pub(crate) salt: u64,
    pub(crate) ageing: Ageing,
    pub(crate) trunks_first: u16,
    pub(crate) access_first: u16,
    pub(crate) end: u16,
    /// Whether a trunk of it has a configured address.
    pub(crate) has_trunk_address: bool,
    /// True if a trunk port of this switch has a bound address.
    pub(crate) has_trunk_bound: bool,
}

/// Ageing of a switch, in ticks of the learned addresses' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ageing {
    /// A note older than this is renewed by the next frame.
    pub(crate) refresh: u32,
    /// A note older than this no longer counts.
    pub(crate) expiry: u32,
}

/// All switches and ports of a host, in the form that frames are decided with.
/// Made by [`Tables::build`]; never changes.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(crate) ports: Box<[Port]>,
    pub(crate) switches: Box<[Switch]>,
    pub(crate) trunks: Box<[[u64; 64]]>,
    /// Ascending.
    pub(crate) by_id: Box<[(PortId, PortSlot)]>,
    pub(crate) statics: Statics,
    /// Bound addresses, each with the one NIC that may send from it.
    pub(crate) bound: Statics,
    /// Differs between tables that differ in what a replica depends on.
    pub(crate) fingerprint: u64,
}

impl Tables {
    /// The place of a port; `None` if the tables do not have it.
    pub fn slot(&self, port: PortId) -> Option<PortSlot> {
        let at = self.by_id.binary_search_by_key(&port, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, slot)| *slot)
    }

    /// The port at a place; `None` only for a place in other tables.
    #[inline]
    pub fn port_id(&self, slot: PortSlot) -> Option<PortId> {
        self.port(slot).map(|port| port.id)
    }

    /// The switch of the port at a place; `None` only for a place in other tables.
    pub fn switch_of(&self, slot: PortSlot) -> Option<SwitchId> {
        self.switch(self.port(slot)?.switch).map(|switch| switch.id)
    }

    /// How many ports there are; places are below this.
    #[inline]
    pub fn slots(&self) -> usize {
        self.ports.len()
    }

    /// The port that has `mac` by configuration on a VLAN of a switch.
    pub fn static_port(
        &self,
        switch: SwitchId,
        vlan: Option<VlanId>,
        mac: MacAddr,
    ) -> Option<PortSlot> {
        let at = self.switches.binary_search_by_key(&switch, |switch| switch.id).ok()?;
        let at = u16::try_from(at).ok()?;
        let key = Key::new(self.switch(at)?, at, crate::vlan_set::number(vlan), mac.to_u64());
        self.static_slot(&key)
    }

    /// Whether the port at a place carries a VLAN; `None` is the untagged VLAN.
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
        if port.trunk == ACCESS { port.untagged == vlan } else { self.trunk_holds(port, vlan) }
    }

    #[inline]
    fn trunk_holds(&self, port: &Port, vlan: u16) -> bool {
        self.trunks
            .get(port.trunk as usize)
            .and_then(|words| words.get(usize::from(vlan >> 6)))
            .is_some_and(|word| word >> (vlan & 63) & 1 != 0)
    }

    /// The number of the VLAN that a frame from `port` with this tag is on.
    #[inline]
    pub(crate) fn ingress_vlan(
        &self,
        port: &Port,
        tag: Option<VlanTag>,
    ) -> Result<u16, DropReason> {
        match tag {
            Some(tag) if !tag.is_priority_only() => {
                let vlan = tag.tci() & 0x0fff;
                if port.trunk == ACCESS {
                    Err(DropReason::TaggedOnAccess)
                } else if self.trunk_holds(port, vlan) {
                    Ok(vlan)
                } else {
                    Err(DropReason::VlanNotAllowed)
                }
            }
            _ if port.untagged == NO_VLAN => Err(DropReason::UntaggedOnTrunk),
            _ => Ok(port.untagged),
        }
    }

    /// The port that has this address by configuration.
    #[inline]
    pub(crate) fn static_slot(&self, key: &Key) -> Option<PortSlot> {
        let slot = self.statics.of_access(key);
        slot.or_else(|| self.trunk_slot(&self.statics, key, |switch| switch.has_trunk_address))
    }

    /// Returns true if the port at `slot` is a NIC and the address is bound to another one.
    pub(crate) fn is_bound_elsewhere(&self, key: &Key, slot: PortSlot) -> bool {
        let owner = || {
            let owner = self.bound.of_access(key);
            owner.or_else(|| self.trunk_slot(&self.bound, key, |switch| switch.has_trunk_bound))
        };
        let is_nic = self.port(slot).is_some_and(|port| port.is_nic);
        is_nic && owner().is_some_and(|owner| owner != slot)
    }

    #[inline]
    fn trunk_slot(
        &self,
        addresses: &Statics,
        key: &Key,
        has_any: impl Fn(&Switch) -> bool,
    ) -> Option<PortSlot> {
        let switch = self.switch(key.switch).filter(|switch| has_any(switch))?;
        let carries =
            |slot| self.port(slot).is_some_and(|port| self.carries_number(port, key.vlan()));
        addresses.of_trunk(key, switch.salt, carries)
    }
}

/// An address on a VLAN of a switch, with its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The address in bits 0 to 47, the VLAN's number in bits 48 to 59.
    pub(crate) word: u64,
    /// Which of `Tables::switches`.
    pub(crate) switch: u16,
    pub(crate) hash: u64,
}

impl Key {
    #[inline]
    pub(crate) fn new(switch: &Switch, index: u16, vlan: u16, mac: u64) -> Self {
        let word = mac | u64::from(vlan) << 48;
        Self { word, switch: index, hash: crate::hash::mix(word, switch.salt) }
    }

    #[inline]
    pub(crate) fn vlan(&self) -> u16 {
        (self.word >> 48) as u16 & 0x0fff
    }
}
