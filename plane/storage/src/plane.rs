//! Control handle of all disks: which worker has which disk, and the channels to the workers.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use suimon_ports::{
    DetachingQueue, DiskQueue, DiskQueueHost, FileIoSource, Waker, WorkerTask, WorkerTasks,
};
use suimon_quantity::{DiskId, StoreId, WorkerId};
use suimon_recording::Sink;
use suimon_storage_qos::Refusal;
use thiserror::Error;

use crate::command::{Command, DetachedDisk, Mirrored};
use crate::disk::{DiskLocation, DiskSpec};
use crate::full::FullPolicy;
use crate::images;
use crate::plane_mirror::MirrorRecord;
use crate::plane_notices::{NoticeSender, PlaneNotice};
use crate::plane_stores::{Mailbox, PlaneStore};
use crate::queue_key::{QueueKey, Which};
use crate::resident::StorageWorker;

/// Number of checks whether a retiring worker has returned its grants, and the time between two
/// checks.
const SETTLES_MAX: usize = 100;
const SETTLES_EVERY: Duration = Duration::from_millis(10);

/// Longest time for which the attachment of a client waits while its disk is moved, suspended or
/// closed, and the time between two attempts.
pub(crate) const ATTACH_MAX: Duration = Duration::from_secs(10);
const ATTACH_EVERY: Duration = Duration::from_millis(5);

/// Reason why an operation on a disk failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaneError {
    /// No disk with this identifier is in service.
    #[error("the disk is not in service")]
    NoSuchDisk,
    /// A disk with this identifier is in service.
    #[error("the disk is already in service")]
    InService,
    /// The store does not exist, or has no limits for the disk.
    #[error("the store does not exist, or has no limits for the disk")]
    NoSuchStore,
    /// No worker runs that could serve the disk.
    #[error("no worker is running that could serve the disk")]
    NoWorker,
    /// The system refused to create the I/O of a worker.
    #[error(
        "a worker cannot create an io_uring: {0}; check `kernel.io_uring_disabled` and \
         RLIMIT_NOFILE"
    )]
    Io(io::Error),
    /// The worker's I/O refused a file of the disk.
    #[error("a worker cannot use the disk's file: {0}")]
    File(io::Error),
    /// Another operation has suspended the disk.
    #[error("the disk is suspended while a job works on its files; retry when it has ended")]
    Suspended,
    /// Another operation is copying the disk.
    #[error("the disk is being copied; wait until that has ended, or cancel it")]
    Mirrored,
    /// The disk's store has no free slot for a copy of the disk.
    #[error("the store of the disk has no free slot for the copy: {0}")]
    NoRoom(Refusal),
    /// Changes of the image could not be written. The disk remains in service, and a notice states
    /// the reason.
    #[error("the disk's file could not be written, so the disk stays in service unchanged")]
    NotDurable,
    /// A flush of the disk has failed. The disk remains in service for reads.
    #[error(
        "a flush of the disk has failed, so that its writes fail ({0}); repair the store and reopen the disk (suimon disk reopen)"
    )]
    FlushFailed(String),
    /// The store does not complete the disk's requests. The operation is carried out when it does.
    #[error("the store does not complete the disk's requests; its file is in use until it does")]
    Stalled,
    /// The disk could be given neither to another worker nor back. It is out of service.
    #[error("the disk could not be moved and is out of service: {0}")]
    Lost(io::Error),
}

/// Handle of all disks of a host that are in service. Clones are handles of the same disks.
///
/// Workers are added and removed by [`WorkerTasks`], queues of disks by [`DiskQueueHost`] and
/// [`StoragePlane::attach_client`].
#[derive(Clone)]
pub struct StoragePlane(pub(crate) Arc<Inner>);

/// Lock order: a disk's lock, the lock of the stores, then the others. Workers take no lock. A
/// thread that waits for a worker holds the lock of a disk or of the stores.
pub(crate) struct Inner {
    io: Arc<dyn FileIoSource>,
    /// Sink for the recording of scheduler decisions, if they are recorded.
    recording: Option<Arc<dyn Sink>>,
    pub(crate) stores: Mutex<BTreeMap<StoreId, PlaneStore>>,
    pub(crate) channels: Mutex<BTreeMap<WorkerId, Arc<WorkerChannel>>>,
    disks: Mutex<BTreeMap<DiskId, Arc<Record>>>,
    told: Arc<NoticeSender>,
    clients: AtomicU64,
}

