//! Injected faults: stores and workers that do not respond, lost disks, failed flushes, and sockets
//! that are rejected.

use std::path::Path;

use suimon_ports::{DeviceError, DeviceErrorKind};
use suimon_quantity::DiskId;
use suimon_storage::PlaneNotice;
use suimon_storage_engine::STALLED_AFTER;

use super::FakeDisks;
use crate::testing::device_error;

impl FakeDisks {
    /// Stalls or resumes reads and writes of all files of the stores.
    pub(crate) fn stall_files(&self, stalls: bool) {
        for store in self.lock().stores.values() {
            store.set_stalled(stalls);
        }
    }

    /// Simulates a worker that does not respond, so that the state of disks is the last known one.
    pub(crate) fn set_stale(&self, is_stale: bool) {
        self.lock().is_stale = is_stale;
    }

    /// Simulates a worker that has not reported its disks yet.
    pub(crate) fn set_unseen(&self, is_unseen: bool) {
        self.lock().is_unseen = is_unseen;
    }

    /// Sets whether no worker responds to commands.
    pub(crate) fn block_workers(&self, blocks: bool) {
        self.lock().blocks_workers = blocks;
    }

    /// Has a store stall when a socket is rejected next.
    pub(crate) fn stall_at_refusal(&self, store: &str) {
        self.lock().stalled_at_refusal = Some(store.into());
    }

    /// Sets whether sockets at this path are rejected.
    pub(crate) fn refuse(&self, socket: &str, is_refused: bool) {
        let mut world = self.lock();
        if is_refused {
            world.refused.insert(socket.into());
        } else {
            world.refused.remove(Path::new(socket));
        }
    }

    /// Sets whether suspended disks cannot be resumed.
    pub(crate) fn refuse_resuming(&self, is_refused: bool) {
        self.lock().resume_refused = is_refused;
    }

    /// Sets whether stores respond, and reports it for each disk.
    pub(crate) fn stall(&self, stalls: bool) {
        let mut world = self.lock();
        world.stalls = stalls;
        let waited = STALLED_AFTER;
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        let notices = disks.into_iter().map(|disk| PlaneNotice::DiskStall {
            disk,
            is_beginning: stalls,
            stalled_for: waited,
        });
        world.notices.extend(notices);
    }

    /// Makes a flush of every disk in service fail with this error, and reports it.
    pub(crate) fn fail_flush(&self, detail: &str) {
        let mut world = self.lock();
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        for spec in world.in_service.values() {
            let failure = spec.layers[0].file.flush_failure().unwrap();
            failure.record(&std::io::Error::other(detail.to_owned()));
        }
        let detail = || detail.to_owned();
        let notices =
            disks.into_iter().map(|disk| PlaneNotice::FlushFailed { disk, detail: detail() });
        world.notices.extend(notices);
    }

    /// Overwrites the files of all disks at an offset.
    pub(crate) fn overwrite(&self, offset: u64, bytes: &[u8]) {
        for spec in self.lock().in_service.values() {
            spec.layers[0].file.write_at(offset, bytes).unwrap();
        }
    }

    /// Removes all disks from service and reports it.
    pub(crate) fn lose(&self, reason: &str) {
        let mut world = self.lock();
        for disk in std::mem::take(&mut world.in_service).into_keys() {
            let reason = reason.to_owned();
            world.notices.push_back(PlaneNotice::DiskLost { disk, reason });
        }
    }

    pub(super) fn check(&self, socket: &Path) -> Result<(), DeviceError> {
        let mut world = self.lock();
        if world.refused.contains(socket) {
            let stalled = world.stalled_at_refusal.take();
            stalled.iter().for_each(|store| world.stores[store].set_stalled(true));
            Err(device_error(DeviceErrorKind::Busy))
        } else {
            Ok(())
        }
    }
}
