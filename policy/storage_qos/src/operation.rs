//! Operations of requests.

use serde::{Deserialize, Serialize};

/// Operation of a request. Used only to keep latencies of reads and writes apart; does not affect
/// scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Read.
    #[default]
    Read,
    /// Write.
    Write,
    /// Flush, without payload.
    Flush,
    /// Discard, write of zeros or query of the allocation.
    Other,
}

impl Operation {
    /// Operations in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Other];
}
