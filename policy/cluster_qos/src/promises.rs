//! What may be promised in a cluster.

use core::fmt;

use serde::{Deserialize, Serialize};

/// So many percent of what a store can do may be promised, on all nodes together.
pub const PROMISED_PERCENT_MAX: u64 = 90;

/// What a store can do, in normalised operations per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// The operator says so. All nodes together never do more.
    Declared(u64),
    /// It was measured with the requests that suit the store least. With others it may do more,
    /// which nodes may use as far as it was seen to.
    Measured(u64),
}

impl Capability {
    /// The number.
    pub const fn iops(self) -> u64 {
        match self {
            Self::Declared(iops) | Self::Measured(iops) => iops,
        }
    }

    /// What all promises may come to.
    pub fn promisable_iops(self) -> u64 {
        let iops = u128::from(self.iops()) * u128::from(PROMISED_PERCENT_MAX) / 100;
        u64::try_from(iops).unwrap_or(u64::MAX)
    }
}

/// The arithmetic of a cluster's promises, with what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promises {
    /// What is promised to nodes: minimums, and a floor for each node. While a
    /// node has not confirmed that it has less, it counts with what it had.
    pub promised_iops: u64,
    /// How much more was asked for.
    pub asked_iops: u64,
    /// What the store can do.
    pub capability: Capability,
}

impl Promises {
    /// Whether they fit.
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
            "{} IOPS are promised on all nodes and {} more were asked for; {PROMISED_PERCENT_MAX} % of \
             the store's {} IOPS ({how}) is {promisable}",
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
