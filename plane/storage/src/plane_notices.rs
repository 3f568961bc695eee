//! Notices of the storage plane: rare, bounded, and non-blocking.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use suimon_ports::PortFault;
use suimon_quantity::{DiskId, StoreId, WorkerId};
use suimon_storage_qos::Event;

use crate::notices::FullChange;
use crate::queue_key::QueueKey;

/// Largest number of pending notices for the control plane; further ones are dropped.
const NOTICES_MAX: usize = 1024;

/// Notice for the control plane.
#[derive(Debug)]
pub enum PlaneNotice {
    /// A queue is faulty and was closed.
    QueueFault {
        /// Disk that the queue belongs to.
        disk: DiskId,
        /// Key of the queue.
        queue: QueueKey,
        /// Fault because of which the queue is closed.
        fault: PortFault,
    },
    /// A disk's image is damaged, or its file cannot be read or written.
    DiskFault {
        /// Disk with the fault.
        disk: DiskId,
        /// Offset in the file, if known.
        offset: Option<u64>,
        /// Description of the fault, with the field where it is known.
        detail: String,
        /// Faults of the disk since the previous notice that were not reported.
        untold: u64,
    },
    /// A disk's store has not completed an operation for too long
    /// ([`STALLED_AFTER`](crate::STALLED_AFTER)), or completes operations again.
    DiskStall {
        /// Disk that stalls.
        disk: DiskId,
        /// True if the disk is stalled now.
        stalls: bool,
        /// Time since the start of the oldest operation, or the least duration of the stall.
        waited: Duration,
    },
    /// A disk's store has no space for its requests, or is no longer known to be full.
    DiskFull {
        /// Disk without space.
        disk: DiskId,
        /// Observation of the disk's requests.
        change: FullChange,
        /// Time since the first request for which there was no space.
        lasted: Duration,
    },
    /// A flush of a disk has failed: its writes and flushes fail until its image is opened again.
    FlushFailed {
        /// Disk whose flush failed.
        disk: DiskId,
        /// Error of the flush.
        detail: String,
    },
    /// A disk is out of service because it could not be moved off a retiring worker. Its file is
    /// released.
    DiskLost {
        /// Disk that is out of service.
        disk: DiskId,
        /// Error because of which the disk could not be moved.
        reason: String,
    },
    /// A minimum is unmet, or met again.
    Qos {
        /// Store that emitted the event.
        store: StoreId,
        /// Event of the store's scheduler.
        event: Event,
    },
    /// I/O of a worker cannot be submitted to the system now.
    IoFault {
        /// Worker of the I/O.
        worker: WorkerId,
        /// Error that the system returned.
        detail: String,
    },
}

/// Queue of notices for the control plane.
#[derive(Debug, Default)]
pub(crate) struct NoticeSender(Mutex<VecDeque<PlaneNotice>>);

impl NoticeSender {
    pub(crate) fn emit(&self, notice: PlaneNotice) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < NOTICES_MAX {
            waiting.push_back(notice);
        } else {
            tracing::warn!(?notice, "the queue of notices is full; a notice was dropped");
        }
    }

    pub(crate) fn poll(&self) -> Option<PlaneNotice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
