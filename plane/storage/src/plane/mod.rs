//! Handle with which the control plane controls all disks: the worker of each disk, and the
//! channels to the workers.

#[cfg(test)]
mod blocked_store_tests;
mod detaching;
mod disk_record;
pub(crate) mod error;
mod image_closing;
mod late_replies;
pub(crate) mod mirroring;
pub(crate) mod moving;
pub(crate) mod notices;
#[cfg(test)]
mod stalled_store_tests;
#[cfg(test)]
mod stalled_worker_tests;
mod store_record;
mod stores;
pub(crate) mod suspension;
#[cfg(test)]
mod suspension_tests;
#[cfg(test)]
pub(crate) mod test_workers;
#[cfg(test)]
mod unwatched_queue_tests;
pub(crate) mod views;
#[cfg(test)]
mod worker_removal_tests;
mod workers;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_image_files::LayerStack;
use suimon_ports::{DetachingQueue, DiskQueue, DiskQueueHost, FileIoFactory};
use suimon_quantity::{DiskId, StoreId, WorkerId};
use suimon_recording::RecordSink;
use suimon_storage_engine::{FullStorePolicy, StoreDiskSlot};

use crate::command::channel::WorkerChannel;
use crate::command::queue_key::{QueueKey, QueueSelection};
use crate::command::wait_limits::{COMMAND_WAIT_MAX, SHARE_WAIT_MAX, WaitLimits};
use crate::command::{Command, DetachedDisk, MirrorSettings};
use crate::plane::disk_record::DiskRecord;
use crate::plane::error::{AddDiskError, PlaneError};
use crate::plane::notices::{NoticeQueue, PlaneNotice};
use crate::plane::store_record::StoreEntry;
pub(crate) use crate::sync::lock;

/// Maximum time for which the attachment of a client blocks while its disk is being moved,
/// suspended or closed.
pub(crate) const ATTACH_WAIT_MAX: Duration = Duration::from_secs(10);

/// Handle of all disks of a host that are in service. Clones are handles of the same disks.
///
/// Workers are added and removed by [`WorkerTaskFactory`](suimon_ports::WorkerTaskFactory), queues
/// of disks by [`DiskQueueHost`] and [`StoragePlane::attach_client`].
#[derive(Clone)]
pub struct StoragePlane(pub(crate) Arc<Inner>);

/// Shared state of the handles. Lock order: a disk's lock, the lock of a store, then all others.
/// Workers take no lock, except those of store budgets and of lists of maximums, which are held
/// only for calculations. A thread that waits for a worker may hold the lock of a disk or of one
/// store. The time is bounded: `waits` states how long a thread waits for a worker that does not
/// respond.
pub(crate) struct Inner {
    io: Arc<dyn FileIoFactory>,
    /// Sink for the recording of scheduler decisions; `None` if they are not recorded.
    recording: Option<Arc<dyn RecordSink>>,
    pub(crate) stores: Mutex<BTreeMap<StoreId, Arc<StoreEntry>>>,
    pub(crate) channels: Mutex<BTreeMap<WorkerId, Arc<WorkerChannel>>>,
    pub(crate) disks: Mutex<BTreeMap<DiskId, Arc<DiskRecord>>>,
    pub(crate) notices: Arc<NoticeQueue>,
    clients: AtomicU64,
    pub(crate) wait_limits: WaitLimits,
}

impl StoragePlane {
    /// Creates a plane without disks and workers. `io` creates the file I/O of the workers.
    #[must_use]
    pub fn new(io: Arc<dyn FileIoFactory>) -> Self {
        Self::with_recording(io, None)
    }

    /// Creates a plane without disks and workers that records inputs and decisions of the stores'
    /// schedulers to `recording`.
    #[must_use]
    pub fn with_recording(
        io: Arc<dyn FileIoFactory>,
        recording: Option<Arc<dyn RecordSink>>,
    ) -> Self {
        Self::with_wait_limits(io, recording, WaitLimits::new(SHARE_WAIT_MAX, COMMAND_WAIT_MAX))
    }

    /// Creates a plane with these limits of the time for which it waits for workers.
    pub(crate) fn with_wait_limits(
        io: Arc<dyn FileIoFactory>,
        recording: Option<Arc<dyn RecordSink>>,
        waits: WaitLimits,
    ) -> Self {
        Self(Arc::new(Inner {
            io,
            recording,
            stores: Mutex::default(),
            channels: Mutex::default(),
            disks: Mutex::default(),
            notices: Arc::new(NoticeQueue::default()),
            clients: AtomicU64::new(0),
            wait_limits: waits,
        }))
    }

