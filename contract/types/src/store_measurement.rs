//! Capacity of a store: its source, measurements, and estimates.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Source of a store's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = CapabilitySource)]
pub enum CapacitySource {
    /// Capacity declared by the operator.
    Declared,
    /// Capacity measured by `suimon store measure`.
    Measured,
}

/// Access pattern of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorePattern {
    /// Reads at random offsets.
    RandomRead,
    /// Writes at random offsets.
    RandomWrite,
    /// Half reads, half writes, at random offsets.
    RandomMixed,
}

impl StorePattern {
    /// Returns the name of the pattern for output.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::RandomRead => "random reads",
            Self::RandomWrite => "random writes",
            Self::RandomMixed => "half reads, half writes",
        }
    }
}

/// Result of a measurement with one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "StorePatternFigure")]
#[schema(as = StorePatternFigure)]
pub struct StorePatternResult {
    /// Access pattern of the measurement.
    pub pattern: StorePattern,
    /// Operations per second, each of the store's `normalization_bytes`.
    pub iops: u64,
    /// Queue depth at the device, as selected by Storage QoS.
    pub depth: u32,
    /// Median (50th percentile) of the latency in ns.
    pub latency_ns_p50: u64,
    /// 99th percentile of the latency in ns.
    pub latency_ns_p99: u64,
}

/// Result of a measurement of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreMeasurement {
    /// Capacity in normalised operations per second: the lowest of all patterns.
    pub iops: u64,
    /// End of the measurement in milliseconds since 1970-01-01 UTC.
    pub measured_unix_ms: u64,
    /// Measuring time of each pattern in seconds.
    pub seconds: u64,
    /// Results by pattern. A block device is measured with reads only.
    #[serde(rename = "patterns")]
    pub pattern_results: Vec<StorePatternResult>,
    /// Size of the range accessed, in bytes.
    pub file_bytes: u64,
    /// True if requests bypassed the host's page cache.
    #[serde(rename = "direct")]
    pub is_direct_io: bool,
    /// Rate delivered to the store's disks in the last 5 s of the measurement, in normalised
    /// operations per second.
    #[serde(rename = "others_iops")]
    pub other_load_iops: u64,
}

/// Estimate of a store's capacity from a time with queued requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "StoreEstimate")]
#[schema(as = StoreEstimate)]
pub struct StoreCapacityEstimate {
    /// Rate delivered under the load of that time, in normalised operations per second.
    pub iops: u64,
    /// Age of the estimate in ms.
    pub age_ms: u64,
}
