//! What the storage plane has to tell: rare, bounded, never waited for.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use suimon_ports::PortFault;
use suimon_quantity::{DiskId, ProcessorId, StoreId};
use suimon_storage_qos::Event;

use crate::notices::FullChange;
use crate::queue_key::QueueKey;

/// Notices that wait for the control plane; more than this are not kept.
const NOTICES_MAX: usize = 1024;

/// News for the control plane.
#[derive(Debug)]
pub enum PlaneNotice {
    /// A queue is finished and was given up.
    QueueFault {
        /// Whose.
        disk: DiskId,
        /// Which.
        queue: QueueKey,
        /// Why.
        fault: PortFault,
    },
    /// A disk's image has something wrong with it, or its file cannot be read or written.
    DiskFault {
        /// Which.
        disk: DiskId,
        /// Where in the file, as far as that is known.
        offset: Option<u64>,
        /// What, with the field where it is known.
        detail: String,
        /// Faults of the disk since the one that was told before.
        untold: u64,
    },
    /// The store has not answered a disk for too long
    /// ([`STALLED_AFTER`](crate::STALLED_AFTER)), or answers it again.
    DiskStall {
        /// Which.
        disk: DiskId,
        /// Whether it stalls now.
        stalls: bool,
        /// How long it waits, or has waited at least.
        waited: Duration,
    },
    /// The store has no space for a disk's requests, or is not known to be full any more.
    DiskFull {
        /// Which.
        disk: DiskId,
        /// What was found.
        change: FullChange,
        /// Time since the first request that found it full.
        lasted: Duration,
    },
    /// A disk is out of service, for it could not be moved off a processor that ends. Its
    /// file is let go.
    DiskLost {
        /// Which.
        disk: DiskId,
        /// Why.
        reason: String,
    },
    /// A minimum is not met, or is met again.
    Qos {
        /// On which store.
        store: StoreId,
        /// What.
        event: Event,
    },
    /// I/O of a processor cannot be handed to the system now.
    IoFault {
        /// Whose.
        processor: ProcessorId,
        /// Why.
        detail: String,
    },
}

/// The way of notices to the control plane.
#[derive(Debug, Default)]
pub(crate) struct NoticeQueue(Mutex<VecDeque<PlaneNotice>>);

impl NoticeQueue {
    pub(crate) fn tell(&self, notice: PlaneNotice) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < NOTICES_MAX {
            waiting.push_back(notice);
        } else {
            tracing::warn!(?notice, "too many notices are waiting; this one is not kept");
        }
    }

    pub(crate) fn poll(&self) -> Option<PlaneNotice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
