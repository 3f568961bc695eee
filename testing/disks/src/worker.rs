//! Workers with disks: the storage plane on worker threads, without the daemon.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use suimon_image_files::LayerStack;
use suimon_ports::{CpuAffinity, DetachingQueue, DiskQueue, DiskQueueHost, FileIo, FileIoFactory};
use suimon_quantity::{DiskId, StoreId, WorkerId};
use suimon_storage::StoragePlane;
use suimon_storage_engine::DiskIoCounters;
use suimon_storage_qos::{
    Limits, LimitsSource, PolicyId, PolicyKind, PolicySpec, Proposal, StoreSpec,
};
use suimon_switch::DataPlane;
use suimon_uring::{UringFileIo, UringSource};
use suimon_wait::WorkerThreads;

/// Store of the disks with limits.
const STORE: StoreId = StoreId(0);

/// Worker threads with disks, usually one. Dropping it stops the threads; outstanding requests of
/// clients are not completed.
pub struct DiskWorker {
    plane: DataPlane,
    storage: StoragePlane,
    disks: AtomicU32,
}

/// ID of an open disk of a [`DiskWorker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedDisk(DiskId);

impl OpenedDisk {
    /// Returns the ID that devices use for the disk.
    #[must_use]
    pub const fn id(self) -> DiskId {
        self.0
    }
}

impl DiskWorker {
    /// Starts one worker with an io_uring.
    ///
    /// # Errors
    /// The system does not support io_uring, or cannot start a thread.
    pub fn start(placement: CpuAffinity) -> Result<Self> {
        Self::start_on(placement, Box::new(UringFileIo::new(1024, 64).context("io_uring")?))
    }

    /// Starts one worker with the given I/O backend.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start_on(placement: CpuAffinity, io: Box<dyn FileIo>) -> Result<Self> {
        Self::start_with(&[placement], Arc::new(SingleWorkerIo(Mutex::new(Some(io)))))
    }

    /// Starts several workers without CPU affinity, each with its own io_uring.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start_several(workers: usize) -> Result<Self> {
        Self::start_with(&vec![CpuAffinity::Floating; workers], Arc::new(UringSource))
    }

    fn start_with(placements: &[CpuAffinity], io: Arc<dyn FileIoFactory>) -> Result<Self> {
        let storage = StoragePlane::new(io);
        let storage_tasks = Arc::new(storage.clone());
        let plane =
            DataPlane::start_with_tasks(placements, Arc::new(WorkerThreads), storage_tasks)?;
        storage.add_store(STORE, StoreSpec::default())?;
        Ok(Self { plane, storage, disks: AtomicU32::new(1) })
    }

    /// Opens a disk, with Storage QoS if `limits` is given.
    ///
    /// # Errors
    /// The file cannot be used, or the limits are rejected.
    pub fn add_disk(&self, spec: LayerStack, limits: Option<Limits>) -> Result<OpenedDisk> {
        let disk = OpenedDisk(DiskId(self.disks.fetch_add(1, Ordering::Relaxed)));
        if let Some(limits) = limits {
            self.set_limits(disk, limits)?;
        }
        let added = self.storage.add_disk(disk.0, spec, limits.map(|_| STORE));
        added.map_err(|refused| refused.error)?;
        Ok(disk)
    }

    /// Changes the limits of a disk that was opened with limits.
    ///
    /// # Errors
    /// The limits are rejected.
    pub fn set_limits(&self, disk: OpenedDisk, limits: Limits) -> Result<()> {
        let proposal = Proposal::SetDisk(disk.0, LimitsSource::Own(limits));
        Ok(self.storage.apply_proposals(STORE, &[proposal], true)?)
    }

    /// Changes the number of workers. Disks of stopped workers move to others.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn set_workers(&self, processors: usize) -> Result<()> {
        Ok(self.plane.set_workers(&vec![CpuAffinity::Floating; processors])?)
    }

    /// Returns the worker that serves a disk.
    #[must_use]
    pub fn worker_of(&self, disk: OpenedDisk) -> Option<WorkerId> {
        self.storage.disks().iter().find(|view| view.disk == disk.0).map(|view| view.worker)
    }

    /// Applies limits to the total of several disks that were opened with limits.
    ///
    /// # Errors
    /// The limits are rejected.
    pub fn share_limits(&self, disks: &[OpenedDisk], limits: Limits) -> Result<()> {
        let (policy, kind) = (PolicyId(0), PolicyKind::Aggregated);
        let mut proposals = vec![Proposal::SetPolicy(policy, PolicySpec { kind, limits })];
        let of_disk = |disk: &OpenedDisk| Proposal::SetDisk(disk.0, LimitsSource::Policy(policy));
        proposals.extend(disks.iter().map(of_disk));
        Ok(self.storage.apply_proposals(STORE, &proposals, true)?)
    }

    /// Attaches the queue of a client connection to a disk.
    ///
    /// # Errors
    /// The disk does not exist.
    pub fn add_queue(&self, disk: OpenedDisk, queue: Box<dyn DiskQueue>) -> Result<()> {
        self.storage.attach_client(disk.0, queue)?;
        Ok(())
    }

    /// Returns the request counters of a disk.
    ///
    /// # Errors
    /// The disk does not exist.
    pub fn counters(&self, disk: OpenedDisk) -> Result<DiskIoCounters> {
        let views = self.storage.disks();
        let view = views.into_iter().find(|view| view.disk == disk.0);
        Ok(view.context("there is no such disk")?.counters)
    }

    /// Returns the storage plane.
    #[must_use]
    pub const fn storage(&self) -> &StoragePlane {
        &self.storage
    }

    /// Disconnects the clients of a disk.
    pub fn detach_clients(&self, disk: OpenedDisk) {
        self.storage.detach_clients(disk.0);
    }

    /// Closes a disk and its connections. All completed writes are durable when this returns.
    ///
    /// # Errors
    /// A file could not be written, or the worker has stopped.
    pub fn close_disk(&self, disk: OpenedDisk) -> Result<()> {
        Ok(suimon_image_files::close(self.storage.remove_disk(disk.0)?, "the disk")?)
    }

    /// Prints the notices since the last call to standard output.
    pub fn print_notices(&self) {
        while let Some(notice) = self.storage.poll_notice() {
            println!("{notice:?}");
        }
    }
}

impl DiskQueueHost for DiskWorker {
    fn attach(&self, disk: DiskId, index: u16, queue: Box<dyn DiskQueue>) {
        self.storage.attach(disk, index, queue);
    }

    fn detach(&self, disk: DiskId, index: u16) {
        self.storage.detach(disk, index);
    }

    fn begin_detach(&self, disk: DiskId, index: u16) -> Box<dyn DetachingQueue> {
        self.storage.begin_detach(disk, index)
    }

    fn detach_disk(&self, disk: DiskId) {
        self.storage.detach_disk(disk);
    }
}

impl Drop for DiskWorker {
    fn drop(&mut self) {
        self.plane.stop();
        self.print_notices();
    }
}

/// I/O backend of a single worker, which takes it at its start.
struct SingleWorkerIo(Mutex<Option<Box<dyn FileIo>>>);

impl FileIoFactory for SingleWorkerIo {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        let io = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        io.ok_or_else(|| io::Error::other("there is one processor"))
    }
}
