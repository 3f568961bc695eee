//! Forwarding decisions (verdicts).

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::VlanId;

use crate::PortSlot;

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
    /// member, and [`Tables::fits`](crate::Tables::fits) checks the MTU.
    Flood {
        /// VLAN of the frame; `None` is the untagged VLAN.
        vlan: Option<VlanId>,
        /// Reason for which the frame is flooded.
        kind: FloodKind,
    },
    /// The frame is dropped and counted.
    Drop(DropReason),
}

impl Default for Verdict {
    fn default() -> Self {
        Self::Drop(DropReason::NoDestination)
    }
}

/// Reason for which a frame is flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodKind {
    /// The destination is a group address: multicast or broadcast. All members get the frame.
    Group,
    /// The destination is unknown. Ports restricted to their configured address are excluded: the
    /// frame cannot be for them.
    UnknownUnicast,
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Reason for which a frame was dropped. The names are stable: metrics, JSON and events use
        /// them.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum DropReason {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl DropReason {
            /// Every reason, in the order of [`DropReason::index`].
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// Number of reasons, the length of a table of counters.
            pub const COUNT: usize = Self::ALL.len();

            /// Returns the stable name of the reason, in snake case.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// The frame is shorter than an Ethernet header.
    Malformed = "malformed",
    /// The ingress port is not in these tables.
    PortGone = "port_gone",
    /// The source is not the port's address and the port may not use others, or it is the enforced
    /// address of another port.
    SpoofedSource = "spoofed_source",
    /// The source address is a group address.
    GroupSource = "group_source",
    /// The source address is all zero.
    ZeroSource = "zero_source",
    /// The ingress port does not carry the VLAN of the tag.
    VlanNotAllowed = "vlan_not_allowed",
    /// The frame has a VLAN tag on an access port.
    TaggedOnAccess = "tagged_on_access",
    /// The frame is untagged on a trunk port without a VLAN for untagged frames.
    UntaggedOnTrunk = "untagged_on_trunk",
    /// The destination is reserved for link-local protocols, which a switch does not forward
    /// (01:80:c2:00:00:00 to 0f; IEEE 802.1Q-2022, table 8-1).
    LinkLocal = "link_local",
    /// The destination is on the ingress port.
    SameEgress = "same_egress",
    /// Ingress and egress port are isolated.
    Isolated = "isolated",
    /// The frame exceeds the MTU of the egress port.
    TooLong = "too_long",
    /// The frame was flooded, and no other port gets it.
    NoDestination = "no_destination",
    /// The port's storm limit for flooded frames is exceeded.
    StormLimit = "storm_limit",
    /// The port's bandwidth limit is exceeded, and no more frames may be queued.
    BandwidthLimit = "bandwidth_limit",
    /// The queue of the egress is full.
    EgressFull = "egress_full",
    /// The egress has no queue: no guest attached, or no carrier.
    EgressDown = "egress_down",
    /// The team of the ingress or egress is down.
    TeamDown = "team_down",
    /// The ingress member of a team does not collect frames: its link is down, LACP does not permit
    /// it, or it is not in the team.
    NotCollecting = "not_collecting",
    /// The ingress member is the idle standby of a team.
    Standby = "standby",
    /// Another member of the team is the primary, which receives.
    NotPrimary = "not_primary",
    /// Reflected frame, received on a team member: this host sent it.
    Reflected = "reflected",
    /// The frame was received on a team member, and all its destination ports are assigned to other
    /// members, which receive copies.
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
    fn every_name_is_the_same_everywhere() {
        for (index, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
            let json = serde_json::to_string(reason).unwrap();
            assert_eq!(json, format!("\"{reason}\""));
            assert_eq!(serde_json::from_str::<DropReason>(&json).unwrap(), *reason);
            assert!(reason.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        }
    }

    #[test]
    fn a_verdict_is_small() {
        assert!(size_of::<Verdict>() <= 8);
    }
}
