//! Counters of a disk's requests.

use suimon_ports::{DiskOp, DiskOutcome};
use suimon_quantity::Time;

use crate::disk::latency::{LatencyHistogram, LatencyPercentiles};

/// Counters of completed requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCounters {
    /// Number of requests that have completed, including failed ones.
    pub requests: u64,
    /// Bytes of the requests' ranges.
    pub bytes: u64,
    /// Number of requests that failed.
    pub failed: u64,
    /// Sum of the times from receipt to completion, in nanoseconds.
    pub latency_sum_ns: u64,
    /// Percentiles of the times from receipt to completion.
    pub latencies: LatencyPercentiles,
}

/// Counters of a disk since it was added to its worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskIoCounters {
    /// Counters of the read requests.
    pub reads: OpCounters,
    /// Counters of the write requests.
    pub writes: OpCounters,
    /// Counters of flush requests; their bytes are 0.
    pub flushes: OpCounters,
    /// Counters of discards and writes of zeros.
    pub discards: OpCounters,
    /// Counters of allocation queries; their bytes are the bytes queried.
    pub status_queries: OpCounters,
    /// Number of commits of the image's metadata.
    pub commits: u64,
}

impl DiskIoCounters {
    /// Returns the sum of the times from receipt to completion of reads, writes, flushes and
    /// discards, in nanoseconds.
    #[must_use]
    pub const fn latency_sum_ns(&self) -> u64 {
        let total_ns = self.reads.latency_sum_ns.saturating_add(self.writes.latency_sum_ns);
        total_ns
            .saturating_add(self.flushes.latency_sum_ns)
            .saturating_add(self.discards.latency_sum_ns)
    }

    /// Returns the number of failed requests of any kind.
    #[must_use]
    pub const fn failed(&self) -> u64 {
        self.reads.failed
            + self.writes.failed
            + self.flushes.failed
            + self.discards.failed
            + self.status_queries.failed
    }
}

/// Counters and latencies of one kind of request.
#[derive(Debug, Default)]
struct OpCounts {
    counters: OpCounters,
    latencies: LatencyHistogram,
}

impl OpCounts {
    fn counters(&self) -> OpCounters {
        OpCounters { latencies: self.latencies.percentiles(), ..self.counters }
    }
}

/// Counters and latencies of a disk: 16 KB.
#[derive(Debug, Default)]
pub(crate) struct DiskIoRecorder {
    reads: OpCounts,
    writes: OpCounts,
    flushes: OpCounts,
    discards: OpCounts,
    statuses: OpCounts,
    pub(crate) commits: u64,
}

impl DiskIoRecorder {
    /// Returns the number of requests that may have changed the disk.
    pub(crate) const fn change_requests(&self) -> u64 {
        self.writes.counters.requests + self.discards.counters.requests
    }

    pub(crate) fn counters(&self) -> DiskIoCounters {
        DiskIoCounters {
            reads: self.reads.counters(),
            writes: self.writes.counters(),
            flushes: self.flushes.counters(),
            discards: self.discards.counters(),
            status_queries: self.statuses.counters(),
            commits: self.commits,
        }
    }

    pub(crate) fn count(
        &mut self,
        op: DiskOp,
        bytes: u64,
        outcome: DiskOutcome,
        (received_at, now): (Time, Time),
    ) {
        let counts = match op {
            DiskOp::Read => &mut self.reads,
            DiskOp::Write { .. } => &mut self.writes,
            DiskOp::Flush => &mut self.flushes,
            DiskOp::Discard | DiskOp::WriteZeroes { .. } => &mut self.discards,
            DiskOp::AllocationStatus { .. } => &mut self.statuses,
        };
        let latency_ns = now.as_ns().saturating_sub(received_at.as_ns());
        counts.latencies.record(latency_ns);
        let op_counts = &mut counts.counters;
        op_counts.requests += 1;
        op_counts.bytes = op_counts.bytes.saturating_add(bytes);
        op_counts.latency_sum_ns = op_counts.latency_sum_ns.saturating_add(latency_ns);
        op_counts.failed += u64::from(outcome != DiskOutcome::Done);
    }
}
