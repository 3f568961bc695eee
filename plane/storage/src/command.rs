//! What the control plane asks of a processor that has disks.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use suimon_ports::{DiskQueue, FileIo};
use suimon_quantity::{DiskId, StoreId};
use suimon_storage_qos::{Change, DiskSlot, StoreSpec};

use crate::dirty::DirtyMap;
use crate::disk::{DiskPlace, DiskSpec, NotAdded};
use crate::full::FullPolicy;
use crate::plane::PlaneError;
use crate::plane_stores::Peers;
use crate::plane_views::Looked;
use crate::queue_key::{QueueKey, Which};
use crate::request::FoundFull;
use crate::store::StoreRole;

/// A disk that nobody serves, with its queues.
pub(crate) struct Taken {
    pub(crate) spec: DiskSpec,
    pub(crate) full: FullPolicy,
    pub(crate) place: Option<DiskPlace>,
    pub(crate) mirror: Mirrored,
    pub(crate) queues: Vec<TakenQueue>,
}

/// A queue of a disk that nobody serves.
pub(crate) struct TakenQueue {
    pub(crate) key: QueueKey,
    pub(crate) queue: Box<dyn DiskQueue>,
    /// Requests that it has taken back because they had found the store full.
    pub(crate) found_full: FoundFull,
}

/// What a processor knows of a disk's being copied.
#[derive(Clone, Default)]
pub(crate) struct Mirrored {
    /// Where that is in Storage QoS; it is the disk's store.
    pub(crate) slot: Option<DiskSlot>,
    /// What changes is marked here, if it is copied from here.
    pub(crate) dirty: Option<Arc<DirtyMap>>,
}

/// A processor does not take a disk.
pub(crate) struct NotTaken {
    pub(crate) error: io::Error,
    /// The disk, as far as it can be given back.
    pub(crate) taken: Option<Box<Taken>>,
}

/// What the control plane asks of a processor.
pub(crate) enum Command {
    /// The processor gets I/O, before its first disk.
    Equip(Box<dyn FileIo>, Sender<io::Result<()>>),
    AddDisk {
        disk: DiskId,
        taken: Taken,
        reply: Sender<Result<(), NotTaken>>,
    },
    AddQueue(DiskId, QueueKey, Box<dyn DiskQueue>),
    /// A disk is copied, or not any more.
    Mirror(DiskId, Mirrored, Sender<()>),
    /// What requests of a disk do if its store is full.
    Full(DiskId, FullPolicy, Sender<()>),
    /// How many requests of a disk are not answered, but those of its being copied.
    UnderWay(DiskId, Sender<usize>),
    /// Queues of a disk are to be dropped.
    Detach(DiskId, Which, Sender<()>),
    Take(DiskId, Sender<Result<Taken, PlaneError>>),
    /// A disk's images and files are wanted; its queues stay.
    Suspend(DiskId, Sender<Result<DiskSpec, PlaneError>>),
    /// It goes on with these. What cannot be used comes back.
    Resume(DiskId, DiskSpec, Sender<Result<(), NotAdded>>),
    /// The processor takes part in a store.
    Join {
        store: StoreId,
        spec: StoreSpec,
        role: StoreRole,
        changes: Vec<Change>,
        reply: Sender<()>,
    },
    /// It takes part in another way.
    Role(StoreId, StoreRole, Sender<()>),
    /// It has no disk of the store any more.
    Leave(StoreId),
    /// Steps of a change of a store.
    Change(StoreId, Vec<Change>),
    /// Everything before this is done.
    Sync(Sender<()>),
    /// Who else there is.
    Peers(Peers),
    /// What is done, and of these disks of stores what they get.
    View(Arc<BTreeMap<StoreId, Vec<DiskSlot>>>, Sender<Looked>),
}
