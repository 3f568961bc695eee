//! Errors of operations on disks.

use std::{fmt, io};

use suimon_quantity::WorkerId;
use suimon_storage_qos::AdmissionError;
use thiserror::Error;

use suimon_image_files::LayerStack;

/// Disk that could not be taken into service.
pub struct AddDiskError {
    /// Error that prevented the operation.
    pub error: PlaneError,
    /// Images of the disk, which the caller must close. `None` if a worker that does not respond
    /// has them: the plane closes them when the worker proceeds.
    pub spec: Option<LayerStack>,
}

impl fmt::Debug for AddDiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for AddDiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// Reason why an operation on a disk failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaneError {
    /// No disk with this identifier is in service.
    #[error("the disk is not in service; `suimon disk list` shows the reason")]
    NoSuchDisk,
    /// A disk with this identifier is in service already.
    #[error("the disk is already in service")]
    AlreadyInService,
    /// The store does not exist, or has no limits for the disk.
    #[error(
        "the scheduler of the disk's store is missing, or has no limits for the disk; `suimon \
         store list` shows the state of the store"
    )]
    NoSuchStore,
    /// No worker is running to serve the disk.
    #[error("no worker is running that can serve the disk; `suimon worker list` lists the workers")]
    NoWorker,
    /// The worker that uses the disk's store alone does not respond, so that no other worker can
    /// use the store.
    #[error(
        "worker {} uses the store alone and does not respond; retry when it proceeds (event 5007)",
        .0.0
    )]
    WorkerBlocked(WorkerId),
    /// The worker does not respond. The operation was not executed, unless its description says so.
    #[error(
        "worker {} does not respond; retry when it proceeds (event 5007), or restart the daemon",
        .0.0
    )]
    NoResponse(WorkerId),
    /// The system refused to create the I/O of a worker.
    #[error(
        "a worker cannot create an io_uring: {0}; check `kernel.io_uring_disabled` and \
         RLIMIT_NOFILE"
    )]
    CreateIo(io::Error),
    /// The worker's I/O refused a file of the disk.
    #[error("a worker cannot use the disk's file for I/O: {0}")]
    FileRefused(io::Error),
    /// The disk is already suspended by another operation.
    #[error("the disk is suspended while a job works on its files; retry when it has ended")]
    Suspended,
    /// The disk is being copied by another operation.
    #[error(
        "the disk is being copied to another node; wait until the migration has ended, or cancel \
         it (`suimon operation list`)"
    )]
    MirrorInProgress,
    /// The disk's store has no free slot for a copy of the disk.
    #[error("the store of the disk has no free slot for the copy: {0}")]
    NoFreeSlot(AdmissionError),
    /// Changes of the image could not be committed. The disk remains in service, and a notice
    /// states the reason.
    #[error("the disk's file could not be written, so the disk stays in service unchanged")]
    CommitFailed,
    /// A flush of the disk has failed. The disk remains in service for reads.
    #[error(
        "a flush of the disk has failed, so that its writes fail ({0}); repair the store and reopen the disk (suimon disk reopen)"
    )]
    FlushFailed(String),
    /// The store does not complete the disk's requests. The operation is executed when it does.
    #[error(
        "the store does not complete requests of the disk, whose file stays in use until it does; \
         check the device of the store"
    )]
    Stalled,
    /// The disk could neither be added to another worker nor returned to its previous one. It is
    /// out of service.
    #[error("the disk could not be moved to another worker and is out of service: {0}")]
    Lost(io::Error),
}
