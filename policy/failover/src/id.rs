//! Identifiers of adapters and their virtual functions.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Identifier of an adapter with SR-IOV, not reused while the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdapterId(pub u32);

/// Identifier of a virtual function: adapter and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VfId {
    /// Adapter that provides the VF.
    pub adapter: AdapterId,
    /// Index of the VF on its adapter, from 0.
    pub index: u16,
}

impl fmt::Display for VfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VF {} of adapter {}", self.index, self.adapter.0)
    }
}
