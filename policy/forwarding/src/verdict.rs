//! Forwarding decisions (verdicts).

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::VlanId;

use crate::slot::PortSlot;

/// Forwarding decision for one frame of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame is sent to this port. The tag in its metadata is already the one to send;
    /// isolation and MTU have been checked.
    Unicast {
        /// Slot of the egress port.
        egress: PortSlot,
    },
    /// The frame is sent to every member of [`Tables::flood`](crate::Tables::flood). The tag in its
    /// metadata is the received one; [`TagRule::apply`](crate::TagRule::apply) derives that of each
    /// member, and [`Tables::check_copy`](crate::Tables::check_copy) checks the MTU and
    /// inner tags.
    Flood {
        /// VLAN of the frame; `None` is the untagged VLAN.
        vlan: Option<VlanId>,
        /// Reason for which the frame is flooded.
        kind: FloodKind,
    },
    /// The frame is dropped and counted under this reason.
    Drop(DropReason),
}

impl Default for Verdict {
    fn default() -> Self {
        Self::Drop(DropReason::NoDestination)
    }
}

/// Whether a frame is flooded because of its group address or an unknown destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodKind {
    /// The destination is a group address: multicast or broadcast. All members get the frame.
    Group,
    /// The destination is unknown. Ports restricted to their configured address are excluded: the
    /// frame cannot be for them.
    UnknownUnicast,
}

macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)*) => {
        /// Reason for which the data plane drops a frame. The names are stable: metrics, JSON and
        /// events use them.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum DropReason {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)*
        }

        impl DropReason {
            /// Every reason, in the order of [`DropReason::index`].
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// Number of reasons: the length of a table of counters.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns the stable name, in snake case.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the meaning of the reason in one or more sentences, as the reference page
            /// shows it.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)*
                }
            }
        }
    };
}

drop_reasons! {
    /// The frame is shorter than an Ethernet header.
    Malformed = "malformed",
    /// The ingress port was removed while the frame was in flight.
    PortGone = "port_gone",
    /// The source address is not the address of the port, which may use no other, or it is the
    /// protected address of another port.
    SpoofedSource = "spoofed_source",
    /// The source address is a group address.
    GroupSource = "group_source",
    /// The source address is all zero.
    ZeroSource = "zero_source",
    /// The ingress port does not carry the VLAN of the tag.
    VlanNotAllowed = "vlan_not_allowed",
    /// A frame with a VLAN tag arrived on an access port.
    TaggedOnAccess = "tagged_on_access",
    /// The receiver would take an inner VLAN tag for the tag of the frame: it follows a priority
    /// tag (VLAN 0), it has another type than 0x8100, or the tag before it would be removed at a
    /// trunk port or an uplink.
    NestedTag = "nested_tag",
    /// An untagged frame arrived on a trunk port without untagged VLAN. No configuration of a NIC
    /// leads to this: a trunk port of a NIC always has a native VLAN or the untagged network.
    UntaggedOnTrunk = "untagged_on_trunk",
    /// The destination is a link-local group address, which a switch does not forward
    /// (01:80:c2:00:00:00 to 0f; IEEE 802.1Q-2022, table 8-1).
    LinkLocal = "link_local",
    /// The destination is behind the port on which the frame arrived, so that no forwarding is
    /// required.
    SameEgress = "same_egress",
    /// Ingress and egress port are both isolated.
    Isolated = "isolated",
    /// The frame exceeds the MTU of the egress port.
    TooLong = "too_long",
    /// A flooded frame has no egress port.
    NoDestination = "no_destination",
    /// The limit of the port for flooded frames (`storm_limit_fps`) is used up.
    StormLimit = "storm_limit",
    /// Not counted: frames of a port that has used up its `bandwidth_max_bps` stay in its queue.
    BandwidthLimit = "bandwidth_limit",
    /// The egress queue is full: the receiver does not take frames fast enough.
    EgressFull = "egress_full",
    /// The egress port has no queue: no guest is connected, or there is no carrier.
    EgressDown = "egress_down",
    /// The ingress or egress team is down.
    TeamDown = "team_down",
    /// The frame arrived on a team member that does not collect frames: the link is down, LACP
    /// does not permit it, or the team does not have the member.
    NotCollecting = "not_collecting",
    /// The frame arrived on the standby member of a team, which is not in use.
    Standby = "standby",
    /// The frame arrived on a team member that is not the primary (receiving) one.
    NotPrimary = "not_primary",
    /// The frame arrived on a team member, and this host had sent it.
    Reflected = "reflected",
    /// The frame arrived on a team member, and all of its receivers are assigned to other members,
    /// which receive copies.
    OtherMember = "other_member",
}

impl DropReason {
    /// Returns the index in [`DropReason::ALL`].
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_names_equal_their_serialized_names() {
        for (index, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
            let json = serde_json::to_string(reason).unwrap();
            assert_eq!(json, format!("\"{reason}\""));
            assert_eq!(serde_json::from_str::<DropReason>(&json).unwrap(), *reason);
            assert!(reason.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
            assert!(reason.meaning().ends_with('.'), "{}", reason.meaning());
        }
    }

    #[test]
    fn a_verdict_is_small() {
        assert!(size_of::<Verdict>() <= 8);
    }
}
