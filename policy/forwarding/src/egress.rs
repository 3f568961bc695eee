//! Egress checks and rewriting: VLAN membership, tags and frame lengths.

use core::ops::Range;

use suimon_frame::{Checksum, Frame, GsoKind, VlanId, VlanTag};

use crate::tables::{NO_TRUNK, Port};
use crate::vlan_set::number;
use crate::{DropReason, FloodKind, PortSlot, Tables};

/// Whether frames of a VLAN are sent with or without a tag at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagRule {
    /// The VLAN is untagged at the port.
    Untagged,
    /// Frames are sent with the tag of this VLAN.
    Tagged(VlanId),
}

impl TagRule {
    /// Returns the tag for a frame received with `original`, whose priority and drop-eligible bits
    /// are kept.
    #[inline]
    pub fn apply(self, original: Option<VlanTag>) -> Option<VlanTag> {
        match self {
            Self::Untagged => None,
            Self::Tagged(vlan) => Some(original.unwrap_or_default().with_vlan(vlan)),
        }
    }

    /// Returns true if a frame that contains a second tag may be sent to `port` under this rule. If
    /// the outer tag is removed, the receiver would take the inner one for the VLAN. Behind an
    /// access port the receiver is the guest itself, for which inner tags are payload; elsewhere it
    /// is another switch.
    #[inline]
    pub(crate) fn permits_nested_tag(self, port: &Port) -> bool {
        self != Self::Untagged || (port.trunk_index == NO_TRUNK && port.is_nic)
    }

    #[inline]
    pub(crate) fn for_vlan(port: &Port, vlan: u16) -> Self {
        if vlan == port.untagged_vlan {
            Self::Untagged
        } else {
            // Only the untagged VLAN has no number, and it is never tagged.
            VlanId::new(vlan).map_or(Self::Untagged, Self::Tagged)
        }
    }
}

/// Port that gets a copy of a flooded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodMember {
    /// Slot of the port in the tables.
    pub slot: PortSlot,
    /// Tag that the copy is sent with.
    pub rule: TagRule,
}

impl Tables {
    /// Returns the ports to which a flooded frame is copied: those of the ingress port's switch
    /// that carry the VLAN. Excluded are the ingress port, isolated ports if the ingress port is
    /// isolated, and for an unknown unicast ports restricted to their configured address.
    #[inline]
    pub fn flood_members(
        &self,
        ingress: PortSlot,
        vlan: Option<VlanId>,
        kind: FloodKind,
    ) -> FloodMembers<'_> {
        let vlan = number(vlan);
        let mut flood = FloodMembers {
            tables: self,
            ingress,
            vlan,
            skip_isolated: false,
            skip_guarded: kind == FloodKind::UnknownUnicast,
            slots: 0..0,
            access: 0..0,
        };
        let Some(port) = self.port(ingress) else { return flood };
        let Some(switch) = self.switch(port.switch_index) else { return flood };
        flood.skip_isolated = port.isolated;
        flood.slots = switch.first_trunk_slot..switch.first_access_slot;
        let access = self
            .ports
            .get(usize::from(switch.first_access_slot)..usize::from(switch.end_slot))
            .unwrap_or_default();
        // Both are at most the number of ports, which fits a u16.
        let first = access.partition_point(|port| port.untagged_vlan < vlan) as u16;
        let end = access.partition_point(|port| port.untagged_vlan <= vlan) as u16;
        flood.access = switch.first_access_slot + first..switch.first_access_slot + end;
        flood
    }

    /// Returns how frames of a VLAN are tagged at the port in `slot`; `None` if the port does not
    /// carry the VLAN.
    #[inline]
    pub fn tag_rule(&self, slot: PortSlot, vlan: Option<VlanId>) -> Option<TagRule> {
        let vlan = number(vlan);
        let port = self.port(slot).filter(|port| self.carries_number(port, vlan))?;
        Some(TagRule::for_vlan(port, vlan))
    }

    /// Checks whether a copy of a flooded frame may be sent to a member.
    ///
    /// # Errors
    /// [`DropReason::TooLong`]: it exceeds the MTU of the port. Tags do not count; a large frame
    /// counts with the length of its segments, wherever it is segmented. [`DropReason::NestedTag`]:
    /// its tag would be removed, and another one follows. [`DropReason::PortGone`]: there is no
    /// such port.
    #[inline]
    pub fn check_copy(&self, member: FloodMember, frame: &Frame) -> Result<(), DropReason> {
        let port = self.port(member.slot).ok_or(DropReason::PortGone)?;
        if frame.has_tag_in_bytes() && !member.rule.permits_nested_tag(port) {
            return Err(DropReason::NestedTag);
        }
        if fits_mtu(port, frame) { Ok(()) } else { Err(DropReason::TooLong) }
    }
}

/// Iterator over the members of a flood, from [`Tables::flood`].
#[derive(Clone, Debug)]
pub struct FloodMembers<'a> {
    tables: &'a Tables,
    ingress: PortSlot,
    vlan: u16,
    skip_isolated: bool,
    skip_guarded: bool,
    slots: Range<u16>,
    /// Slots of the access ports of the VLAN, visited after the trunks in `slots`.
    access: Range<u16>,
}

impl Iterator for FloodMembers<'_> {
    type Item = FloodMember;

    #[inline]
    fn next(&mut self) -> Option<FloodMember> {
        loop {
            let slot = match self.slots.next() {
                Some(slot) => PortSlot(slot),
                None => PortSlot(self.access.next()?),
            };
            let port = self.tables.port(slot)?;
            if slot == self.ingress
                || (self.skip_isolated && port.isolated)
                || (self.skip_guarded && port.restricts_source)
                || (port.trunk_index != NO_TRUNK && !self.tables.carries_number(port, self.vlan))
            {
                continue;
            }
            return Some(FloodMember { slot, rule: TagRule::for_vlan(port, self.vlan) });
        }
    }
}

#[inline]
pub(crate) fn fits_mtu(port: &Port, frame: &Frame) -> bool {
    // A large frame within the limit has segments within it.
    let bytes_max = usize::from(port.frame_bytes_max);
    frame.len() <= bytes_max || segment_bytes(frame).is_some_and(|bytes| bytes <= bytes_max)
}

/// Returns the length in bytes of the longest segment into which a large (GSO) frame is divided,
/// without VLAN tag; `None` if the frame is not large. The metadata is consistent with the frame:
/// the checksum starts at the transport header.
fn segment_bytes(frame: &Frame) -> Option<usize> {
    let gso = frame.meta.gso?;
    let Checksum::Partial { start, .. } = frame.meta.checksum else { return None };
    let start = usize::from(start);
    let transport_bytes = match gso.kind {
        GsoKind::Udp => 8,
        GsoKind::Tcp4 | GsoKind::Tcp6 => usize::from(frame.head().get(start + 12)? >> 4) * 4,
    };
    Some(start + transport_bytes + usize::from(gso.segment_bytes))
}
