//! Notices about a worker's disks, in a bounded queue.

use std::collections::VecDeque;

use core::time::Duration;
use suimon_ports::QueueFault;
use suimon_quantity::{StoreId, Time};
use suimon_storage_qos::StoreEvent;

/// Change in the availability of space on a disk's store, as observed by the disk's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceChange {
    /// A request or a commit found no space.
    Full,
    /// A request that had found no space succeeded.
    HasSpace,
    /// For 10 s no request found the store full, and none is queued. The store may still be full.
    NoLongerObserved,
}

/// Minimum interval between fault notices of one disk, or of the worker's I/O.
pub const FAULT_NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of notices that the caller has not fetched. Further notices are dropped: the
/// oldest ones state the origin of a problem.
pub const NOTICES_MAX: usize = 1024;

/// Notice about a worker's disks.
#[derive(Debug)]
pub enum StorageNotice {
    /// A queue is faulty. The engine closes it when its requests have ended.
    QueueFault {
        /// Number of the queue on this worker.
        queue: usize,
        /// Fault that causes the queue to be closed.
        fault: QueueFault,
    },
    /// A disk's image is damaged, or its file cannot be read or written. Emitted once per
    /// [`FAULT_NOTICE_INTERVAL`] for a disk.
    DiskFault {
        /// Number of the disk on this worker.
        disk: usize,
        /// Offset in the file, if known; a multiple of 4096 bytes for payload.
        offset: Option<u64>,
        /// Description of the fault, with the field where it is known.
        detail: String,
        /// Number of faults of the disk that were suppressed since the previous notice.
        suppressed: u64,
    },
    /// A disk's store has not completed an operation for too long, or completes operations again.
    DiskStall {
        /// Number of the disk on this worker.
        disk: usize,
        /// True when the stall begins, false when it ends.
        is_beginning: bool,
        /// Time since the submission of the oldest operation, or the minimum duration of the stall.
        stalled_for: Duration,
    },
    /// A disk's store has no space for its requests, or is no longer known to be full.
    DiskSpaceChange {
        /// Number of the disk on this worker.
        disk: usize,
        /// Change that the disk's requests observed.
        change: SpaceChange,
        /// Time since the first request for which there was no space.
        full_for: Duration,
    },
    /// A flush of a disk has failed: its writes and flushes fail until its image is opened again.
    FlushFailed {
        /// Number of the disk on this worker.
        disk: usize,
        /// Error with which the flush failed.
        detail: String,
    },
    /// The system does not accept I/O operations of this worker at present. Emitted once per
    /// [`FAULT_NOTICE_INTERVAL`].
    IoFault {
        /// Error that the system returned.
        detail: String,
    },
    /// A disk's minimum is not met, or is met again.
    Qos {
        /// Store that emitted the event.
        store: StoreId,
        /// Event of the store's scheduler.
        event: StoreEvent,
    },
}

/// Rate limiter for fault notices of one disk, or of the worker's I/O.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultNoticeLimiter {
    last: Option<Time>,
    suppressed: u64,
}

impl FaultNoticeLimiter {
    /// Returns the number of faults that were suppressed since the previous notice if a notice is
    /// due now. Otherwise counts the fault as suppressed and returns `None`.
    pub(crate) fn take_suppressed_if_due(&mut self, now: Time) -> Option<u64> {
        if self.last.is_some_and(|last| now < last + FAULT_NOTICE_INTERVAL) {
            self.suppressed = self.suppressed.saturating_add(1);
            return None;
        }
        self.last = Some(now);
        Some(core::mem::take(&mut self.suppressed))
    }
}

/// Notices that the caller has not fetched.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    notices: VecDeque<StorageNotice>,
    io: FaultNoticeLimiter,
}

impl Notices {
    pub(crate) fn push(&mut self, notice: StorageNotice) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push_back(notice);
        }
    }

    pub(crate) fn push_io_fault(&mut self, now: Time, error: &std::io::Error) {
        if self.io.take_suppressed_if_due(now).is_some() {
            self.push(StorageNotice::IoFault { detail: error.to_string() });
        }
    }

    pub(crate) fn pop(&mut self) -> Option<StorageNotice> {
        self.notices.pop_front()
    }
}
