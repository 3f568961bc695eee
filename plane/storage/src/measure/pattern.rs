//! Read/write mix of a measurement, and its measured rate.

use suimon_storage_engine::LatencyPercentiles;

/// Read/write mix of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Reads only (100 % reads).
    Read,
    /// Writes only (100 % writes).
    Write,
    /// Mix of 50 % reads and 50 % writes.
    Mixed,
}

impl Pattern {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Mixed];

    /// Returns the name of the pattern for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "random reads",
            Self::Write => "random writes",
            Self::Mixed => "half reads, half writes",
        }
    }
}

/// Measured rate of one read/write mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternResult {
    /// Read/write mix that was measured.
    pub pattern: Pattern,
    /// Measured rate in normalised operations per second.
    pub iops: u64,
    /// Queue depth of the device, as determined by the scheduler, at the end of the measurement.
    pub depth: u32,
    /// Percentiles of the device latencies of the requests.
    pub latencies: LatencyPercentiles,
}