/// Channel for commands to one worker.
pub(crate) struct WorkerChannel {
    commands: Sender<Command>,
    waker: Arc<dyn Waker>,
    mailbox: Arc<Mailbox>,
    has_io: AtomicBool,
}

/// Disk with its worker; `owner` is `None` after the disk was taken out of service.
pub(crate) struct Record {
    pub(crate) owner: Mutex<Option<WorkerId>>,
    /// Store on which the disk has limits.
    pub(crate) store: Option<StoreId>,
    /// True while the disk is suspended: its worker has none of its files. Changed only with
    /// `owner` locked.
    pub(crate) is_suspended: AtomicBool,
    /// State of a copy of the disk. Changed only with `owner` locked.
    pub(crate) mirror: Mutex<MirrorRecord>,
    /// True if detaching queues does not wait for a stalled disk any more.
    pub(crate) is_ending: AtomicBool,
}

impl WorkerChannel {
    pub(crate) fn send(&self, command: Command) {
        // An ended worker is detected by the next command with a reply.
        let _ = self.commands.send(command);
        self.waker.wake();
    }

    pub(crate) fn call<T>(
        &self,
        command: impl FnOnce(Sender<T>) -> Command,
    ) -> Result<T, PlaneError> {
        let (reply, answer) = channel();
        self.send(command(reply));
        answer.recv().map_err(|_| PlaneError::NoWorker)
    }
}

impl Record {
    /// Locks `owner`; returns `None` if another thread holds it for longer than `limit`.
    fn owner_within(&self, limit: Duration) -> Option<MutexGuard<'_, Option<WorkerId>>> {
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

impl StoragePlane {
    /// Creates a plane without disks and workers.
    #[must_use]
    pub fn new(io: Arc<dyn FileIoSource>) -> Self {
        Self::recorded(io, None)
    }

    /// Creates a plane that records inputs and decisions of the stores' schedulers.
    #[must_use]
    pub fn recorded(io: Arc<dyn FileIoSource>, recording: Option<Arc<dyn Sink>>) -> Self {
        Self(Arc::new(Inner {
            io,
            recording,
            stores: Mutex::default(),
            channels: Mutex::default(),
            disks: Mutex::default(),
            told: Arc::new(NoticeSender::default()),
            clients: AtomicU64::new(0),
        }))
    }

    /// Takes a disk into service on the worker with the fewest disks. The disk has the limits
    /// proposed for it on its store, or none without a store. A disk without images is suspended:
    /// its requests wait until [`StoragePlane::resume_disk`] provides images.
    ///
    /// # Errors
    /// The disk is in service already, no worker runs, its files cannot be used, or its store has
    /// no limits for it.
    pub fn add_disk(
        &self,
        disk: DiskId,
        spec: DiskSpec,
        store: Option<StoreId>,
    ) -> Result<(), PlaneError> {
        let place = match store {
            None => None,
            Some(store) => {
                let slot = self.slot(store, disk).ok_or(PlaneError::NoSuchStore)?;
                Some(DiskLocation { store, slot })
            }
        };
        let record = Arc::new(Record {
            owner: Mutex::new(None),
            store,
            is_suspended: AtomicBool::new(spec.layers.is_empty()),
            mirror: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let mut owner = lock(&record.owner);
        match lock(&self.0.disks).entry(disk) {
            std::collections::btree_map::Entry::Occupied(_) => return Err(PlaneError::InService),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Arc::clone(&record));
            }
        }
        let added = self.calmest(&[]).ok_or(PlaneError::NoWorker).and_then(|to| {
            let mirror = Mirrored::default();
            let full = FullPolicy::default();
            self.give(
                to,
                disk,
                DetachedDisk { spec, full, index: place, mirror, queues: Vec::new() },
            )
            .map_err(|(error, _)| error)?;
            Ok(to)
        });
        match added {
            Ok(to) => {
                *owner = Some(to);
                Ok(())
            }
            Err(error) => {
                lock(&self.0.disks).remove(&disk);
                Err(error)
            }
        }
    }

