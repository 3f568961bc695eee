//! Whose records they are.

use core::fmt;

use serde::Serialize;

use crate::Fault;

/// One policy of a daemon, for as long as it is there. 0 is nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct StreamId(pub u32);

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Kind {
    /// A team of NICs: `policy/teaming`.
    Team = 1,
    /// Where queues of an uplink or team are: `policy/vmq`.
    Vmq = 2,
    /// A node's side of a shared store: `policy/cluster_qos`.
    ClusterMember = 3,
    /// The leader's side of a shared store: `policy/cluster_qos`.
    ClusterLeader = 4,
    /// A store's scheduler on a processor: `policy/storage_qos`.
    StorageQos = 5,
    /// LACP of a team: `policy/teaming`.
    Lacp = 6,
}

impl Kind {
    /// By its number.
    pub(crate) const fn of(number: u8) -> Result<Self, Fault> {
        Ok(match number {
            1 => Self::Team,
            2 => Self::Vmq,
            3 => Self::ClusterMember,
            4 => Self::ClusterLeader,
            5 => Self::StorageQos,
            6 => Self::Lacp,
            other => return Err(Fault::UnknownPolicy(other)),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Team => "team",
            Self::Vmq => "vmq",
            Self::ClusterMember => "cluster-member",
            Self::ClusterLeader => "cluster-leader",
            Self::StorageQos => "storage-qos",
            Self::Lacp => "lacp",
        })
    }
}

/// Why nothing of a stream follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Loss {
    /// The file was written more slowly than things happened.
    Behind = 1,
    /// The recording was as long as it may be.
    Full = 2,
}

impl Loss {
    /// By its number.
    pub(crate) const fn of(number: u8) -> Result<Self, Fault> {
        Ok(match number {
            1 => Self::Behind,
            2 => Self::Full,
            other => return Err(Fault::UnknownLoss(other)),
        })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Behind => "it was written more slowly than things happened",
            Self::Full => "the recording was as long as it may be",
        })
    }
}
