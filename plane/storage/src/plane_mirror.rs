//! Disks that are copied, from here or to here, as the control plane has them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use suimon_ports::DiskQueue;
use suimon_quantity::{DiskId, StoreId};
use suimon_storage_qos::{Assignment, DiskSlot, Limits, Proposal, Weight};

use crate::dirty::DirtyMap;
use crate::plane::{PlaneError, StoragePlane, Way, lock};
use crate::queue_key::{QueueKey, Which};
use crate::resident::{Command, Mirrored};

/// The weight in its store of a disk's being copied: a quarter of that of a disk of which
/// nothing is said. It has all that nobody else wants.
pub(crate) const WEIGHT: u16 = 25;

/// The number by which Storage QoS knows a disk's being copied has this bit; a disk's own has
/// not.
const COPIED: u32 = 1 << 31;

/// Whether a disk is copied, and how.
#[derive(Default)]
pub(crate) struct MirrorRecord {
    is_on: bool,
}

impl MirrorRecord {
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }
}

/// By which number Storage QoS knows a disk's being copied.
pub(crate) const fn copied(disk: DiskId) -> DiskId {
    DiskId(disk.0 | COPIED)
}

/// The disk whose being copied Storage QoS knows by this number; `None`: it is a disk's own.
#[must_use]
pub const fn copied_disk(number: DiskId) -> Option<DiskId> {
    if number.0 & COPIED == 0 { None } else { Some(DiskId(number.0 & !COPIED)) }
}

impl StoragePlane {
    /// A disk is going to be copied: to here, or from here, for which every change that ends
    /// from now on is marked in `dirty` before its client hears of it. Until
    /// [`StoragePlane::end_mirror`] it is not suspended.
    ///
    /// # Errors
    /// It is copied already, suspended, or not in service, or its store has no room.
    pub fn begin_mirror(
        &self,
        disk: DiskId,
        dirty: Option<Arc<DirtyMap>>,
    ) -> Result<(), PlaneError> {
        let record = self.record(disk)?;
        let owner = lock(&record.owner);
        let way = owner.and_then(|owner| self.way(owner)).ok_or(PlaneError::NoSuchDisk)?;
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        let mut mirror = lock(&record.mirror);
        if mirror.is_on {
            return Err(PlaneError::Mirrored);
        }
        let slot = record.store.map(|store| self.add_flow(store, disk)).transpose()?.flatten();
        way.ask(|reply| Command::Mirror(disk, Mirrored { slot, dirty }, reply))
            .inspect_err(|_| self.remove_flow(disk))?;
        mirror.is_on = true;
        Ok(())
    }

    /// Gives a disk that is copied the connection by which it is; its requests are held to no
    /// limits of the disk, and have a weight of their own in its store.
    ///
    /// # Errors
    /// It is not copied, has such a connection, or is not in service.
    pub fn attach_mirror(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError> {
        let record = self.record(disk)?;
        if !lock(&record.mirror).is_on {
            return Err(PlaneError::NoSuchDisk);
        }
        self.attach_queue(disk, QueueKey::Mirror, queue)
    }

    /// Requests of a disk that its clients have asked and that are not answered.
    ///
    /// # Errors
    /// It is not in service.
    pub fn under_way(&self, disk: DiskId) -> Result<usize, PlaneError> {
        let record = self.record(disk)?;
        let owner = lock(&record.owner);
        let way = owner.and_then(|owner| self.way(owner)).ok_or(PlaneError::NoSuchDisk)?;
        way.ask(|reply| Command::UnderWay(disk, reply))
    }

    /// A disk is copied no more: its connection for that is gone, nothing of it is under way,
    /// and nothing is marked.
    ///
    /// # Errors
    /// Its store does not answer: something that came by the connection may still be written.
    /// It may be asked again.
    pub fn end_mirror(&self, disk: DiskId) -> Result<(), PlaneError> {
        let Ok(record) = self.record(disk) else {
            self.remove_flow(disk);
            return Ok(());
        };
        let owner = lock(&record.owner);
        let way = owner.and_then(|owner| self.way(owner));
        let ended = way.map_or(Ok(()), |way| self.end_on(&way, disk));
        self.remove_flow(disk);
        lock(&record.mirror).is_on = false;
        ended
    }

    fn end_on(&self, way: &Way, disk: DiskId) -> Result<(), PlaneError> {
        let (reply, answer) = channel();
        way.tell(Command::Detach(disk, Which::One(QueueKey::Mirror), reply));
        let waited = self.wait_for_disk(disk, &answer);
        let told = way.ask(|reply| Command::Mirror(disk, Mirrored::default(), reply));
        if let Err(error) = told {
            tracing::debug!(?disk, %error, "a disk whose copying ends is gone");
        }
        match waited {
            Err(PlaneError::Stalled) => Err(PlaneError::Stalled),
            _ => Ok(()),
        }
    }

    /// Gives a disk's being copied a place in its store.
    fn add_flow(&self, store: StoreId, disk: DiskId) -> Result<Option<DiskSlot>, PlaneError> {
        let limits =
            Limits { weight: Weight::new(WEIGHT).unwrap_or_default(), ..Limits::default() };
        let proposal = Proposal::Disk(copied(disk), Assignment::Own(limits));
        self.propose(store, &[proposal], false).map_err(PlaneError::NoRoom)?;
        Ok(self.slot(store, copied(disk)))
    }

    fn remove_flow(&self, disk: DiskId) {
        let stores: Vec<StoreId> = lock(&self.0.stores).keys().copied().collect();
        for store in stores {
            if self.slot(store, copied(disk)).is_some() {
                // It is there.
                let _ = self.propose(store, &[Proposal::RemoveDisk(copied(disk))], false);
            }
        }
    }
}
