//! What follows from an event.

use core::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_quantity::{Count, PortId};

use crate::{Distribution, MemberId};

/// What follows from an event. The distribution is published before the
/// announcements are sent.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Change {
    /// The new distribution, if it differs from the one before.
    pub distribution: Option<Arc<Distribution>>,
    /// What the switches on the other side have to be told, by port.
    pub announcements: Vec<Announcement>,
    /// What happened, and why.
    pub events: Vec<TeamEvent>,
}

/// The addresses of a port, configured and learned, are to be announced on a member
/// with frames that have them as their source, unreplaced: gratuitous ARP (RFC 5227,
/// section 3) where the IP address is known, RARP otherwise. So the switches on the
/// other side learn where frames for the port are to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Announcement {
    /// Whose addresses.
    pub port: PortId,
    /// Where.
    pub member: MemberId,
}

/// Why a member is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberFault {
    /// The link is down.
    LinkDown,
    /// LACP does not let frames out.
    NotDistributing,
}

/// Something that happened to a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TeamEvent {
    /// Fewer members can be used than the team needs; it carries nothing.
    Down {
        /// How many can be used.
        usable: u32,
        /// How many it needs.
        min_links: u32,
    },
    /// As many members can be used as the team needs.
    Up {
        /// How many can be used.
        usable: u32,
        /// How many it needs.
        min_links: u32,
    },
    /// A member can no longer be used.
    MemberFailed {
        /// The member.
        member: MemberId,
        /// Why.
        fault: MemberFault,
    },
    /// A member can be used, for the first time or again.
    MemberUsable {
        /// The member.
        member: MemberId,
    },
    /// The standby is used in place of a member.
    StandbyTookOver {
        /// The standby.
        standby: MemberId,
        /// The member that cannot be used.
        failed: MemberId,
    },
    /// The standby is not used any more: the others are all well, or it failed itself.
    StandbyReleased {
        /// The standby.
        standby: MemberId,
    },
    /// Another member receives, because the one before no longer can, or by
    /// configuration.
    PrimaryChanged {
        /// The one before, if there was one.
        from: Option<MemberId>,
        /// The one now.
        to: MemberId,
    },
    /// The configured primary receives again in place of another.
    PrimaryRestored {
        /// The other.
        from: MemberId,
        /// The configured one.
        to: MemberId,
    },
}

impl fmt::Display for TeamEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Down { usable, min_links } => {
                let members = Count::irregular(usable, "member is", "members are");
                write!(f, "the team is down: {members} usable, it needs {min_links}")
            }
            Self::Up { usable, min_links } => {
                let members = Count::irregular(usable, "member is", "members are");
                write!(f, "the team is up: {members} usable, it needs {min_links}")
            }
            Self::MemberFailed { member, fault } => {
                let why = match fault {
                    MemberFault::LinkDown => "its link is down",
                    MemberFault::NotDistributing => "LACP does not let it distribute",
                };
                write!(f, "member {member} failed: {why}")
            }
            Self::MemberUsable { member } => write!(f, "member {member} is usable"),
            Self::StandbyTookOver { standby, failed } => {
                write!(f, "standby {standby} took over because member {failed} is not usable")
            }
            Self::StandbyReleased { standby } => write!(f, "standby {standby} was released"),
            Self::PrimaryChanged { from: Some(from), to } => {
                write!(f, "member {to} is primary in place of {from}")
            }
            Self::PrimaryChanged { from: None, to } => write!(f, "member {to} is primary"),
            Self::PrimaryRestored { from, to } => {
                write!(f, "primary {to} was restored in place of {from}")
            }
        }
    }
}
