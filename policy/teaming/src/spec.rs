//! What a team is to be, and what contradicts itself.

use std::collections::BTreeSet;

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{MEMBERS_MAX, MemberId, MemberSpec, SpecError};

/// A team, for as long as it exists on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TeamId(pub u32);

/// What the switch on the other side knows of the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TeamMode {
    /// It has the members' ports in one group, by configuration.
    Static,
    /// It has them in one group, by agreement (IEEE 802.1AX).
    Lacp,
    /// Nothing: the members may be on different switches.
    SwitchIndependent,
}

/// By what the team chooses a member for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The switch's port it came from: each port lives on one member.
    HyperVPort,
    /// IP addresses, protocol and ports.
    TransportPorts,
    /// IP addresses.
    IpAddresses,
    /// MAC addresses and VLAN.
    MacAddresses,
    /// Flows as for `TransportPorts`, moved between members by load when they pause.
    Dynamic,
}

impl fmt::Display for TeamMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "static",
            Self::Lacp => "lacp",
            Self::SwitchIndependent => "switch-independent",
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HyperVPort => "hyper-v-port",
            Self::TransportPorts => "transport-ports",
            Self::IpAddresses => "ip-addresses",
            Self::MacAddresses => "mac-addresses",
            Self::Dynamic => "dynamic",
        })
    }
}

/// A team as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamSpec {
    /// Which team.
    pub id: TeamId,
    /// What the switch on the other side knows of it.
    pub mode: TeamMode,
    /// By what it chooses a member.
    pub algorithm: Algorithm,
    /// 1 to [`MEMBERS_MAX`], each once, with addresses of their own. Where nothing
    /// else decides, the earlier is preferred.
    pub members: Vec<MemberSpec>,
    /// With fewer usable members the team is down. At least 1.
    pub min_links: u32,
    /// The member that is used only while another is not usable. Switch-independent
    /// mode only: switches of the other modes would send to it.
    pub standby: Option<MemberId>,
    /// The member that receives, if it is usable. Switch-independent mode only. Without
    /// it the team chooses one and stays with it while it can.
    pub primary: Option<MemberId>,
}

impl TeamSpec {
    /// A team that is up with one usable member, without standby and primary.
    pub fn new(id: TeamId, mode: TeamMode, algorithm: Algorithm, members: &[MemberSpec]) -> Self {
        let members = members.to_vec();
        Self { id, mode, algorithm, members, min_links: 1, standby: None, primary: None }
    }

    pub(crate) fn has(&self, member: MemberId) -> bool {
        self.members.iter().any(|spec| spec.id == member)
    }

    /// Whether nothing in it contradicts anything else.
    ///
    /// # Errors
    /// What does, and what would be accepted.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_members()?;
        self.check_roles()?;
        let max = self.members.len() - usize::from(self.standby.is_some());
        let is_reachable = usize::try_from(self.min_links).is_ok_and(|min| min <= max);
        if self.min_links == 0 || !is_reachable {
            return Err(SpecError::MinLinks { min_links: self.min_links, max });
        }
        Ok(())
    }

    fn check_members(&self) -> Result<(), SpecError> {
        let count = self.members.len();
        if count == 0 {
            return Err(SpecError::NoMembers);
        }
        if count > MEMBERS_MAX {
            return Err(SpecError::TooManyMembers { count });
        }
        let mut ids = BTreeSet::new();
        for (at, member) in self.members.iter().enumerate() {
            if !ids.insert(member.id) {
                return Err(SpecError::DuplicateMember(member.id));
            }
            if !member.mac.is_station() {
                return Err(SpecError::NotAStation { member: member.id, mac: member.mac });
            }
            let earlier = self.members.iter().take(at).find(|other| other.mac == member.mac);
            if let Some(other) = earlier {
                let (member, other, mac) = (member.id, other.id, member.mac);
                return Err(SpecError::DuplicateAddress { member, other, mac });
            }
        }
        Ok(())
    }

    fn check_roles(&self) -> Result<(), SpecError> {
        for (role, member) in [("primary", self.primary), ("standby", self.standby)] {
            let Some(member) = member else { continue };
            if !self.has(member) {
                let members = self.members.iter().map(|spec| spec.id).collect();
                return Err(SpecError::NotAMember { role, member, members });
            }
            if self.mode != TeamMode::SwitchIndependent {
                return Err(SpecError::RoleInMode { role, mode: self.mode });
            }
        }
        match self.standby {
            Some(standby) if self.members.len() == 1 => Err(SpecError::OnlyStandby(standby)),
            Some(standby) if self.primary == Some(standby) => {
                Err(SpecError::PrimaryIsStandby(standby))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
