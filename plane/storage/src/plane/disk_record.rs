//! Record of a disk in the control plane.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use suimon_quantity::{StoreId, WorkerId};

use crate::command::pending_changes::PendingFullStorePolicy;

/// Interval of the attempts to lock [`DiskRecord::owner`].
const ATTACH_EVERY: Duration = Duration::from_millis(5);

/// Control-plane record of a disk. `owner` is the disk's worker; `None` once the disk was taken out
/// of service.
pub(crate) struct DiskRecord {
    pub(crate) owner: Mutex<Option<WorkerId>>,
    /// Store on which the disk has limits; `None` without limits.
    pub(crate) store: Option<StoreId>,
    /// True while the disk is suspended: its worker has none of its files. Changed only while
    /// `owner` is locked.
    pub(crate) is_suspended: AtomicBool,
    /// Policy for a full store, in case the worker has not applied it yet.
    pub(crate) pending_full_store_policy: Arc<PendingFullStorePolicy>,
    /// State of a copy of the disk. Changed only while `owner` is locked.
    pub(crate) mirror: Mutex<MirrorRecord>,
    /// True once the disk is being taken out of service, so that detaching its queues does not wait
    /// for a stalled disk.
    pub(crate) is_being_removed: AtomicBool,
}

impl DiskRecord {
    /// Locks `owner`; returns `None` if another thread holds it for longer than `limit`.
    pub(crate) fn lock_owner_within(
        &self,
        limit: Duration,
    ) -> Option<MutexGuard<'_, Option<WorkerId>>> {
        let deadline = Instant::now() + limit;
        loop {
            match self.owner.try_lock() {
                Ok(owner) => return Some(owner),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(ATTACH_EVERY),
            }
        }
    }
}

/// State of a disk copy (mirror job) in the control plane.
#[derive(Default)]
pub(crate) struct MirrorRecord {
    pub(crate) is_active: bool,
}

impl MirrorRecord {
    pub(crate) const fn is_active(&self) -> bool {
        self.is_active
    }
}
