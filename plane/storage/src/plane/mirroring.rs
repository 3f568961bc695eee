//! Disk copies (mirror jobs) in the control plane, for the source and the target of a copy.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use suimon_ports::DiskQueue;
use suimon_quantity::{DiskId, StoreId};
use suimon_storage_engine::DirtyMap;
use suimon_storage_qos::{DiskSlot, Limits, LimitsSource, Proposal, Weight};

use crate::command::channel::WorkerChannel;
use crate::command::queue_key::{QueueKey, QueueSelection};
use crate::command::{Command, MirrorSettings};
use crate::plane::disk_record::DiskRecord;
use crate::plane::error::PlaneError;
use crate::plane::{StoragePlane, lock};

/// Weight of a disk copy in the disk's store: a quarter of the default weight. Without other
/// demand, a copy gets the whole capacity.
const WEIGHT: u16 = 25;

/// Bit in a disk's identifier in Storage QoS that is set for the copy of a disk.
const COPIED: u32 = 1 << 31;

/// Returns the identifier in Storage QoS of the copy of a disk.
const fn copied(disk: DiskId) -> DiskId {
    DiskId(disk.0 | COPIED)
}

/// Returns the disk whose copy has this identifier in Storage QoS; `None` if it is the identifier
/// of a disk itself.
#[must_use]
pub const fn disk_of_copy(number: DiskId) -> Option<DiskId> {
    if number.0 & COPIED == 0 { None } else { Some(DiskId(number.0 & !COPIED)) }
}

