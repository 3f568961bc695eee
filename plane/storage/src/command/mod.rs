//! Commands of the control plane to a worker.

pub(crate) mod channel;
pub(crate) mod disk_wait;
pub(crate) mod last_state;
pub(crate) mod pending_changes;
pub(crate) mod queue_key;
pub(crate) mod reply;
mod responsiveness_check;
pub(crate) mod revocable_value;
#[cfg(test)]
mod tests;
pub(crate) mod wait_limits;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use suimon_image_files::LayerStack;
use suimon_ports::{DiskQueue, FileIo};
use suimon_quantity::{DiskId, StoreId};
use suimon_storage_engine::{
    DirtyMap, FullStorePolicy, NoSpaceRequests, RejectedDisk, SharedBudget, StoreDiskSlot,
};
use suimon_storage_qos::{ConfigStep, DiskSlot, StoreSpec};

use crate::command::pending_changes::{PendingFullStorePolicy, PendingMaximums};
use crate::command::queue_key::{QueueKey, QueueSelection};
use crate::command::revocable_value::RevocableValue;
use crate::plane::error::PlaneError;
use crate::worker::snapshot::WorkerSnapshot;

/// Disk that was removed from a worker with its queues, while it moves to another worker.
pub(crate) struct DetachedDisk {
    pub(crate) spec: LayerStack,
    pub(crate) full_store_policy: FullStorePolicy,
    pub(crate) store_slot: Option<StoreDiskSlot>,
    pub(crate) mirror: MirrorSettings,
    pub(crate) queues: Vec<DetachedQueue>,
}

/// Queue of a disk that moves between workers.
pub(crate) struct DetachedQueue {
    pub(crate) key: QueueKey,
    pub(crate) queue: Box<dyn DiskQueue>,
    /// Requests that the queue has taken back because the store had no space for them, to be
    /// delivered again.
    pub(crate) no_space_requests: NoSpaceRequests,
}

/// State of a disk copy (mirror job) on the disk's worker.
#[derive(Clone, Default)]
pub(crate) struct MirrorSettings {
    /// Slot of the copy's requests in the disk's store.
    pub(crate) slot: Option<DiskSlot>,
    /// Map that records changes, if this disk is the source of the copy.
    pub(crate) dirty: Option<Arc<DirtyMap>>,
}

/// Condition under which a disk is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuspendCondition {
    /// The disk is durable. If it cannot be made durable, it remains in service.
    OnlyIfDurable,
    /// The disk is durable, or a flush has failed and the images are to be opened again.
    EvenIfFlushFailed,
}

/// Reason why a worker could not add a disk, and the disk.
pub(crate) struct WorkerAddDiskError {
    pub(crate) error: io::Error,
    /// Disk that was not added; `None` if the worker cannot return it.
    pub(crate) detached: Option<Box<DetachedDisk>>,
}

/// Command of the control plane to a worker. A value that the control plane takes back if the
/// worker does not respond is a [`RevocableValue`]; the worker ignores a command whose value was
/// taken back.
pub(crate) enum Command {
    /// Sets the worker's file I/O. Must precede the worker's first disk.
    SetIo(RevocableValue<Box<dyn FileIo>>, Sender<io::Result<()>>),
    AddDisk {
        disk: DiskId,
        detached: RevocableValue<Box<DetachedDisk>>,
        reply: Sender<Result<(), WorkerAddDiskError>>,
    },
    AddQueue(DiskId, QueueKey, Box<dyn DiskQueue>),
    /// Sets or removes the state of a disk's copy on the disk's worker.
    SetMirror(DiskId, MirrorSettings, Sender<()>),
    /// Sets how long a disk's requests are queued while its store is full.
    SetFullStorePolicy(DiskId, Arc<PendingFullStorePolicy>),
    /// Sends the number of a disk's requests that have not completed, except those of a copy.
    CountRequestsInFlight(DiskId, Sender<usize>),
    /// Closes and drops queues of a disk. The sender is dropped when all of them are dropped.
    DetachQueues(DiskId, QueueSelection, Sender<()>),
    /// Removes a disk with its queues from the worker, and sends it when it is closed. Has no
    /// effect if the sender was taken back.
    DetachDisk(DiskId, RevocableValue<Sender<Result<DetachedDisk, PlaneError>>>),
    /// Releases a disk's images and files, and sends them; the disk's queues remain. Has no effect
    /// if the sender was taken back.
    Suspend(DiskId, SuspendCondition, RevocableValue<Sender<Result<LayerStack, PlaneError>>>),
    /// Resumes a suspended disk with these images. Sends back images that cannot be used.
    Resume(DiskId, RevocableValue<LayerStack>, Sender<Result<(), RejectedDisk>>),
    /// Adds a store to the worker, and applies these changes to it. Without a shared budget, the
    /// worker is the only user of the store.
    AddStore {
        store: StoreId,
        spec: StoreSpec,
        shared: Option<SharedBudget>,
        changes: Vec<ConfigStep>,
    },
    /// Sends the budget of a store, which other workers then share.
    Share(StoreId, Sender<SharedBudget>),
    /// Makes the worker the only user of a store when all others have left it.
    EndSharing(StoreId),
    /// Removes a store from the worker when the worker has no more disks or requests of it.
    RemoveStore(StoreId),
    /// Applies changes of a store. `is_applied_to_budget`: the control plane has applied them
    /// already to the budget that the worker shares.
    ApplyChanges {
        store: StoreId,
        changes: Vec<ConfigStep>,
        is_applied_to_budget: bool,
    },
    /// Applies pending maximums of a store that only this worker uses.
    ApplyMaximums(StoreId, Arc<PendingMaximums>),
    /// Drops the sender, so that the receiver is disconnected, when all earlier commands have been
    /// executed.
    Sync(Sender<()>),
    /// Sends the state of the worker's disks and stores, and of the disks in these slots.
    QueryState(Arc<BTreeMap<StoreId, Arc<Vec<DiskSlot>>>>, Sender<WorkerSnapshot>),
}
