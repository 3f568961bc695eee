//! Processors with disks: the storage plane on processors' threads, without a daemon.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use suimon_ports::{DetachingQueue, DiskQueue, DiskQueueHost, FileIo, FileIoSource, Placement};
use suimon_quantity::{DiskId, ProcessorId, StoreId};
use suimon_storage::{DiskSpec, DiskTally, StoragePlane, images};
use suimon_storage_qos::{
    Assignment, Limits, PolicyId, PolicyKind, PolicySpec, Proposal, StoreSpec,
};
use suimon_switch::DataPlane;
use suimon_uring::{UringFileIo, UringSource};
use suimon_wait::ProcessorThreads;

/// The store of disks with limits.
const STORE: StoreId = StoreId(0);

/// Threads of processors with disks, in most cases one. Dropping it stops them; what clients
/// have asked for then is not answered.
pub struct DiskProcessor {
    plane: DataPlane,
    storage: StoragePlane,
    disks: AtomicU32,
}

/// A disk of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedDisk(DiskId);

impl OpenedDisk {
    /// What it is called by devices.
    #[must_use]
    pub const fn id(self) -> DiskId {
        self.0
    }
}

impl DiskProcessor {
    /// Starts it.
    ///
    /// # Errors
    /// The system has no io_uring, or no thread.
    pub fn start(placement: Placement) -> Result<Self> {
        Self::start_on(placement, Box::new(UringFileIo::new(1024, 64).context("io_uring")?))
    }

    /// The same, with files of another kind.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start_on(placement: Placement, io: Box<dyn FileIo>) -> Result<Self> {
        Self::start_with(&[placement], Arc::new(OneProcessorsIo(Mutex::new(Some(io)))))
    }

    /// Starts several, each where the kernel lets it run and with an io_uring of its own.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start_several(processors: usize) -> Result<Self> {
        Self::start_with(&vec![Placement::Floating; processors], Arc::new(UringSource))
    }

    fn start_with(placements: &[Placement], io: Arc<dyn FileIoSource>) -> Result<Self> {
        let storage = StoragePlane::new(io);
        let works = Arc::new(storage.clone());
        let plane = DataPlane::start_with(placements, Arc::new(ProcessorThreads), works)?;
        storage.add_store(STORE, StoreSpec::default())?;
        Ok(Self { plane, storage, disks: AtomicU32::new(1) })
    }

    /// Takes a disk, which is held to limits if there are any.
    ///
    /// # Errors
    /// Its file cannot be used, or the limits are refused.
    pub fn add_disk(&self, spec: DiskSpec, limits: Option<Limits>) -> Result<OpenedDisk> {
        let disk = OpenedDisk(DiskId(self.disks.fetch_add(1, Ordering::Relaxed)));
        if let Some(limits) = limits {
            self.set_limits(disk, limits)?;
        }
        self.storage.add_disk(disk.0, spec, limits.map(|_| STORE))?;
        Ok(disk)
    }

    /// Holds a disk that came with limits to others.
    ///
    /// # Errors
    /// They are refused.
    pub fn set_limits(&self, disk: OpenedDisk, limits: Limits) -> Result<()> {
        let proposal = Proposal::Disk(disk.0, Assignment::Own(limits));
        Ok(self.storage.propose(STORE, &[proposal], true)?)
    }

    /// Has as many processors as this from now on; disks of those that go move.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn set_processors(&self, processors: usize) -> Result<()> {
        Ok(self.plane.set_processors(&vec![Placement::Floating; processors])?)
    }

    /// Which processor serves a disk.
    #[must_use]
    pub fn processor_of(&self, disk: OpenedDisk) -> Option<ProcessorId> {
        self.storage.disks().iter().find(|view| view.disk == disk.0).map(|view| view.processor)
    }

    /// Holds disks that came with limits to these together.
    ///
    /// # Errors
    /// They are refused.
    pub fn share_limits(&self, disks: &[OpenedDisk], limits: Limits) -> Result<()> {
        let (policy, kind) = (PolicyId(0), PolicyKind::Aggregated);
        let mut proposals = vec![Proposal::Policy(policy, PolicySpec { kind, limits })];
        let of_disk = |disk: &OpenedDisk| Proposal::Disk(disk.0, Assignment::Policy(policy));
        proposals.extend(disks.iter().map(of_disk));
        Ok(self.storage.propose(STORE, &proposals, true)?)
    }

    /// Gives a disk a client's connection.
    ///
    /// # Errors
    /// There is no such disk.
    pub fn add_queue(&self, disk: OpenedDisk, queue: Box<dyn DiskQueue>) -> Result<()> {
        self.storage.attach_client(disk.0, queue)?;
        Ok(())
    }

    /// What a disk has done.
    ///
    /// # Errors
    /// There is no such disk.
    pub fn tally(&self, disk: OpenedDisk) -> Result<DiskTally> {
        let views = self.storage.disks();
        let view = views.into_iter().find(|view| view.disk == disk.0);
        Ok(view.context("there is no such disk")?.tally)
    }

    /// What serves the disks.
    #[must_use]
    pub const fn storage(&self) -> &StoragePlane {
        &self.storage
    }

    /// Ends the connections of a disk's clients.
    pub fn detach_clients(&self, disk: OpenedDisk) {
        self.storage.detach_clients(disk.0);
    }

    /// Closes a disk and its connections; everything is durable then.
    ///
    /// # Errors
    /// Its file could not be written, or the processor is gone.
    pub fn close_disk(&self, disk: OpenedDisk) -> Result<()> {
        Ok(images::close(self.storage.take_disk(disk.0)?, "the disk")?)
    }

    /// Tells on stdout what there was to tell since the last time.
    pub fn print_notices(&self) {
        while let Some(notice) = self.storage.poll_notice() {
            println!("{notice:?}");
        }
    }
}

impl DiskQueueHost for DiskProcessor {
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

impl Drop for DiskProcessor {
    fn drop(&mut self) {
        self.plane.stop();
        self.print_notices();
    }
}

/// The I/O that was made for the one processor.
struct OneProcessorsIo(Mutex<Option<Box<dyn FileIo>>>);

impl FileIoSource for OneProcessorsIo {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        let io = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        io.ok_or_else(|| io::Error::other("there is one processor"))
    }
}