impl StoragePlane {
    /// Starts a copy with this disk as source or target. For a source, each change that completes
    /// from now on is marked in `dirty` before its completion. The disk cannot be suspended until
    /// [`StoragePlane::end_mirror`].
    ///
    /// # Errors
    /// The disk is copied already, suspended, or not in service, its store has no free slot, or its
    /// worker does not respond.
    pub fn begin_mirror(
        &self,
        disk: DiskId,
        dirty: Option<Arc<DirtyMap>>,
    ) -> Result<(), PlaneError> {
        let record = self.disk_record(disk)?;
        let owner = lock(&record.owner);
        let worker_channel =
            owner.and_then(|owner| self.worker_channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        if record.is_suspended.load(Ordering::Relaxed) {
            return Err(PlaneError::Suspended);
        }
        let mut mirror = lock(&record.mirror);
        if mirror.is_active {
            return Err(PlaneError::MirrorInProgress);
        }
        if worker_channel.is_blocked(self.0.wait_limits.command_wait_max) {
            return Err(PlaneError::NoResponse(worker_channel.id));
        }
        let slot = record.store.map(|store| self.add_flow(store, disk)).transpose()?.flatten();
        let mirrored = MirrorSettings { slot, dirty };
        self.request(&worker_channel, |reply| Command::SetMirror(disk, mirrored, reply))
            .inspect_err(|_| {
                // A worker that does not respond executes the command above before this one, or not
                // at all.
                send_end(&worker_channel, disk);
                self.remove_flow(&record, disk);
            })?;
        mirror.is_active = true;
        Ok(())
    }

    /// Attaches the connection of a copy. Its requests are not subject to the disk's limits, and
    /// have a weight of their own in its store. A copy has at most one connection at a time; the
    /// caller must not attach a second one.
    ///
    /// # Errors
    /// The disk is not copied or not in service.
    pub fn attach_mirror(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError> {
        let record = self.disk_record(disk)?;
        if !lock(&record.mirror).is_active {
            return Err(PlaneError::NoSuchDisk);
        }
        self.attach_queue(disk, QueueKey::Mirror, queue)
    }

    /// Returns the number of requests of a disk's clients that have not completed. Blocks until the
    /// worker replies, for a bounded time.
    ///
    /// # Errors
    /// The disk is not in service, or its worker does not respond.
    pub fn requests_in_flight(&self, disk: DiskId) -> Result<usize, PlaneError> {
        let record = self.disk_record(disk)?;
        let owner = lock(&record.owner);
        let worker_channel =
            owner.and_then(|owner| self.worker_channel(owner)).ok_or(PlaneError::NoSuchDisk)?;
        self.request(&worker_channel, |reply| Command::CountRequestsInFlight(disk, reply))
    }

    /// Ends the copy of a disk: closes its connection, waits for its requests, and ends the marking
    /// of changes.
    ///
    /// # Errors
    /// The disk's store does not complete requests or its worker does not respond, so that requests
    /// of the copy may still be written. The call may be repeated.
    pub fn end_mirror(&self, disk: DiskId) -> Result<(), PlaneError> {
        let Ok(record) = self.disk_record(disk) else {
            self.remove_flow_of_closed_disk(disk);
            return Ok(());
        };
        let owner = lock(&record.owner);
        let worker_channel = owner.and_then(|owner| self.worker_channel(owner));
        let is_on = lock(&record.mirror).is_active;
        let result = worker_channel.map_or(Ok(()), |worker| self.end_on(&worker, disk, is_on));
        self.remove_flow(&record, disk);
        lock(&record.mirror).is_active = false;
        result
    }

    fn end_on(
        &self,
        worker_channel: &Arc<WorkerChannel>,
        disk: DiskId,
        is_on: bool,
    ) -> Result<(), PlaneError> {
        // A blocked worker has received the commands of the earlier call already.
        if !is_on && worker_channel.is_blocked(self.0.wait_limits.command_wait_max) {
            return Err(PlaneError::NoResponse(worker_channel.id));
        }
        let (reply, answer) = channel();
        worker_channel.send(Command::DetachQueues(
            disk,
            QueueSelection::One(QueueKey::Mirror),
            reply,
        ));
        let waited = self.wait_for_disk_reply(disk, worker_channel, &answer);
        send_end(worker_channel, disk);
        match waited {
            Err(error @ (PlaneError::Stalled | PlaneError::NoResponse(_))) => Err(error),
            _ => self.check_responding(worker_channel),
        }
    }

    /// Adds a slot for a disk's copy to the disk's store. Returns the slot. Fails if the store has
    /// no free slot.
    fn add_flow(&self, store: StoreId, disk: DiskId) -> Result<Option<DiskSlot>, PlaneError> {
        let limits =
            Limits { weight: Weight::new(WEIGHT).unwrap_or_default(), ..Limits::default() };
        let proposal = Proposal::SetDisk(copied(disk), LimitsSource::Own(limits));
        self.apply_proposals(store, &[proposal], false).map_err(PlaneError::NoFreeSlot)?;
        Ok(self.disk_slot(store, copied(disk)))
    }

    /// Removes the slot of a disk's copy from the disk's store. Does not access other stores: the
    /// caller holds the lock of the disk, and a store may wait for its worker.
    fn remove_flow(&self, record: &DiskRecord, disk: DiskId) {
        if let Some(store) = record.store {
            self.remove_flow_from(store, disk);
        }
    }

    /// Removes the slot of a copy whose disk is out of service, so that its store is not known. The
    /// caller must not hold the lock of a disk.
    fn remove_flow_of_closed_disk(&self, disk: DiskId) {
        let stores: Vec<StoreId> = lock(&self.0.stores).keys().copied().collect();
        stores.into_iter().for_each(|store| self.remove_flow_from(store, disk));
    }

    fn remove_flow_from(&self, store: StoreId, disk: DiskId) {
        if self.disk_slot(store, copied(disk)).is_some() {
            // The removal of an existing slot is always permitted.
            let _ = self.apply_proposals(store, &[Proposal::RemoveDisk(copied(disk))], false);
        }
    }
}

/// Ends the copy of a disk on its worker, without waiting for it. Has no effect if the disk is not
/// copied.
fn send_end(worker: &WorkerChannel, disk: DiskId) {
    worker.send(Command::SetMirror(disk, MirrorSettings::default(), channel().0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_disk_has_its_own_identifier() {
        let disk = DiskId(7);
        assert_eq!((disk_of_copy(disk), disk_of_copy(copied(disk))), (None, Some(disk)));
    }
}
