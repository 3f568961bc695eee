//! Admission of frames received on a team member, and selection of the switch ports that get them.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::{Frame, MacAddr};
use suimon_quantity::PortId;

use crate::distribution::IngressMode;
use crate::{Distribution, MemberSlot};

/// Properties of a received frame on which its admission depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingFrame {
    /// Source MAC address of the frame.
    pub source: MacAddr,
    /// True if the switch received a frame with this source on a port other than the team's within
    /// the last second. A reflected frame returns within milliseconds; a station that moved to
    /// another host stops sending here before it sends from there.
    pub is_source_seen_locally: bool,
}

/// Result of the admission check for a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The frame is forwarded to the ports for which [`Distribution::forwards_to_port`] returns
    /// true.
    Accept,
    /// The frame is dropped and counted under this reason.
    Drop(IncomingDropReason),
}

/// Reason for which a frame received on a member is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncomingDropReason {
    /// The team is down and accepts no frames.
    TeamDown,
    /// The member is not in the team, its link is down, or LACP does not permit it to collect
    /// frames.
    NotCollecting,
    /// The member is the standby, which is not in use.
    Standby,
    /// Another member is the team's only receiver; this frame is a copy.
    NotPrimary,
    /// Reflected frame: this host sent it, or its source is an address of this host.
    Reflected,
    /// The destination port is assigned to another member, which receives its own copy.
    #[serde(rename = "other_member")]
    AssignedToOtherMember,
}

impl IncomingDropReason {
    /// Returns the stable name of the reason, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TeamDown => "team_down",
            Self::NotCollecting => "not_collecting",
            Self::Standby => "standby",
            Self::NotPrimary => "not_primary",
            Self::Reflected => "reflected",
            Self::AssignedToOtherMember => "other_member",
        }
    }
}

impl fmt::Display for IncomingDropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl IncomingFrame {
    /// Returns the admission properties of `frame`. `is_received_here` is copied to the field of
    /// that name.
    #[inline]
    pub fn from_frame(frame: &Frame, is_received_here: bool) -> Self {
        Self { source: frame.source(), is_source_seen_locally: is_received_here }
    }
}

impl Distribution {
    /// Returns whether a frame received on `member` is accepted. Call it before the switch forwards
    /// the frame and learns its source.
    ///
    /// In switch-independent mode an upstream switch floods group frames and frames for unknown
    /// addresses to every member, and returns group frames sent by one member to the others.
    #[inline]
    pub fn check_incoming(&self, member: MemberSlot, incoming: &IncomingFrame) -> Acceptance {
        match self.check_member(member) {
            Err(reason) => Acceptance::Drop(reason),
            Ok(()) if self.is_reflected(incoming) => {
                Acceptance::Drop(IncomingDropReason::Reflected)
            }
            Ok(()) => Acceptance::Accept,
        }
    }

    /// Checks whether frames received on `member` are accepted at all: the part of
    /// [`Distribution::check_incoming`] that is independent of the frame.
    ///
    /// # Errors
    ///
    /// The reason for which every frame on this member is dropped.
    #[inline]
    pub fn check_member(&self, member: MemberSlot) -> Result<(), IncomingDropReason> {
        if !self.is_up {
            Err(IncomingDropReason::TeamDown)
        } else if self.idle_standby == Some(member) {
            Err(IncomingDropReason::Standby)
        } else if !self.collecting.contains(member) {
            Err(IncomingDropReason::NotCollecting)
        } else if self.ingress_mode == IngressMode::Primary && self.primary != Some(member) {
            Err(IncomingDropReason::NotPrimary)
        } else {
            Ok(())
        }
    }

    /// Returns true if a received frame is a reflection of a frame that this host sent: the part of
    /// [`Distribution::check_incoming`] that depends on the frame's source.
    #[inline]
    pub fn is_reflected(&self, incoming: &IncomingFrame) -> bool {
        incoming.is_source_seen_locally
            || self.own_addresses.find(incoming.source.to_u64()).is_some()
    }

    /// Returns true if a frame accepted on `member` is forwarded to port `egress` of the switch. If
    /// not, the port receives the copy that arrives on another member; the frame counts as
    /// [`IncomingDropReason::AssignedToOtherMember`] if no port gets it. Call it for the egress
    /// port of a unicast frame and for each port that a frame is flooded to.
    #[inline]
    pub fn forwards_to_port(&self, member: MemberSlot, egress: PortId) -> bool {
        self.ingress_mode != IngressMode::PerPort || self.source_member(egress) == Some(member)
    }

    /// Returns true if [`Distribution::forwards_to_port`] may return false for some port.
    #[inline]
    pub fn filters_by_port(&self) -> bool {
        self.ingress_mode == IngressMode::PerPort
    }
}
