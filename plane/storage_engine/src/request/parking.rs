//! Parked requests: requests that are queued for translation until an operation of their disk has
//! ended, and their continuation.

use std::io;

use suimon_ports::{DiskOp, DiskOutcome, FileRequest};

use crate::disk::BlockingOperation;
use crate::engine::StorageEngine;
use crate::engine::io_token::IoPurpose;
use crate::request::EngineRequest;
use crate::request::pending_discard::PendingDiscard;

impl StorageEngine {
    /// Continues parked requests of the disks in `disks_to_continue`, on which an operation has
    /// ended. The continuation is deferred to this call: each request may end another one, and
    /// direct calls would recurse once per request.
    pub(crate) fn continue_parked(&mut self) {
        while let Some(disk_number) = self.disks_to_continue.pop() {
            self.continue_parked_of_disk(disk_number);
        }
    }

    /// Continues the parked requests of a disk as far as possible, and releases a closing or
    /// suspending disk.
    pub(crate) fn continue_parked_of_disk(&mut self, disk_number: usize) {
        loop {
            let Some(disk) = self.disks.get_mut(disk_number) else { return };
            if disk.blocked_by.is_some() {
                return;
            }
            if let Some(number) = disk.pending_discard.as_ref().and_then(PendingDiscard::poll) {
                if !self.execute_discard(number) {
                    return;
                }
                continue;
            }
            let Some(&number) = disk.parked.front() else { break };
            let Some(&EngineRequest { op, range, .. }) = self.requests.get(number) else {
                disk.parked.pop_front();
                continue;
            };
            let frees = matches!(op, DiskOp::Discard | DiskOp::WriteZeroes { .. });
            let is_next = match &disk.pending_discard {
                Some(pending_discard) => !frees && pending_discard.permits(range),
                None => true,
            };
            if !is_next {
                return;
            }
            disk.parked.pop_front();
            if frees {
                self.make_discard_pending(number);
            } else if !self.transfer(number) {
                return;
            }
        }
        self.release_disk_if_done(disk_number);
    }

    /// Starts the operation that blocks a translation: a metadata read or a commit. No-op if the
    /// disk is blocked already; the request is then translated again after that operation.
    pub(crate) fn start_blocking_operation(
        &mut self,
        disk_number: usize,
        blocked: BlockingOperation,
    ) {
        let disk = self.disks.get_mut(disk_number).filter(|disk| disk.blocked_by.is_none());
        let Some(disk) = disk else { return };
        disk.blocked_by = Some(blocked);
        match blocked {
            BlockingOperation::MetadataRead(layer, range) => {
                self.metadata_to_read.push((disk_number, layer, range));
                self.submit_queued_metadata_reads();
            }
            // A commit in flight may have begun before the image required one.
            BlockingOperation::Commit | BlockingOperation::CommitInFlight => {
                self.begin_commit(disk_number);
            }
        }
    }

    /// Submits the queued metadata reads while submission-queue entries are free.
    pub(crate) fn submit_queued_metadata_reads(&mut self) {
        while let Some(&(disk_number, layer, range)) = self.metadata_to_read.last() {
            let now = self.now;
            let Some(disk) = self.disks.get_mut(disk_number) else {
                self.metadata_to_read.pop();
                continue;
            };
            let file = disk.layers[layer].file;
            let token = IoPurpose::Metadata(disk_number).token();
            if !self.io.submit(file, FileRequest::ReadBytes(range), token) {
                return;
            }
            disk.metadata_submitted_at = Some(now);
            self.metadata_to_read.pop();
        }
    }

    /// Handles the completion of a metadata read: passes the metadata to the image, or fails the
    /// request that needs it.
    pub(crate) fn handle_metadata_read(&mut self, disk_number: usize, bytes: io::Result<Vec<u8>>) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.metadata_submitted_at = None;
        let Some(BlockingOperation::MetadataRead(layer, range)) = disk.blocked_by.take() else {
            return;
        };
        let image = &mut disk.layers[layer].image;
        let applied = match bytes {
            Ok(bytes) => image
                .handle_metadata(range, &bytes)
                .map_err(|error| (error.offset, error.to_string())),
            Err(error) => {
                image.handle_metadata_failure(range);
                Err((range.offset(), error.to_string()))
            }
        };
        if let Err((offset, detail)) = applied {
            self.emit_disk_fault(disk_number, Some(offset), detail);
            self.fail_first_parked(disk_number, DiskOutcome::Failed);
        }
        self.disks_to_continue.push(disk_number);
    }

    /// Completes the first parked request of a disk with `outcome`, after its metadata read or
    /// commit has failed.
    pub(crate) fn fail_first_parked(&mut self, disk_number: usize, outcome: DiskOutcome) {
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let first = match disk
            .pending_discard
            .take_if(|pending_discard| pending_discard.awaits_blocking_operation)
        {
            Some(pending_discard) => Some(pending_discard.request),
            None => disk.parked.pop_front(),
        };
        if let Some(number) = first {
            self.complete_request(number, outcome);
        }
    }
}
