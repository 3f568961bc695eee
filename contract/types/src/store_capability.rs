//! What a store can do: as desired, measured, and estimated.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `capability_iops` of a store: a number, or the word `measure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StoreCapability {
    /// Normalised operations per second, as the operator says.
    Declared(u64),
    /// What `suimon store measure` found out last; nothing is known before it has run.
    Measured(MeasureWord),
}

/// The word for what is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeasureWord {
    /// It is measured when the operator asks for it.
    Measure,
}

impl StoreCapability {
    /// The word `measure`.
    pub const MEASURE: Self = Self::Measured(MeasureWord::Measure);

    /// What was declared.
    pub const fn declared(self) -> Option<u64> {
        match self {
            Self::Declared(iops) => Some(iops),
            Self::Measured(_) => None,
        }
    }
}

/// How it is known what a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CapabilitySource {
    /// The operator says so.
    Declared,
    /// It was measured.
    Measured,
}

/// What a store was measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorePattern {
    /// Reads at random places.
    RandomRead,
    /// Writes at random places.
    RandomWrite,
    /// Half reads, half writes, at random places.
    RandomMixed,
}

impl StorePattern {
    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::RandomRead => "random reads",
            Self::RandomWrite => "random writes",
            Self::RandomMixed => "half reads, half writes",
        }
    }
}

/// What a store did under one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StorePatternFigure {
    /// The pattern.
    pub pattern: StorePattern,
    /// Operations per second of the size that counts as one.
    pub iops: u64,
    /// Requests that the device had at a time, as Storage QoS found best.
    pub depth: u32,
    /// Half of the requests took this long at most, in ns.
    pub latency_ns_p50: u64,
    /// All but one of a hundred took this long at most, in ns.
    pub latency_ns_p99: u64,
}

/// What a measurement of a store found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreMeasurement {
    /// Normalised operations per second that it can do: the least of all patterns.
    pub iops: u64,
    /// When it ended, in milliseconds since 1970-01-01 UTC.
    pub measured_unix_ms: u64,
    /// For how many seconds each pattern was measured.
    pub seconds: u64,
    /// What it did under each pattern. A block device is only read.
    pub patterns: Vec<StorePatternFigure>,
    /// Bytes that requests went to.
    pub file_bytes: u64,
    /// Whether they went past the host's page cache.
    pub direct: bool,
    /// Normalised operations per second that its own disks did beside, in the last 5 s.
    pub others_iops: u64,
}

/// What a store did when requests last waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreEstimate {
    /// Normalised operations per second, of the load that there was.
    pub iops: u64,
    /// How long ago that was, in ms.
    pub age_ms: u64,
}
