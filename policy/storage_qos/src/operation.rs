//! Operations that requests perform.

use serde::{Deserialize, Serialize};

/// Operation that a request performs. Only used to distinguish latencies of reads and writes; does
/// not affect scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoKind {
    /// Read of payload from the disk.
    #[default]
    Read,
    /// Write of payload to the disk.
    Write,
    /// Flush, which has no payload.
    Flush,
    /// Discard, write of zeros, or query of the allocation.
    Other,
}

impl IoKind {
    /// Operations in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Other];
}
