//! Bodies of requests other than configuration.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DiskFormat, DiskKind, StoreFile};

/// Body of `POST /1.0/queues/{port}/{rx|tx}/{index}/move`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveQueueRequest {
    /// Number of the new owning worker.
    #[schema(minimum = 0, maximum = 65_535)]
    pub worker: u16,
}

/// Body of `POST /1.0/disks/{name}/convert`: copies the disk to another file of its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvertDiskRequest {
    /// New file, relative to the store's path. It must not exist.
    pub file: StoreFile,
    /// Image format of the new file; not `pass-through`.
    pub format: DiskFormat,
    /// Kind of the new file, `fixed` or `dynamic`; the format's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DiskKind>,
}

/// Body of `POST /1.0/disks/{name}/snapshot`: the current content remains in the disk's file, and
/// subsequent writes go to a new differencing file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotDiskRequest {
    /// New file, relative to the store's path. It must not exist.
    pub file: StoreFile,
}

/// Default measuring time of each pattern in seconds.
pub const MEASURE_SECONDS_DEFAULT: u64 = 10;
/// Longest measuring time of each pattern in seconds.
pub const MEASURE_SECONDS_MAX: u64 = 600;

/// Body of `POST /1.0/stores/{name}/measure`: measures the store's capacity. The body may be
/// absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureStoreRequest {
    /// Measuring time of each pattern in seconds, 1 to 600; 10 if absent.
    #[schema(minimum = 1, maximum = 600)]
    pub seconds: u64,
    /// True to measure while VMs or NBD clients use disks of the store. The measurement slows them
    /// down, and its result excludes the capacity that they use.
    #[serde(rename = "beside")]
    pub while_in_use: bool,
}

impl Default for MeasureStoreRequest {
    fn default() -> Self {
        Self { seconds: MEASURE_SECONDS_DEFAULT, while_in_use: false }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
