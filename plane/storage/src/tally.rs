//! What a disk has done.

use suimon_ports::{DiskOp, DiskOutcome};
use suimon_quantity::Time;

use crate::latency::{Latencies, LatencyCounts};

/// Requests of one kind that were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpTally {
    /// How many.
    pub requests: u64,
    /// Bytes of their ranges.
    pub bytes: u64,
    /// How many of them were not carried out.
    pub failed: u64,
    /// Time from when each was taken until it was answered, in nanoseconds, in sum.
    pub latency_ns: u64,
    /// The same of most of them.
    pub latencies: Latencies,
}

/// What a disk has done since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskTally {
    /// Reads.
    pub reads: OpTally,
    /// Writes.
    pub writes: OpTally,
    /// Flushes; their bytes are 0.
    pub flushes: OpTally,
    /// Discards and zeros.
    pub discards: OpTally,
    /// Questions of how bytes are allocated; their bytes are those asked about.
    pub statuses: OpTally,
    /// Commits of the image's metadata.
    pub commits: u64,
}

impl DiskTally {
    /// Time from when each read, write, flush and discard was taken until it was answered,
    /// in nanoseconds, in sum.
    #[must_use]
    pub const fn latency_ns(&self) -> u64 {
        let own = self.reads.latency_ns.saturating_add(self.writes.latency_ns);
        own.saturating_add(self.flushes.latency_ns).saturating_add(self.discards.latency_ns)
    }

    /// Requests of any kind that were not carried out.
    #[must_use]
    pub const fn failed(&self) -> u64 {
        self.reads.failed
            + self.writes.failed
            + self.flushes.failed
            + self.discards.failed
            + self.statuses.failed
    }
}

/// Counts of one kind.
#[derive(Debug, Default)]
struct OpCounts {
    tally: OpTally,
    latencies: LatencyCounts,
}

impl OpCounts {
    fn tally(&self) -> OpTally {
        OpTally { latencies: self.latencies.latencies(), ..self.tally }
    }
}

/// What a disk has done, as it is counted: 16 KB.
#[derive(Debug, Default)]
pub(crate) struct DiskCounts {
    reads: OpCounts,
    writes: OpCounts,
    flushes: OpCounts,
    discards: OpCounts,
    statuses: OpCounts,
    pub(crate) commits: u64,
}

impl DiskCounts {
    /// Requests that may have changed the disk.
    pub(crate) const fn changes(&self) -> u64 {
        self.writes.tally.requests + self.discards.tally.requests
    }

    pub(crate) fn tally(&self) -> DiskTally {
        DiskTally {
            reads: self.reads.tally(),
            writes: self.writes.tally(),
            flushes: self.flushes.tally(),
            discards: self.discards.tally(),
            statuses: self.statuses.tally(),
            commits: self.commits,
        }
    }

    pub(crate) fn count(
        &mut self,
        op: DiskOp,
        bytes: u64,
        outcome: DiskOutcome,
        (taken, now): (Time, Time),
    ) {
        let counts = match op {
            DiskOp::Read => &mut self.reads,
            DiskOp::Write { .. } => &mut self.writes,
            DiskOp::Flush => &mut self.flushes,
            DiskOp::Discard | DiskOp::WriteZeroes { .. } => &mut self.discards,
            DiskOp::Status { .. } => &mut self.statuses,
        };
        let latency_ns = now.as_ns().saturating_sub(taken.as_ns());
        counts.latencies.count(latency_ns);
        let tally = &mut counts.tally;
        tally.requests += 1;
        tally.bytes = tally.bytes.saturating_add(bytes);
        tally.latency_ns = tally.latency_ns.saturating_add(latency_ns);
        tally.failed += u64::from(outcome != DiskOutcome::Done);
    }
}
