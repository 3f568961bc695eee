//! Zeroing of space that commits have freed. One range of a disk is zeroed at a time, concurrently
//! with requests and commits of the disk, so that no flush waits for it. When an image is closed,
//! it zeroes the remaining space itself.

use std::io;

use suimon_ports::FileRequest;

use crate::disk::ServiceState;
use crate::engine::StorageEngine;
use crate::engine::io_token::IoPurpose;

impl StorageEngine {
    /// Begins to zero freed space of a disk, if there is any and none is being zeroed.
    pub(crate) fn begin_zeroing(&mut self, disk_number: usize) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let is_served = disk.service == ServiceState::InService && !disk.is_closing;
        if !is_served || disk.has_failed_flush || disk.zeroing_submitted_at.is_some() {
            return;
        }
        if self.io.in_flight() >= self.io.capacity() {
            return self.zeroing_to_begin.push(disk_number);
        }
        let Some(top_layer) = disk.layers.first_mut() else { return };
        let Some(range) = top_layer.image.poll_zeroing() else { return };
        let op = FileRequest::Zero { range, may_unmap: true, only_if_fast: false };
        if self.io.submit(top_layer.file, op, IoPurpose::Zeroing(disk_number).token()) {
            disk.zeroing_submitted_at = Some(self.now);
        } else {
            top_layer.image.handle_zeroed(false);
        }
    }

    /// Starts the zeroing of disks that waited for a free submission-queue entry.
    pub(crate) fn begin_deferred_zeroing(&mut self) {
        for disk_number in std::mem::take(&mut self.zeroing_to_begin) {
            self.begin_zeroing(disk_number);
        }
    }

    /// Handles the end of zeroing a range, and continues with the next one.
    pub(crate) fn handle_zeroing(&mut self, disk_number: usize, outcome: io::Result<()>) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.zeroing_submitted_at = None;
        disk.own_layer().image.handle_zeroed(outcome.is_ok());
        if let Err(error) = outcome {
            self.emit_disk_fault(
                disk_number,
                None,
                format!("freed space cannot be deallocated: {error}"),
            );
        }
        self.begin_zeroing(disk_number);
        self.release_disk_if_done(disk_number);
    }
}
