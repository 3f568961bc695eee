//! Admission check of guaranteed rates (minimums) on a store shared by a cluster.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Maximum sum of all guarantees on all nodes, in percent of the store's capacity.
pub const GUARANTEED_PERCENT_MAX: u64 = 90;

/// Capacity of a store, in normalised operations per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedStoreCapacity {
    /// Declared by the operator. All nodes together never exceed it.
    Declared(u64),
    /// Measured with the least favourable requests. Nodes may exceed it up to the observed
    /// throughput.
    Measured(u64),
}

impl SharedStoreCapacity {
    /// Returns the declared or measured capacity in normalised operations per second.
    pub const fn iops(self) -> u64 {
        match self {
            Self::Declared(iops) | Self::Measured(iops) => iops,
        }
    }

    /// Returns the maximum sum of all guarantees, [`GUARANTEED_PERCENT_MAX`] percent of the
    /// capacity, in normalised operations per second.
    pub fn guaranteeable_iops(self) -> u64 {
        let iops = u128::from(self.iops()) * u128::from(GUARANTEED_PERCENT_MAX) / 100;
        u64::try_from(iops).unwrap_or(u64::MAX)
    }
}

/// Admission calculation for one requested increase of a guaranteed rate on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmissionCheck {
    /// Sum of the guarantees already admitted for all nodes: their minimums and one
    /// [`Parameters::base_reservation_iops`](crate::Parameters::base_reservation_iops) per node
    /// with disks. Until a node acknowledges a decrease, its previous reservation counts.
    #[serde(rename = "promised_iops")]
    pub guaranteed_iops: u64,
    /// Requested increase, in normalised operations per second.
    #[serde(rename = "asked_iops")]
    pub requested_iops: u64,
    /// Capacity of the store, declared or measured.
    #[serde(rename = "capability")]
    pub capacity: SharedStoreCapacity,
}

impl AdmissionCheck {
    /// Returns true if the sum of guaranteed and requested rates is at most
    /// [`SharedStoreCapacity::guaranteeable_iops`].
    pub fn is_admissible(&self) -> bool {
        self.guaranteed_iops.saturating_add(self.requested_iops)
            <= self.capacity.guaranteeable_iops()
    }
}

impl fmt::Display for AdmissionCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let qualifier = match self.capacity {
            SharedStoreCapacity::Declared(_) => "configured",
            SharedStoreCapacity::Measured(_) => "measured",
        };
        let promisable = self.capacity.guaranteeable_iops();
        let sum = self.guaranteed_iops.saturating_add(self.requested_iops);
        write!(
            f,
            "all nodes together have {} IOPS reserved, and {} IOPS more were requested; the \
             permitted sum is {promisable} IOPS, {GUARANTEED_PERCENT_MAX} % of the store's capacity \
             of {} IOPS ({qualifier})",
            self.guaranteed_iops,
            self.requested_iops,
            self.capacity.iops(),
        )?;
        if self.is_admissible() {
            return Ok(());
        }
        write!(f, ": lower minimums by {} IOPS", sum.saturating_sub(promisable))
    }
}
