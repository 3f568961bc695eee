//! Admission control for minimums.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_quantity::{CountedNoun, DiskId};
use thiserror::Error;

use crate::{DISKS_MAX, LimitsError, PolicyId};

/// Percentage of a store's capacity that minimums may reserve.
pub const MINIMUMS_PERCENT_MAX: u64 = 90;

/// Capacity of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capacity {
    /// The capacity is not known, and no minimums are admitted.
    #[default]
    Unknown,
    /// Capacity in normalised operations per second, declared by the operator.
    Declared(u64),
    /// Capacity in normalised operations per second, from a measurement of the store.
    Measured(u64),
}

impl Capacity {
    /// Returns the capacity in normalised operations per second; `None` if it is not known.
    pub const fn iops(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Declared(iops) | Self::Measured(iops) => Some(iops),
        }
    }
}

/// Sum of a store's minimums, and the capacity that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimumsCheck {
    /// Sum of all minimums in normalised operations per second. The minimum of a shared policy
    /// counts once, and only if a disk uses the policy.
    pub minimums_iops: u64,
    /// Number of minimums in the sum.
    #[serde(rename = "minimums")]
    pub minimum_count: usize,
    /// Capacity that the minimums are compared with.
    #[serde(rename = "capability")]
    pub capacity: Capacity,
}

impl MinimumsCheck {
    /// Returns the largest permitted sum of minimums in normalised operations per second; 0 if the
    /// capacity is not known.
    pub fn admissible_iops(&self) -> u64 {
        let iops = u128::from(self.capacity.iops().unwrap_or_default());
        u64::try_from(iops * u128::from(MINIMUMS_PERCENT_MAX) / 100).unwrap_or(u64::MAX)
    }

    /// Returns true if the sum of the minimums is at most [`MinimumsCheck::admissible_iops`].
    pub fn is_admissible(&self) -> bool {
        self.minimums_iops <= self.admissible_iops()
    }
}

impl fmt::Display for MinimumsCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minimums = CountedNoun::with_plural(self.minimum_count, "minimum", "minimums");
        write!(f, "the sum of {minimums} is {} IOPS", self.minimums_iops)?;
        let (iops, qualifier) = match self.capacity {
            Capacity::Unknown => return f.write_str("; the capacity of the store is unknown"),
            Capacity::Declared(iops) => (iops, "configured"),
            Capacity::Measured(iops) => (iops, "measured"),
        };
        let promisable = self.admissible_iops();
        write!(
            f,
            "; the permitted sum is {promisable} IOPS, {MINIMUMS_PERCENT_MAX} % of the capacity \
             of {iops} IOPS ({qualifier})"
        )
    }
}

/// Reason for which the store refuses a change. The store is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The requested limits contradict each other.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The sum of minimums exceeds the permitted share of the capacity.
    #[error("{}: {}", .0, Remedy(.0))]
    Overcommitted(MinimumsCheck),
    /// The policy of the change does not exist.
    #[error("policy {} does not exist; create it first", .0.0)]
    NoPolicy(PolicyId),
    /// The disk is not on this store.
    #[error("disk {} is not on the store of this request; name a disk of that store", .0.0)]
    NoDisk(DiskId),
    /// The policy is in use by a disk.
    #[error(
        "policy {} is in use by disk {}; set other limits of the disk first", .policy.0, .disk.0)]
    PolicyInUse {
        /// Policy that the change would remove.
        policy: PolicyId,
        /// One of the disks that use the policy.
        disk: DiskId,
    },
    /// The maximum number of disks or policies of the store is reached. Contains the plural of the
    /// kind of object.
    #[error("the store has {DISKS_MAX} {0}, the most it can have; remove one")]
    TooManyObjects(&'static str),
}

/// Formats advice for the operator on how to make the minimums fit.
struct Remedy<'a>(&'a MinimumsCheck);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.capacity == Capacity::Unknown {
            return f.write_str("measure the capacity or set `capacity_iops`, or force the change");
        }
        let excess = self.0.minimums_iops.saturating_sub(self.0.admissible_iops());
        write!(f, "lower minimums by {excess} IOPS, or force the change")
    }
}
