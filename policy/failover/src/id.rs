//! Identifiers of adapters and their virtual functions.

use core::fmt;

use serde::{Deserialize, Serialize};

/// An adapter with SR-IOV. Never used again for another while the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdapterId(pub u32);

/// A virtual function: its adapter, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VfId {
    /// The adapter.
    pub adapter: AdapterId,
    /// Counts from 0.
    pub index: u16,
}

impl fmt::Display for VfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VF {} of adapter {}", self.index, self.adapter.0)
    }
}
