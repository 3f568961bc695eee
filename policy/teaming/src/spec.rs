//! Configuration of a team and its validation.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::mode::{Algorithm, TeamId, TeamMode};
use crate::{MEMBERS_MAX, MemberId, MemberSpec, TeamSpecError};

/// Configuration of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamSpec {
    /// Team identifier.
    pub id: TeamId,
    /// Teaming mode, as configured on the upstream switch.
    pub mode: TeamMode,
    /// Load balancing algorithm for outgoing frames.
    pub algorithm: Algorithm,
    /// Members: 1 to [`MEMBERS_MAX`], distinct, with distinct addresses. Earlier members are
    /// preferred where no other criterion decides.
    pub members: Vec<MemberSpec>,
    /// Minimum number of members in use, at least 1. With fewer the team is down.
    pub min_links: u32,
    /// Member that is used only while another one is not usable. Switch-independent mode only,
    /// because switches in the other modes would send to it.
    pub standby: Option<MemberId>,
    /// Member that is the single receiver while it is usable. Switch-independent mode only. If
    /// `None`, the team chooses one and keeps it while it is usable.
    pub primary: Option<MemberId>,
}

impl TeamSpec {
    /// Creates the configuration of a team that needs one usable member and has no standby and no
    /// primary.
    pub fn new(id: TeamId, mode: TeamMode, algorithm: Algorithm, members: &[MemberSpec]) -> Self {
        let members = members.to_vec();
        Self { id, mode, algorithm, members, min_links: 1, standby: None, primary: None }
    }

    pub(crate) fn has(&self, member: MemberId) -> bool {
        self.members.iter().any(|spec| spec.id == member)
    }

    /// Validates the configuration.
    ///
    /// # Errors
    ///
    /// The first contradicting field and its accepted values.
    pub fn check(&self) -> Result<(), TeamSpecError> {
        self.check_members()?;
        self.check_roles()?;
        let max = self.members.len() - usize::from(self.standby.is_some());
        let is_reachable = usize::try_from(self.min_links).is_ok_and(|min| min <= max);
        if self.min_links == 0 || !is_reachable {
            return Err(TeamSpecError::MinLinks { min_links: self.min_links, max });
        }
        Ok(())
    }

    fn check_members(&self) -> Result<(), TeamSpecError> {
        let count = self.members.len();
        if count == 0 {
            return Err(TeamSpecError::NoMembers);
        }
        if count > MEMBERS_MAX {
            return Err(TeamSpecError::TooManyMembers { count });
        }
        let mut ids = BTreeSet::new();
        for (index, member) in self.members.iter().enumerate() {
            if !ids.insert(member.id) {
                return Err(TeamSpecError::DuplicateMember(member.id));
            }
            if !member.mac.is_station() {
                return Err(TeamSpecError::NotAStationAddress {
                    member: member.id,
                    mac: member.mac,
                });
            }
            let duplicate = self.members.iter().take(index).find(|other| other.mac == member.mac);
            if let Some(other) = duplicate {
                let (member, other, mac) = (member.id, other.id, member.mac);
                return Err(TeamSpecError::DuplicateAddress { member, other, mac });
            }
        }
        Ok(())
    }

    fn check_roles(&self) -> Result<(), TeamSpecError> {
        for (role, member) in [("primary", self.primary), ("standby", self.standby)] {
            let Some(member) = member else { continue };
            if !self.has(member) {
                let members = self.members.iter().map(|spec| spec.id).collect();
                return Err(TeamSpecError::NotAMember { role, member, members });
            }
            if self.mode != TeamMode::SwitchIndependent {
                return Err(TeamSpecError::RoleNotAllowedInMode { role, mode: self.mode });
            }
        }
        match self.standby {
            Some(standby) if self.members.len() == 1 => Err(TeamSpecError::OnlyStandby(standby)),
            Some(standby) if self.primary == Some(standby) => {
                Err(TeamSpecError::PrimaryIsStandby(standby))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
