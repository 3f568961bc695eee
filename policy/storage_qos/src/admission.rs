//! What may be promised.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_quantity::{Count, DiskId};
use thiserror::Error;

use crate::{DISKS_MAX, LimitsError, PolicyId};

/// So many percent of what a store can do may be promised.
pub const PROMISED_PERCENT_MAX: u64 = 90;

/// What a store can do, in normalised operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Nobody knows: nothing can be promised.
    #[default]
    Unknown,
    /// The operator says so.
    Declared(u64),
    /// It was measured.
    Measured(u64),
}

impl Capability {
    /// Normalised operations per second, if known.
    pub const fn iops(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Declared(iops) | Self::Measured(iops) => Some(iops),
        }
    }
}

/// The arithmetic of a store's promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promises {
    /// What all minimums come to, in normalised operations per second. A shared policy's
    /// counts once, and only if a disk has it.
    pub minimums_iops: u64,
    /// How many minimums that are.
    pub minimums: usize,
    /// What the store can do.
    pub capability: Capability,
}

impl Promises {
    /// What all minimums may come to; nothing while the capability is not known.
    pub fn promisable_iops(&self) -> u64 {
        let iops = u128::from(self.capability.iops().unwrap_or_default());
        u64::try_from(iops * u128::from(PROMISED_PERCENT_MAX) / 100).unwrap_or(u64::MAX)
    }

    /// Whether the store can keep them.
    pub fn fit(&self) -> bool {
        self.minimums_iops <= self.promisable_iops()
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let come = Count::irregular(self.minimums, "minimum comes", "minimums come");
        write!(f, "{come} to {} IOPS", self.minimums_iops)?;
        let (iops, how) = match self.capability {
            Capability::Unknown => return f.write_str("; what the store can do is not known"),
            Capability::Declared(iops) => (iops, "declared"),
            Capability::Measured(iops) => (iops, "measured"),
        };
        let promisable = self.promisable_iops();
        write!(f, "; {PROMISED_PERCENT_MAX} % of the store's {iops} IOPS ({how}) is {promisable}")
    }
}

/// Why a change was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The limits contradict themselves.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// More would be promised than the store can keep.
    #[error("{}: {}", .0, Remedy(.0))]
    Overcommitted(Promises),
    /// There is no such policy.
    #[error("there is no policy {}; make it first", .0.0)]
    NoPolicy(PolicyId),
    /// There is no such disk.
    #[error("there is no disk {} on this store; its disks are those that were set", .0.0)]
    NoDisk(DiskId),
    /// Disks have it.
    #[error("policy {} is in use by disk {}; give the disk other limits first", .policy.0, .disk.0)]
    PolicyInUse {
        /// The policy.
        policy: PolicyId,
        /// One of the disks.
        disk: DiskId,
    },
    /// A store has room for so many.
    #[error("the store has {DISKS_MAX} {0} already, which is as many as it can have; remove one")]
    TooMany(&'static str),
}

/// What to do about promises that do not fit.
struct Remedy<'a>(&'a Promises);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.capability == Capability::Unknown {
            return f.write_str("measure or declare it, or force the change");
        }
        let over = self.0.minimums_iops.saturating_sub(self.0.promisable_iops());
        write!(f, "lower minimums by {over} IOPS, or force the change")
    }
}