    /// Takes a disk out of service: its queues are closed when the requests taken from them have
    /// completed, and its changes are committed. The caller must close its own image, the first one
    /// ([`Image::close`](suimon_image::Image::close)). A suspended disk has no images.
    ///
    /// # Errors
    /// The disk is not in service, or its store does not complete requests; then the disk is closed
    /// when it does.
    pub fn take_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        let record = self.record(disk)?;
        let mut owner = lock(&record.owner);
        let from = owner.take().ok_or(PlaneError::NoSuchDisk)?;
        lock(&self.0.disks).remove(&disk);
        self.take(from, disk).map(|taken| taken.spec)
    }

    /// Announces that the disk will be taken out of service. From now on, detaching its queues does
    /// not wait for a stalled store.
    pub fn begin_end(&self, disk: DiskId) {
        if let Ok(record) = self.record(disk) {
            record.is_ending.store(true, Ordering::Relaxed);
        }
    }

    /// Moves a disk with all its queues to another worker. Clients see a pause.
    ///
    /// # Errors
    /// The disk or the worker does not exist, the disk is suspended, or its files cannot be used
    /// there. The disk then remains on its worker.
    pub fn move_disk(&self, disk: DiskId, to: WorkerId) -> Result<(), PlaneError> {
        let record = self.record(disk)?;
        let mut owner = lock(&record.owner);
        let from = owner.ok_or(PlaneError::NoSuchDisk)?;
        if from == to {
            return Ok(());
        }
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        self.channel(to).ok_or(PlaneError::NoWorker)?;
        let taken = self.take(from, disk).inspect_err(|_| {
            *owner = None;
            lock(&self.0.disks).remove(&disk);
        })?;
        let Err((error, taken)) = self.give(to, disk, taken) else {
            *owner = Some(to);
            return Ok(());
        };
        let back = taken.map(|taken| self.give(from, disk, *taken));
        if !matches!(back, Some(Ok(()))) {
            *owner = None;
            lock(&self.0.disks).remove(&disk);
            return Err(PlaneError::Lost(io::Error::other(error.to_string())));
        }
        Err(error)
    }

    /// Attaches a client's connection to a disk. The connection ends by itself. Returns its number
    /// among the disk's clients.
    ///
    /// # Errors
    /// The disk does not exist, or another operation has held it for [`ATTACH_MAX`], because its
    /// store does not complete requests.
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
    /// full, its requests fail at once, and QEMU pauses the VM.
    ///
    /// # Errors
    /// The disk does not exist.
    pub fn attach_vm_client(
        &self,
        disk: DiskId,
        queue: Box<dyn DiskQueue>,
    ) -> Result<(), PlaneError> {
        let number = self.0.clients.fetch_add(1, Ordering::Relaxed);
        self.attach_queue(disk, QueueKey::EmulatedDisk(number), queue)
    }

