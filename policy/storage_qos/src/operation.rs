//! Operations of requests.

use serde::{Deserialize, Serialize};

/// Operation of a request. It decides nothing: latencies of reads and of writes are kept apart by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A read.
    #[default]
    Read,
    /// A write.
    Write,
    /// A flush, which moves no payload.
    Flush,
    /// A discard, a write of zeros or a query of the allocation.
    Other,
}

impl Operation {
    /// All operations in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Other];
}
