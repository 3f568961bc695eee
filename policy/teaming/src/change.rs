//! Results of a change of a team: distribution, announcements and events.

use core::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_quantity::{CountedNoun, PortId};

use crate::{Distribution, MemberId};

/// Results of a call that changed the state of a team. The caller publishes the distribution before
/// it sends the announcements.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct TeamChange {
    /// New distribution; `None` if it equals the previous one.
    pub distribution: Option<Arc<Distribution>>,
    /// Ports whose addresses the caller must announce to upstream switches.
    pub announcements: Vec<AnnounceRequest>,
    /// State changes to report, with their reasons.
    pub events: Vec<TeamEvent>,
}

/// Request to announce the addresses of a port, configured and learned, on a member.
///
/// The caller sends frames with these addresses as their unreplaced source: gratuitous ARP (RFC
/// 5227, section 3) where the IP address is known, RARP otherwise. Upstream switches learn from
/// them where to forward frames for the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AnnounceRequest {
    /// Port whose addresses are announced.
    pub port: PortId,
    /// Member on which they are announced.
    pub member: MemberId,
}

/// Reason for which a member is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberFault {
    /// The link of the member is down.
    LinkDown,
    /// LACP does not permit the member to distribute frames.
    NotDistributing,
}

/// State change of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TeamEvent {
    /// The team went down: fewer members are in use than the team requires. It carries no frames.
    Down {
        /// Number of usable members, without an idle standby.
        usable: u32,
        /// Minimum number of usable members the team requires.
        min_links: u32,
    },
    /// The team came up: as many members are in use as the team requires.
    Up {
        /// Number of usable members, without an idle standby.
        usable: u32,
        /// Minimum number of usable members the team requires.
        min_links: u32,
    },
    /// A member became unusable and carries no frames.
    MemberFailed {
        /// Member that is no longer usable.
        member: MemberId,
        /// Reason for which the member is not usable.
        fault: MemberFault,
    },
    /// A member became usable, for the first time or again.
    MemberUsable {
        /// Member that can be used again.
        member: MemberId,
    },
    /// The standby came into use in place of a failed member.
    StandbyTookOver {
        /// Member configured as the standby.
        standby: MemberId,
        /// Member that failed.
        failed: MemberId,
    },
    /// The standby went out of use: all other members are usable, or the standby itself failed.
    StandbyReleased {
        /// Member configured as the standby.
        standby: MemberId,
    },
    /// The primary (receiving) member changed, because of a failure or by configuration.
    PrimaryChanged {
        /// Previous primary; `None` if there was none.
        from: Option<MemberId>,
        /// Member that is the primary now.
        to: MemberId,
    },
    /// The configured primary receives (again) instead of another member.
    PrimaryRestored {
        /// Member that was primary in its place.
        from: MemberId,
        /// Member configured as the primary.
        to: MemberId,
    },
}

impl fmt::Display for TeamEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Down { usable, min_links } => {
                let members = CountedNoun::with_plural(usable, "member is", "members are");
                write!(f, "the team is down: {members} usable, min_links is {min_links}")
            }
            Self::Up { usable, min_links } => {
                let members = CountedNoun::with_plural(usable, "member is", "members are");
                write!(f, "the team is up: {members} usable, min_links is {min_links}")
            }
            Self::MemberFailed { member, fault } => {
                let reason = match fault {
                    MemberFault::LinkDown => "its link is down",
                    MemberFault::NotDistributing => "LACP does not permit traffic",
                };
                write!(f, "member {member} failed: {reason}")
            }
            Self::MemberUsable { member } => write!(f, "member {member} is usable"),
            Self::StandbyTookOver { standby, failed } => {
                write!(f, "standby {standby} replaced the failed member {failed}")
            }
            Self::StandbyReleased { standby } => write!(f, "standby {standby} is idle again"),
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
