//! Operations of a measurement, and their measured rate.

use crate::Latencies;

/// Operations of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Reads and writes, half of each.
    Mixed,
}

impl Pattern {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Mixed];

    /// Returns the name of the pattern for reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "random reads",
            Self::Write => "random writes",
            Self::Mixed => "half reads, half writes",
        }
    }
}

/// Measured rate of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternFigure {
    /// Pattern that was measured.
    pub pattern: Pattern,
    /// Normalised operations per second.
    pub iops: u64,
    /// Queue depth of the device at the end.
    pub depth: u32,
    /// Device latencies of the requests.
    pub latencies: Latencies,
}