    /// Sets the waiting times of a disk's requests while its store is full. They apply to queued
    /// requests, too.
    ///
    /// # Errors
    /// The disk is not in service.
    pub fn set_full_policy(&self, disk: DiskId, policy: FullPolicy) -> Result<(), PlaneError> {
        let record = self.record(disk)?;
        let owner = lock(&record.owner);
        let worker_channel =
            owner.and_then(|owner| self.channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        let (reply, answer) = channel();
        worker_channel.send(Command::Full(disk, policy, reply));
        // The sender is dropped when the policy applies.
        let _ = answer.recv();
        Ok(())
    }

    /// Closes the connections of a disk's clients, as [`DiskQueueHost::detach_disk`] closes its
    /// rings.
    pub fn detach_clients(&self, disk: DiskId) {
        self.detach_queues(disk, Which::Clients);
    }

    /// Returns the next notice, oldest first.
    #[must_use]
    pub fn poll_notice(&self) -> Option<PlaneNotice> {
        self.0.told.poll()
    }

    pub(crate) fn channel(&self, id: WorkerId) -> Option<Arc<WorkerChannel>> {
        lock(&self.0.channels).get(&id).map(Arc::clone)
    }

    pub(crate) fn record(&self, disk: DiskId) -> Result<Arc<Record>, PlaneError> {
        lock(&self.0.disks).get(&disk).map(Arc::clone).ok_or(PlaneError::NoSuchDisk)
    }

    /// Returns the worker with the fewest disks, except for the workers in `besides`.
    fn calmest(&self, besides: &[WorkerId]) -> Option<WorkerId> {
        let mut disks: BTreeMap<WorkerId, usize> =
            lock(&self.0.channels).keys().map(|id| (*id, 0)).collect();
        disks.retain(|id, _| !besides.contains(id));
        let records: Vec<Arc<Record>> = lock(&self.0.disks).values().map(Arc::clone).collect();
        for record in records {
            // A disk that is being moved is not counted.
            let Ok(owner) = record.owner.try_lock() else { continue };
            if let Some(count) = owner.and_then(|owner| disks.get_mut(&owner)) {
                *count += 1;
            }
        }
        disks.into_iter().min_by_key(|(id, count)| (*count, *id)).map(|(id, _)| id)
    }

    /// Gives a disk to a worker. Returns the disk with the error if possible.
    fn give(
        &self,
        to: WorkerId,
        disk: DiskId,
        taken: DetachedDisk,
    ) -> Result<(), (PlaneError, Option<Box<DetachedDisk>>)> {
        let back = |error: PlaneError, taken: DetachedDisk| (error, Some(Box::new(taken)));
        let Some(worker_channel) = self.channel(to) else {
            return Err(back(PlaneError::NoWorker, taken));
        };
        let store = taken.index.map(|place| place.store);
        let joined =
            self.equip(&worker_channel).and_then(|()| store.map_or(Ok(()), |of| self.join(of, to)));
        if let Err(error) = joined {
            return Err(back(error, taken));
        }
        let answer = worker_channel.call(|reply| Command::AddDisk { disk, taken, reply });
        let given = match answer {
            Ok(Ok(())) => Ok(()),
            Ok(Err(not_taken)) => Err((PlaneError::File(not_taken.error), not_taken.taken)),
            Err(error) => Err((error, None)),
        };
        if let (Some(store), Err(_)) = (store, &given) {
            self.leave(store, to);
        }
        given
    }

    /// Creates the I/O of a worker unless it has one.
    fn equip(&self, way: &WorkerChannel) -> Result<(), PlaneError> {
        if way.has_io.load(Ordering::Relaxed) {
            return Ok(());
        }
        let io = self.0.io.open().map_err(PlaneError::Io)?;
        way.call(|reply| Command::SetIo(io, reply))?.map_err(PlaneError::Io)?;
        way.has_io.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Takes a disk with its queues from a worker.
    fn take(&self, from: WorkerId, disk: DiskId) -> Result<DetachedDisk, PlaneError> {
        let worker_channel = self.channel(from).ok_or(PlaneError::NoWorker)?;
        let (reply, answer) = channel();
        worker_channel.send(Command::DetachDisk(disk, reply));
        let taken = match self.wait_for_disk(disk, &answer) {
            Ok(taken) => taken?,
            Err(error) => {
                self.close_later(disk, from, answer);
                return Err(error);
            }
        };
        if let Some(place) = taken.index {
            self.leave(place.store, from);
        }
        Ok(taken)
    }

    /// Sends the current set of workers to each worker.
    fn introduce(&self) {
        let worker_channels = lock(&self.0.channels);
        let peers = worker_channels
            .iter()
            .map(|(id, worker_channel)| (*id, Arc::clone(&worker_channel.mailbox)))
            .collect();
        let peers = Arc::new(peers);
        for worker_channel in worker_channels.values() {
            worker_channel.send(Command::Peers(Arc::clone(&peers)));
        }
    }

    pub(crate) fn attach_queue(
        &self,
        disk: DiskId,
        key: QueueKey,
        queue: Box<dyn DiskQueue>,
    ) -> Result<(), PlaneError> {
        let record = self.record(disk)?;
        let owner = match key {
            QueueKey::Client(_) | QueueKey::EmulatedDisk(_) => {
                record.owner_within(ATTACH_MAX).ok_or(PlaneError::Stalled)?
            }
            // A VM cannot use the disk without its ring.
            QueueKey::Ring(_) | QueueKey::Mirror => lock(&record.owner),
        };
        let worker_channel =
            owner.and_then(|owner| self.channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        worker_channel.send(Command::AddQueue(disk, key, queue));
        Ok(())
    }

    /// Blocks until a worker has returned the grants of all stores, for a bounded time.
    fn wait_for_settled(&self, processor: WorkerId) {
        for _ in 0..SETTLES_MAX {
            let stores = self.stores();
            let has_loans = stores.iter().any(|view| view.worker == processor);
            if !has_loans {
                return;
            }
            std::thread::sleep(SETTLES_EVERY);
        }
        tracing::warn!(%processor, "a worker ended before it returned a lent reservation");
    }

    /// Takes a disk out of service that could not be moved off a retiring worker, so that it can be
    /// opened again, and emits a notice.
    fn give_up(&self, disk: DiskId, reason: &PlaneError) {
        match self.take_disk(disk) {
            Ok(spec) => {
                if let Err(error) = images::close(spec, "its own image") {
                    tracing::warn!(
                        ?disk,
                        %error,
                        "cannot close a disk cleanly; its state is as after a crash"
                    );
                }
            }
            // The disk was lost during the move.
            Err(PlaneError::NoSuchDisk) => {}
            Err(error) => tracing::warn!(?disk, %error, "the state of a disk is as after a crash"),
        }
        self.0.told.emit(PlaneNotice::DiskLost { disk, reason: reason.to_string() });
    }

    fn disks_of(&self, processor: WorkerId) -> Vec<DiskId> {
        let records: Vec<(DiskId, Arc<Record>)> =
            lock(&self.0.disks).iter().map(|(id, of)| (*id, Arc::clone(of))).collect();
        let of_it = |(_, record): &(DiskId, Arc<Record>)| *lock(&record.owner) == Some(processor);
        records.into_iter().filter(of_it).map(|(id, _)| id).collect()
    }
}

impl DiskQueueHost for StoragePlane {
    fn attach(&self, disk: DiskId, index: u16, queue: Box<dyn DiskQueue>) {
        if let Err(error) = self.attach_queue(disk, QueueKey::Ring(index), queue) {
            tracing::warn!(?disk, index, %error, "a ring was attached too late");
        }
    }

    fn detach(&self, disk: DiskId, index: u16) {
        self.detach_queues(disk, Which::One(QueueKey::Ring(index)));
    }

    fn begin_detach(&self, disk: DiskId, index: u16) -> Box<dyn DetachingQueue> {
        self.begin_detach_queues(disk, Which::One(QueueKey::Ring(index)))
    }

    fn detach_disk(&self, disk: DiskId) {
        self.detach_queues(disk, Which::Rings);
    }
}

impl WorkerTasks for StoragePlane {
    fn create(&self, processor: WorkerId, waker: Arc<dyn Waker>) -> Box<dyn WorkerTask> {
        let (commands, receiver): (_, Receiver<Command>) = channel();
        let mailbox = Arc::new(Mailbox::new(Arc::clone(&waker)));
        let (told, mail) = (Arc::clone(&self.0.told), Arc::clone(&mailbox));
        let recording = self.0.recording.clone();
        let resident = StorageWorker::new(processor, receiver, told, mail, recording);
        let worker_channel =
            WorkerChannel { commands, waker, mailbox, has_io: AtomicBool::new(false) };
        lock(&self.0.channels).insert(processor, Arc::new(worker_channel));
        self.introduce();
        Box::new(resident)
    }

    fn retire(&self, processors: &[WorkerId]) {
        for worker in processors {
            for disk in self.disks_of(*worker) {
                let moved = self
                    .calmest(processors)
                    .ok_or(PlaneError::NoWorker)
                    .and_then(|to| self.move_disk(disk, to));
                if let Err(error) = moved {
                    self.give_up(disk, &error);
                }
            }
        }
        for worker in processors {
            self.wait_for_settled(*worker);
            lock(&self.0.channels).remove(worker);
        }
        self.introduce();
    }

    fn handle_workers_ended(&self) {
        lock(&self.0.channels).clear();
    }
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
