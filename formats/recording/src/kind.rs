//! Kinds of recorded policies, and stream identifiers.

use core::fmt;

use serde::Serialize;

use crate::RecordError;

/// Identifier of a stream: the records of one policy instance. 0 is reserved for records without a
/// policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct StreamId(pub u32);

/// Kind of a recorded policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum PolicyKind {
    /// Team of NICs: `policy/teaming`.
    Team = 1,
    /// Placement of an uplink's or team's queues: `policy/vmq`.
    Vmq = 2,
    /// Member (node side) of a shared store: `policy/cluster_qos`.
    ClusterMember = 3,
    /// Allocator (leader side) of a shared store: `policy/cluster_qos`.
    ClusterLeader = 4,
    /// Scheduler of a store on a worker: `policy/storage_qos`.
    StorageQos = 5,
    /// LACP of a team: `policy/teaming`.
    Lacp = 6,
}

impl PolicyKind {
    /// Decodes the number of a kind.
    ///
    /// # Errors
    ///
    /// [`RecordError::UnknownPolicy`].
    pub(crate) const fn from_number(number: u8) -> Result<Self, RecordError> {
        Ok(match number {
            1 => Self::Team,
            2 => Self::Vmq,
            3 => Self::ClusterMember,
            4 => Self::ClusterLeader,
            5 => Self::StorageQos,
            6 => Self::Lacp,
            other => return Err(RecordError::UnknownPolicy(other)),
        })
    }
}

impl fmt::Display for PolicyKind {
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

/// Reason for which the recording of a stream ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum LossReason {
    /// The file could not be written as fast as records were made.
    #[serde(rename = "behind")]
    Overload = 1,
    /// The recording reached its maximum length.
    Full = 2,
}

impl LossReason {
    /// Decodes the number of a reason.
    ///
    /// # Errors
    ///
    /// [`RecordError::UnknownLossReason`].
    pub(crate) const fn from_number(number: u8) -> Result<Self, RecordError> {
        Ok(match number {
            1 => Self::Overload,
            2 => Self::Full,
            other => return Err(RecordError::UnknownLossReason(other)),
        })
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overload => "the disk was too slow for the recording",
            Self::Full => "the recording reached its size limit",
        })
    }
}
