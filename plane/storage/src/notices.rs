//! What a processor's disks have to tell, bounded.

use std::collections::VecDeque;

use core::time::Duration;
use suimon_ports::PortFault;
use suimon_quantity::{StoreId, Time};
use suimon_storage_qos::Event;

/// What requests of a disk found about the space of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullChange {
    /// A request or a commit found no space.
    Full,
    /// A request that had found no space has succeeded.
    HasSpace,
    /// No request has found the store full for 10 s, and none is queued. The store may still be full.
    NotNeeded,
}

/// Of one disk's faults, and of the I/O's, one is told in this time.
pub const FAULT_EVERY: Duration = Duration::from_secs(10);

/// Notices that nobody has fetched, at most. What comes more is dropped: the oldest say
/// how it began.
pub const NOTICES_MAX: usize = 1024;

/// What a processor's disks have to tell.
#[derive(Debug)]
pub enum StorageNotice {
    /// A queue is finished. It is given back when its requests have ended.
    QueueFault {
        /// The queue's number.
        queue: usize,
        /// Why.
        fault: PortFault,
    },
    /// A disk's image has something wrong with it, or its file cannot be read or written.
    /// Told of a disk once in [`FAULT_EVERY`].
    DiskFault {
        /// The disk's number.
        disk: usize,
        /// Where in the file, as far as that is known; to 4096 bytes if it is payload.
        offset: Option<u64>,
        /// What, with the field where it is known.
        detail: String,
        /// Faults of the disk since the one that was told before.
        untold: u64,
    },
    /// The store has not answered a disk for too long, or answers it again.
    DiskStall {
        /// The disk's number.
        disk: usize,
        /// Whether it stalls now.
        stalls: bool,
        /// How long it waits, or has waited at least.
        waited: Duration,
    },
    /// The store has no space for a disk's requests, or is not known to be full any more.
    DiskFull {
        /// The disk's number.
        disk: usize,
        /// What was found.
        change: FullChange,
        /// Time since the first request that found it full.
        lasted: Duration,
    },
    /// I/O of this processor cannot be handed to the system now. Told once in
    /// [`FAULT_EVERY`].
    IoFault {
        /// Why.
        detail: String,
    },
    /// A disk's minimum is not met, or is met again.
    Qos {
        /// On which store.
        store: StoreId,
        /// What.
        event: Event,
    },
}

/// How often something is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultPace {
    last: Option<Time>,
    untold: u64,
}

impl FaultPace {
    /// Something is to be told: `None` if it is too soon for that, else how often it was
    /// too soon since the last time.
    pub(crate) fn again(&mut self, now: Time) -> Option<u64> {
        if self.last.is_some_and(|last| now < last + FAULT_EVERY) {
            self.untold = self.untold.saturating_add(1);
            return None;
        }
        self.last = Some(now);
        Some(core::mem::take(&mut self.untold))
    }
}

/// Notices that were not fetched.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    notices: VecDeque<StorageNotice>,
    io: FaultPace,
}

impl Notices {
    pub(crate) fn push(&mut self, notice: StorageNotice) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push_back(notice);
        }
    }

    pub(crate) fn push_io(&mut self, now: Time, error: &std::io::Error) {
        if self.io.again(now).is_some() {
            self.push(StorageNotice::IoFault { detail: error.to_string() });
        }
    }

    pub(crate) fn pop(&mut self) -> Option<StorageNotice> {
        self.notices.pop_front()
    }
}
