//! Queue of notices for the control plane. It is bounded and never blocks a worker.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use suimon_ports::QueueFault;
use suimon_quantity::{DiskId, StoreId, WorkerId};
use suimon_storage_engine::SpaceChange;
use suimon_storage_qos::StoreEvent;

use crate::command::queue_key::QueueKey;

/// Maximum number of pending notices for the control plane; further ones are dropped.
const NOTICES_MAX: usize = 1024;

/// Notice for the control plane.
#[derive(Debug)]
pub enum PlaneNotice {
    /// A queue is faulty and was closed.
    QueueFault {
        /// Disk that the queue belongs to.
        disk: DiskId,
        /// Identifier of the closed queue.
        queue: QueueKey,
        /// Fault that caused the queue to be closed.
        fault: QueueFault,
    },
    /// A disk's image is damaged, or its file cannot be read or written.
    DiskFault {
        /// Disk with the damaged image or faulty file.
        disk: DiskId,
        /// Offset in the file, if known.
        offset: Option<u64>,
        /// Description of the fault, with the field where it is known.
        detail: String,
        /// Number of faults of the disk that were suppressed since the previous notice.
        suppressed: u64,
    },
    /// A disk's store has not completed an operation for too long
    /// ([`STALLED_AFTER`](suimon_storage_engine::STALLED_AFTER)), or completes operations again.
    DiskStall {
        /// Disk that is stalled or continues.
        disk: DiskId,
        /// True when the stall begins, false when it ends.
        is_beginning: bool,
        /// Time since the submission of the oldest operation, or the minimum duration of the stall.
        stalled_for: Duration,
    },
    /// A disk's store has no space for its requests, or is no longer known to be full.
    DiskSpaceChange {
        /// Disk on the full store.
        disk: DiskId,
        /// Change that the disk's requests observed.
        change: SpaceChange,
        /// Time since the first request for which there was no space.
        full_for: Duration,
    },
    /// A flush of a disk has failed: its writes and flushes fail until its image is opened again.
    FlushFailed {
        /// Disk with the failed flush.
        disk: DiskId,
        /// Error with which the flush failed.
        detail: String,
    },
    /// A disk is out of service because it could not be moved off a retiring worker. Its file is
    /// released.
    DiskLost {
        /// Disk that is out of service.
        disk: DiskId,
        /// Error that prevented the move of the disk.
        reason: String,
    },
    /// A disk's minimum is not met, or is met again.
    Qos {
        /// Store that emitted the event.
        store: StoreId,
        /// Event of the store's scheduler.
        event: StoreEvent,
    },
    /// The system does not accept I/O operations of a worker at present.
    IoFault {
        /// Worker with the failed I/O submission.
        worker: WorkerId,
        /// Error that the system returned.
        detail: String,
    },
}

/// Queue of notices for the control plane.
#[derive(Debug, Default)]
pub(crate) struct NoticeQueue(Mutex<VecDeque<PlaneNotice>>);

impl NoticeQueue {
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
