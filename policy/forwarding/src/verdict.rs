//! What is to be done with a frame.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::VlanId;

use crate::PortSlot;

/// What is to be done with one frame of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Give it to this port. The tag in its metadata is already the one the
    /// egress puts on the wire; isolation and MTU were checked.
    Unicast {
        /// The port.
        egress: PortSlot,
    },
    /// Give it to every member of [`Tables::flood`](crate::Tables::flood). The
    /// tag in its metadata is still the one it came with;
    /// [`TagRule::apply`](crate::TagRule::apply) makes each member's from it,
    /// and [`Tables::fits`](crate::Tables::fits) says who can take it.
    Flood {
        /// The VLAN it is on; `None` is the untagged VLAN.
        vlan: Option<VlanId>,
        /// Why it is flooded.
        kind: FloodKind,
    },
    /// Drop and count it.
    Drop(DropReason),
}

impl Default for Verdict {
    fn default() -> Self {
        Self::Drop(DropReason::NoDestination)
    }
}

/// Why a frame is flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodKind {
    /// Its destination is a group: multicast or broadcast. All members get it.
    Group,
    /// Nobody knows where its destination is. Ports whose only address is
    /// configured and enforced are left out: it cannot be for them.
    UnknownUnicast,
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a frame was dropped. The names are stable: metrics, JSON and
        /// events use them.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum DropReason {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl DropReason {
            /// All reasons, in the order of [`DropReason::index`].
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// How many reasons there are: the length of a table of counters.
            pub const COUNT: usize = Self::ALL.len();

            /// The stable name, in snake case.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// Shorter than an Ethernet header.
    Malformed = "malformed",
    /// The ingress port is not in these tables.
    PortGone = "port_gone",
    /// The source is not the port's address and the port may not use others, or
    /// it is the enforced address of another port.
    SpoofedSource = "spoofed_source",
    /// The source address is a group.
    GroupSource = "group_source",
    /// The source address is all zero.
    ZeroSource = "zero_source",
    /// The tag names a VLAN the ingress port does not carry.
    VlanNotAllowed = "vlan_not_allowed",
    /// A VLAN's tag on an access port.
    TaggedOnAccess = "tagged_on_access",
    /// No tag on a trunk port that has no VLAN for that.
    UntaggedOnTrunk = "untagged_on_trunk",
    /// The destination is reserved for protocols between neighbours, which a
    /// switch does not forward (01:80:c2:00:00:00 to 0f; IEEE 802.1Q-2022,
    /// table 8-1).
    LinkLocal = "link_local",
    /// The destination is on the port it came from.
    SameEgress = "same_egress",
    /// Both ports are isolated.
    Isolated = "isolated",
    /// Longer than the egress port's MTU allows.
    TooLong = "too_long",
    /// Flooded, and there was no other port to give it to.
    NoDestination = "no_destination",
    /// The port's limit for flooded frames is used up.
    StormLimit = "storm_limit",
    /// The port's bandwidth limit is used up and nothing may wait any longer.
    BandwidthLimit = "bandwidth_limit",
    /// The egress has no room.
    EgressFull = "egress_full",
    /// The egress has no queue: no guest, no carrier.
    EgressDown = "egress_down",
    /// The team that it came in by, or was to leave by, is down.
    TeamDown = "team_down",
    /// It came in by a member of a team that does not collect frames: the link is
    /// down, LACP does not let them in, or the team does not know the member.
    NotCollecting = "not_collecting",
    /// It came in by the standby of a team, which is not in use.
    Standby = "standby",
    /// It came in by a member of a team of which another one receives.
    NotPrimary = "not_primary",
    /// It came in by a member of a team, and this host had sent it.
    Reflected = "reflected",
    /// It came in by a member of a team, and all that it is for live on others, which
    /// get copies of it.
    OtherMember = "other_member",
}

impl DropReason {
    /// Its place in [`DropReason::ALL`].
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
