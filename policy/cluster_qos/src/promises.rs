//! Admission of guarantees in a cluster.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Maximum sum of all guarantees on all nodes, in percent of the store's capacity.
pub const PROMISED_PERCENT_MAX: u64 = 90;

/// Capacity of a store, in normalised operations per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Declared by the operator. All nodes together never exceed it.
    Declared(u64),
    /// Measured with the least favourable requests. Nodes may exceed it up to the observed
    /// throughput.
    Measured(u64),
}

impl Capability {
    /// Returns the capacity as a number.
    pub const fn iops(self) -> u64 {
        match self {
            Self::Declared(iops) | Self::Measured(iops) => iops,
        }
    }

    /// Returns the maximum sum of all guarantees.
    pub fn promisable_iops(self) -> u64 {
        let iops = u128::from(self.iops()) * u128::from(PROMISED_PERCENT_MAX) / 100;
        u64::try_from(iops).unwrap_or(u64::MAX)
    }
}

/// Admission calculation of a cluster with a requested guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promises {
    /// Guarantees of all nodes: minimums and a floor for each node. Until a node acknowledges a
    /// decrease, its previous reservation counts.
    pub promised_iops: u64,
    /// Requested increase, in normalised operations per second.
    pub asked_iops: u64,
    /// Capacity of the store, declared or measured.
    pub capability: Capability,
}

impl Promises {
    /// Returns true if the request can be admitted.
    pub fn fit(&self) -> bool {
        self.promised_iops.saturating_add(self.asked_iops) <= self.capability.promisable_iops()
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.capability {
            Capability::Declared(_) => "declared",
            Capability::Measured(_) => "measured",
        };
        let promisable = self.capability.promisable_iops();
        let sum = self.promised_iops.saturating_add(self.asked_iops);
        write!(
            f,
            "all nodes together have {} IOPS reserved, and {} IOPS more were requested; the \
             permitted sum is {promisable} IOPS, {PROMISED_PERCENT_MAX} % of the store's capacity \
             of {} IOPS ({how})",
            self.promised_iops,
            self.asked_iops,
            self.capability.iops(),
        )?;
        if self.fit() {
            return Ok(());
        }
        write!(f, ": lower minimums by {} IOPS", sum.saturating_sub(promisable))
    }
}