    /// Takes a disk into service on the worker with the fewest disks that responds. The disk has
    /// the limits proposed for it on its store, or none without a store. A disk without images is
    /// suspended: its requests wait until [`StoragePlane::resume_disk`] provides images. Waits for
    /// workers that do not respond for up to [`COMMAND_WAIT_MAX`] together.
    ///
    /// # Errors
    /// The disk is in service already, no worker runs or responds, its files cannot be used, or its
    /// store has no limits for it. The caller must close the returned images.
    pub fn add_disk(
        &self,
        disk: DiskId,
        spec: LayerStack,
        store: Option<StoreId>,
    ) -> Result<(), AddDiskError> {
        let refused = |error, spec| Err(AddDiskError { error, spec: Some(spec) });
        let slot = store.map(|store| (store, self.disk_slot(store, disk)));
        let index = match slot {
            None => None,
            Some((store, Some(slot))) => Some(StoreDiskSlot { store, slot }),
            Some((_, None)) => return refused(PlaneError::NoSuchStore, spec),
        };
        let record = Arc::new(DiskRecord {
            owner: Mutex::new(None),
            store,
            is_suspended: AtomicBool::new(spec.layers.is_empty()),
            pending_full_store_policy: Arc::default(),
            mirror: Mutex::default(),
            is_being_removed: AtomicBool::new(false),
        });
        let mut owner = lock(&record.owner);
        match lock(&self.0.disks).entry(disk) {
            std::collections::btree_map::Entry::Occupied(_) => {
                return refused(PlaneError::AlreadyInService, spec);
            }
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Arc::clone(&record));
            }
        }
        let (full, mirror, queues) =
            (FullStorePolicy::default(), MirrorSettings::default(), Vec::new());
        let detached = Box::new(DetachedDisk {
            spec,
            full_store_policy: full,
            store_slot: index,
            mirror,
            queues,
        });
        match self.assign_disk(disk, detached) {
            Ok(worker) => {
                *owner = Some(worker);
                Ok(())
            }
            Err((error, detached)) => {
                self.remove_record(disk, &record);
                Err(AddDiskError { error, spec: detached.map(|detached| detached.spec) })
            }
        }
    }

    /// Takes a disk out of service: its queues are closed when the requests taken from them have
    /// completed, and its changes are committed. The caller must close the disk's own image, the
    /// first one ([`Image::close`](suimon_image::Image::close)). A suspended disk has no images.
    ///
    /// # Errors
    /// The disk is not in service, its store does not complete requests, or its worker does not
    /// respond. In the latter cases, the disk is closed when the store completes them and the
    /// worker proceeds.
    pub fn remove_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        let record = self.disk_record(disk)?;
        let mut owner = lock(&record.owner);
        let worker = owner.take().ok_or(PlaneError::NoSuchDisk)?;
        self.remove_record(disk, &record);
        self.remove_from_worker(worker, disk).map(|detached| detached.spec)
    }

    /// Announces that the disk will be taken out of service. From now on, detaching its queues does
    /// not wait for a stalled store.
    pub fn announce_removal(&self, disk: DiskId) {
        if let Ok(record) = self.disk_record(disk) {
            record.is_being_removed.store(true, Ordering::Relaxed);
        }
    }

    /// Attaches a client's connection to a disk. The connection is removed when its client
    /// disconnects. Returns its number among the disk's clients.
    ///
    /// # Errors
    /// The disk does not exist, or another operation has used it for [`ATTACH_WAIT_MAX`], because
    /// its store does not complete requests.
    pub fn attach_client(
        &self,
        disk: DiskId,
        queue: Box<dyn DiskQueue>,
    ) -> Result<u64, PlaneError> {
        let number = self.0.clients.fetch_add(1, Ordering::Relaxed);
        self.attach_queue(disk, QueueKey::Client(number), queue)?;
        Ok(number)
    }

    /// Attaches the connection of a VM's QEMU that emulates the disk's controller. If the store is
    /// full, requests of the connection fail at once, and QEMU pauses the VM.
    ///
    /// # Errors
    /// As [`StoragePlane::attach_client`].
    pub fn attach_emulated_disk_client(
        &self,
        disk: DiskId,
        queue: Box<dyn DiskQueue>,
    ) -> Result<(), PlaneError> {
        let number = self.0.clients.fetch_add(1, Ordering::Relaxed);
        self.attach_queue(disk, QueueKey::EmulatedDisk(number), queue)
    }

    /// Sets how long a disk's requests are queued while its store is full. Applies to requests that
    /// are queued already, too. A worker that does not respond applies the last policy when it
    /// proceeds.
    ///
    /// # Errors
    /// The disk is not in service.
    pub fn set_full_store_policy(
        &self,
        disk: DiskId,
        policy: FullStorePolicy,
    ) -> Result<(), PlaneError> {
        let record = self.disk_record(disk)?;
        let owner = lock(&record.owner);
        let worker_channel =
            owner.and_then(|owner| self.worker_channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        if record.pending_full_store_policy.set(policy) {
            worker_channel.send(Command::SetFullStorePolicy(
                disk,
                Arc::clone(&record.pending_full_store_policy),
            ));
        }
        // The disk may be moved meanwhile: its worker executes its commands in order.
        drop(owner);
        let _ = self.check_responding(&worker_channel);
        Ok(())
    }

    /// Closes the connections of a disk's clients. [`DiskQueueHost::detach_disk`] does the same for
    /// virtqueues.
    pub fn detach_clients(&self, disk: DiskId) {
        self.detach_queues(disk, QueueSelection::Clients);
    }

    /// Returns the oldest notice that was not returned yet; `None` if there is none.
    #[must_use]
    pub fn poll_notice(&self) -> Option<PlaneNotice> {
        self.0.notices.poll()
    }

    pub(crate) fn worker_channel(&self, id: WorkerId) -> Option<Arc<WorkerChannel>> {
        lock(&self.0.channels).get(&id).map(Arc::clone)
    }

    pub(crate) fn disk_record(&self, disk: DiskId) -> Result<Arc<DiskRecord>, PlaneError> {
        lock(&self.0.disks).get(&disk).map(Arc::clone).ok_or(PlaneError::NoSuchDisk)
    }

    /// Returns the worker with the fewest disks, except those in `excluded`; `None` if no other
    /// worker runs. Workers that have replied to all commands in time are preferred.
    fn least_loaded_worker(&self, excluded: &[WorkerId]) -> Option<WorkerId> {
        let mut disks: BTreeMap<WorkerId, usize> =
            lock(&self.0.channels).keys().map(|id| (*id, 0)).collect();
        disks.retain(|id, _| !excluded.contains(id));
        let records: Vec<Arc<DiskRecord>> = lock(&self.0.disks).values().map(Arc::clone).collect();
        for record in records {
            // A disk that is being moved is not counted.
            let Ok(owner) = record.owner.try_lock() else { continue };
            if let Some(count) = owner.and_then(|owner| disks.get_mut(&owner)) {
                *count += 1;
            }
        }
        let is_late = |id: WorkerId| {
            self.worker_channel(id).is_some_and(|worker_channel| worker_channel.has_overdue_reply())
        };
        disks.into_iter().min_by_key(|(id, count)| (is_late(*id), *count, *id)).map(|(id, _)| id)
    }

    pub(crate) fn attach_queue(
        &self,
        disk: DiskId,
        key: QueueKey,
        queue: Box<dyn DiskQueue>,
    ) -> Result<(), PlaneError> {
        let record = self.disk_record(disk)?;
        let owner = match key {
            QueueKey::Client(_) | QueueKey::EmulatedDisk(_) => {
                record.lock_owner_within(ATTACH_WAIT_MAX).ok_or(PlaneError::Stalled)?
            }
            // A VM cannot use the disk without this virtqueue.
            QueueKey::Ring(_) | QueueKey::Mirror => lock(&record.owner),
        };
        let worker_channel =
            owner.and_then(|owner| self.worker_channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        worker_channel.send(Command::AddQueue(disk, key, queue));
        Ok(())
    }
}

impl DiskQueueHost for StoragePlane {
    fn attach(&self, disk: DiskId, index: u16, queue: Box<dyn DiskQueue>) {
        if let Err(error) = self.attach_queue(disk, QueueKey::Ring(index), queue) {
            tracing::warn!(?disk, index, %error, "a ring was attached too late");
        }
    }

    fn detach(&self, disk: DiskId, index: u16) {
        self.detach_queues(disk, QueueSelection::One(QueueKey::Ring(index)));
    }

    fn begin_detach(&self, disk: DiskId, index: u16) -> Box<dyn DetachingQueue> {
        self.begin_detach_queues(disk, QueueSelection::One(QueueKey::Ring(index)))
    }

    fn detach_disk(&self, disk: DiskId) {
        self.detach_queues(disk, QueueSelection::Rings);
    }
}
