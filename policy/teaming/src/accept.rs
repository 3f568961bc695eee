//! Which frames that arrive on a member are taken, and for which ports.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::{Frame, MacAddr};
use suimon_quantity::PortId;

use crate::distribution::Receives;
use crate::{Distribution, MemberSlot};

/// What is to be known of a frame that arrived on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Its source address.
    pub source: MacAddr,
    /// Whether the switch heard this source on one of its other ports within the last
    /// second. A frame that comes back does so within milliseconds; a station that
    /// moved away has fallen silent here before it speaks from elsewhere.
    pub is_heard_here: bool,
}

/// Whether a frame that arrived is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// For the ports that [`Distribution::reaches`] names.
    Accept,
    /// Not at all. To be counted.
    Drop(IncomingDrop),
}

/// Why a frame that arrived on a member is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncomingDrop {
    /// The team is down.
    TeamDown,
    /// The member is not in the team, its link is down, or LACP does not let frames in.
    NotCollecting,
    /// The member is the standby and not in use.
    Standby,
    /// Another member receives: this is a copy of what it gets.
    NotPrimary,
    /// This host sent it, or its source is an address of this host.
    Reflected,
    /// The port it is for lives on another member, which gets a copy.
    OtherMember,
}

impl IncomingDrop {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TeamDown => "team_down",
            Self::NotCollecting => "not_collecting",
            Self::Standby => "standby",
            Self::NotPrimary => "not_primary",
            Self::Reflected => "reflected",
            Self::OtherMember => "other_member",
        }
    }
}

impl fmt::Display for IncomingDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Incoming {
    /// What is to be known of this frame.
    #[inline]
    pub fn of(frame: &Frame, is_heard_here: bool) -> Self {
        Self { source: frame.source(), is_heard_here }
    }
}

impl Distribution {
    /// Whether a frame that arrived on `member` is taken; asked before the switch
    /// decides about it and learns from it.
    ///
    /// In switch-independent mode an upstream switch gives a frame for a group, or for
    /// an address that it does not know, to every member, and gives what one member
    /// sent to a group back to the others.
    #[inline]
    pub fn accepts(&self, member: MemberSlot, incoming: &Incoming) -> Acceptance {
        match self.takes_from(member) {
            Err(reason) => Acceptance::Drop(reason),
            Ok(()) if self.is_reflected(incoming) => Acceptance::Drop(IncomingDrop::Reflected),
            Ok(()) => Acceptance::Accept,
        }
    }

    /// Whether anything that arrives on `member` is taken: the part of
    /// [`Distribution::accepts`] that is the same for all frames.
    ///
    /// # Errors
    /// Nothing is taken, for this reason.
    #[inline]
    pub fn takes_from(&self, member: MemberSlot) -> Result<(), IncomingDrop> {
        if !self.is_up {
            Err(IncomingDrop::TeamDown)
        } else if self.idle_standby == Some(member) {
            Err(IncomingDrop::Standby)
        } else if !self.collecting.contains(member) {
            Err(IncomingDrop::NotCollecting)
        } else if self.receives == Receives::Primary && self.primary != Some(member) {
            Err(IncomingDrop::NotPrimary)
        } else {
            Ok(())
        }
    }

    /// Whether a frame that arrives comes back: the other part, which is the same for all
    /// frames with one source.
    #[inline]
    pub fn is_reflected(&self, incoming: &Incoming) -> bool {
        incoming.is_heard_here || self.own.find(incoming.source.to_u64()).is_some()
    }

    /// Whether a frame that was accepted on `member` goes to this port of the switch;
    /// if not, the port gets another member's copy, and the frame counts as
    /// [`IncomingDrop::OtherMember`] if no port gets it. Asked for the egress of a
    /// unicast and for each that a frame is flooded to.
    #[inline]
    pub fn reaches(&self, member: MemberSlot, egress: PortId) -> bool {
        self.receives != Receives::Homes || self.anchor(egress) == Some(member)
    }

    /// Whether [`Distribution::reaches`] says no to anything.
    #[inline]
    pub fn is_by_port(&self) -> bool {
        self.receives == Receives::Homes
    }
}
