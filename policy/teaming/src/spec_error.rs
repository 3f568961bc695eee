//! Why a team is refused.

use suimon_frame::MacAddr;
use thiserror::Error;

use crate::{MEMBERS_MAX, MemberId, TeamId, TeamMode};

/// Why a team cannot be as it was asked for. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No member.
    #[error("a team has no members; give it 1 to {MEMBERS_MAX}")]
    NoMembers,
    /// More than [`MEMBERS_MAX`].
    #[error("{count} members are more than the {MEMBERS_MAX} a team can have; remove some")]
    TooManyMembers {
        /// How many were given.
        count: usize,
    },
    /// A member is given twice.
    #[error("member {0} is given twice; give each member once")]
    DuplicateMember(MemberId),
    /// Two members have the same address.
    #[error("members {member} and {other} both have {mac}; give each an address of its own")]
    DuplicateAddress {
        /// The later one.
        member: MemberId,
        /// The earlier one.
        other: MemberId,
        /// The address.
        mac: MacAddr,
    },
    /// A member's address is a group's or zero.
    #[error("member {member}: {mac} is a group address or zero; give it a station's address")]
    NotAStation {
        /// The member.
        member: MemberId,
        /// Its address.
        mac: MacAddr,
    },
    /// The primary or standby is no member.
    #[error("the {role} {member} is no member of the team; name one of {}", listed(.members))]
    NotAMember {
        /// `primary` or `standby`.
        role: &'static str,
        /// What was named.
        member: MemberId,
        /// What could be.
        members: Vec<MemberId>,
    },
    /// A primary or standby in a mode that has none.
    #[error(
        "a {role} means nothing in {mode} mode, in which the switch on the other side chooses \
         among all members; leave it out or use switch-independent mode"
    )]
    RoleInMode {
        /// `primary` or `standby`.
        role: &'static str,
        /// The mode.
        mode: TeamMode,
    },
    /// The standby is the only member.
    #[error("the standby {0} is the only member; add another member or leave the standby out")]
    OnlyStandby(MemberId),
    /// One member is to be both.
    #[error("member {0} cannot be both primary and standby; choose another for one of them")]
    PrimaryIsStandby(MemberId),
    /// A minimum that no state of the team reaches.
    #[error(
        "min_links of {min_links} is not from 1 to {max}, the members in use when all are well"
    )]
    MinLinks {
        /// What was asked for.
        min_links: u32,
        /// The most that is accepted.
        max: usize,
    },
    /// The specification is another team's.
    #[error("this is team {}, not team {}; a team's identifier does not change", .team.0, .other.0)]
    OtherTeam {
        /// The team.
        team: TeamId,
        /// Whose specification it was given.
        other: TeamId,
    },
}

/// Something was said of a member that the team does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("member {member} is not in the team; its members are {}", listed(.members))]
pub struct UnknownMember {
    /// The member.
    pub member: MemberId,
    /// The team's members.
    pub members: Vec<MemberId>,
}

fn listed(members: &[MemberId]) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ")
}
