//! Suspension and resumption of disks; their queues remain attached meanwhile.

use std::io;
use std::sync::Arc;

use suimon_image_files::{DiskLayer, LayerStack};

use crate::disk::layer::Layer;
use crate::disk::rejected::RejectedDisk;
use crate::disk::{DiskState, ServiceState};
use crate::engine::StorageEngine;

impl StorageEngine {
    /// Suspends a disk: no further requests are taken from its queues, the requests taken before
    /// end, and changes are committed. [`StorageEngine::poll_suspended_disk`] then returns the
    /// disk's images and files. The queues remain. Requests queued in their store's scheduler start
    /// at once, as when a disk is closed.
    pub fn suspend_disk(&mut self, disk: usize) {
        self.suspend(disk, false);
    }

    /// Suspends a disk like [`StorageEngine::suspend_disk`]. After a failed flush, the disk is
    /// released without a commit, and the caller must drop its images instead of closing them.
    pub fn suspend_disk_to_reopen(&mut self, disk: usize) {
        self.suspend(disk, true);
    }

    fn suspend(&mut self, disk: usize, is_reopening: bool) {
        let is_on = |disk_state: &&mut DiskState| {
            disk_state.service == ServiceState::InService && !disk_state.is_closing
        };
        let Some(disk_state) = self.disks.get_mut(disk).filter(is_on) else { return };
        disk_state.service = ServiceState::Suspending;
        disk_state.is_reopening = is_reopening;
        disk_state.has_failed_commit = false;
        self.apply_service_state(disk);
        self.bypass_scheduler(disk, false, true);
        self.bypass_scheduler(disk, true, true);
        self.release_disk_if_done(disk);
    }

    /// Returns the number of a disk whose suspension has ended, with its images; `None` if there is
    /// none. `None` instead of the images: a commit or flush has failed, the disk is in service
    /// again, and a notice states the reason.
    pub fn poll_suspended_disk(&mut self) -> Option<(usize, Option<LayerStack>)> {
        self.suspended_disks.pop_front()
    }

    /// Resumes a suspended disk, which may have another size or other images now. The front ends of
    /// its queues must have received the new size before.
    ///
    /// # Errors
    /// The files cannot be used, the disk does not exist, or it is in service. Nothing was changed.
    pub fn resume_disk(&mut self, disk: usize, spec: LayerStack) -> Result<(), RejectedDisk> {
        let is_suspended = |disk_state: &DiskState| {
            disk_state.service == ServiceState::Suspended && !disk_state.is_closing
        };
        if !self.disks.get(disk).is_some_and(is_suspended) {
            return Err(RejectedDisk { error: io::ErrorKind::NotFound.into(), spec });
        }
        let layers = self.register_files(spec)?;
        let Some(disk_state) = self.disks.get_mut(disk) else { return Ok(()) };
        disk_state.set_layers(layers);
        self.put_in_service(disk);
        Ok(())
    }

    fn put_in_service(&mut self, disk: usize) {
        if let Some(disk_state) = self.disks.get_mut(disk) {
            disk_state.service = ServiceState::InService;
        }
        self.begin_zeroing(disk);
        self.apply_service_state(disk);
    }

    /// Starts or stops reading the disk's queues according to its service state.
    pub(crate) fn apply_service_state(&mut self, disk: usize) {
        let is_stopped = self.disks.get(disk).is_none_or(DiskState::is_stopped);
        for queue in self.queues.numbers() {
            if let Some(queue_state) =
                self.queues.get_mut(queue).filter(|queue_state| queue_state.disk == disk)
            {
                queue_state.is_stopped = is_stopped;
            }
        }
        if !is_stopped {
            self.resume_queues(disk);
        }
        self.schedule_full_check();
    }

    /// Registers the files of a disk's images with the I/O, all or none.
    pub(crate) fn register_files(&mut self, spec: LayerStack) -> Result<Vec<Layer>, RejectedDisk> {
        if spec.layers.is_empty() {
            return Err(RejectedDisk { error: io::ErrorKind::InvalidInput.into(), spec });
        }
        let mut slots = Vec::with_capacity(spec.layers.len());
        for layer in &spec.layers {
            match self.io.add_file(Arc::clone(&layer.file)) {
                Ok(slot) => slots.push(slot),
                Err(error) => {
                    slots.into_iter().for_each(|slot| self.io.remove_file(slot));
                    return Err(RejectedDisk { error, spec });
                }
            }
        }
        // The disk may have uncommitted changes from another worker.
        self.idle_check.is_pending = true;
        let layers = spec.layers.into_iter().zip(slots).map(|(layer, file)| {
            let properties = layer.file.properties();
            let (can_punch, is_direct) = (properties.can_punch_holes, properties.is_direct);
            Layer { image: layer.image, disk_file: layer.file, file, can_punch, is_direct }
        });
        Ok(layers.collect())
    }

    fn release_files(&mut self, layers: Vec<Layer>) -> LayerStack {
        let layers = layers.into_iter().map(|layer| {
            self.io.remove_file(layer.file);
            DiskLayer { image: layer.image, file: layer.disk_file }
        });
        LayerStack { layers: layers.collect() }
    }

    /// Releases a closing or suspending disk if no request is in flight and all changes are
    /// durable. No-op for other disks. If a commit fails, a closing disk is released nevertheless,
    /// and a suspending disk remains in service.
    pub(crate) fn release_disk_if_done(&mut self, disk_number: usize) {
        let Some(disk) = self.disks.get(disk_number) else { return };
        let is_suspending = disk.service == ServiceState::Suspending && !disk.is_closing;
        let is_free = if disk.is_closing { disk.queues == 0 } else { is_suspending };
        if !is_free || !disk.has_no_operations() {
            return;
        }
        let is_durable =
            disk.layers.first().is_none_or(|top_layer| top_layer.image.uncommitted_bytes() == 0);
        if !is_durable && !disk.has_failed_commit && !disk.has_failed_flush {
            return self.begin_commit(disk_number);
        }
        if is_suspending {
            let is_released = if disk.has_failed_flush { disk.is_reopening } else { is_durable };
            self.end_suspending(disk_number, is_released);
        } else if let Some(disk) = self.disks.remove(disk_number) {
            let index = disk.client_slot.and_then(|store| self.stores.get_mut(store.store_number));
            if let Some(store) = index {
                store.disks -= 1;
            }
            if let Some(notice) = disk.full_state.end_notice(disk_number, self.now) {
                self.notices.push(notice);
            }
            let spec = self.release_files(disk.layers);
            self.closed_disks.push((disk_number, spec));
        }
    }

    fn end_suspending(&mut self, number: usize, is_released: bool) {
        if !is_released {
            self.put_in_service(number);
            return self.suspended_disks.push_back((number, None));
        }
        let Some(disk) = self.disks.get_mut(number) else { return };
        disk.service = ServiceState::Suspended;
        let layers = core::mem::take(&mut disk.layers);
        disk.contiguous_range = None;
        let spec = self.release_files(layers);
        self.suspended_disks.push_back((number, Some(spec)));
    }
}
