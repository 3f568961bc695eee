//! Errors of team configurations.

use suimon_frame::MacAddr;
use thiserror::Error;

use crate::{MEMBERS_MAX, MemberId, TeamId, TeamMode};

/// Reason for which a team configuration is rejected. The previous configuration stays in effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TeamSpecError {
    /// The team has no members.
    #[error("the team has no members; set 1 to {MEMBERS_MAX}")]
    NoMembers,
    /// The team has more than [`MEMBERS_MAX`] members.
    #[error("the team has {count} members, at most {MEMBERS_MAX} are possible; remove some")]
    TooManyMembers {
        /// Number of members in the configuration.
        count: usize,
    },
    /// A member is listed twice.
    #[error("member {0} is listed twice; list each member once")]
    DuplicateMember(MemberId),
    /// Two members have the same address.
    #[error("members {member} and {other} both have MAC address {mac}; set different ones")]
    DuplicateAddress {
        /// Member that is listed later.
        member: MemberId,
        /// Member that is listed earlier.
        other: MemberId,
        /// Address that both members have.
        mac: MacAddr,
    },
    /// The address of a member is a group address or zero.
    #[error("member {member}: {mac} is a group address or zero; set a unicast address")]
    NotAStationAddress {
        /// Member with the invalid address.
        member: MemberId,
        /// Address of the member.
        mac: MacAddr,
    },
    /// The primary or standby is not a member.
    #[error("the {role} {member} is not a member of the team; set one of {}", listed(.members))]
    NotAMember {
        /// Name of the field: `primary` or `standby`.
        role: &'static str,
        /// Member named in the configuration.
        member: MemberId,
        /// Members of the team, for messages.
        members: Vec<MemberId>,
    },
    /// The mode does not support a primary or standby.
    #[error(
        "{role} does not apply in {mode} mode, in which the switch on the other side selects \
         members; remove it, or set switch-independent mode"
    )]
    RoleNotAllowedInMode {
        /// Name of the field: `primary` or `standby`.
        role: &'static str,
        /// Teaming mode, as configured on the upstream switch.
        mode: TeamMode,
    },
    /// The standby is the only member.
    #[error("the standby {0} is the only member; add another member or remove the standby")]
    OnlyStandby(MemberId),
    /// One member is both primary and standby.
    #[error("member {0} cannot be both primary and standby; set another member for one of them")]
    PrimaryIsStandby(MemberId),
    /// `min_links` is 0 or more than the members in use when all are usable.
    #[error(
        "min_links {min_links} is outside of 1 to {max}, the number of members without the standby"
    )]
    MinLinks {
        /// Configured value of `min_links`.
        min_links: u32,
        /// Largest accepted value of `min_links`.
        max: usize,
    },
    /// The configuration belongs to another team.
    #[error(
        "the identifier is that of team {}, not of team {}; the identifier of a team cannot \
         change", .team.0, .named_team.0)]
    WrongTeam {
        /// Team that was to be changed.
        team: TeamId,
        /// Team named in the configuration.
        named_team: TeamId,
    },
}

/// Error: the member is not in the team.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("member {member} is not in the team; its members are {}", listed(.members))]
pub struct UnknownMember {
    /// Member that is not in the team.
    pub member: MemberId,
    /// Members of the team, for messages.
    pub members: Vec<MemberId>,
}

fn listed(members: &[MemberId]) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ")
}
