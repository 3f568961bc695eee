//! Payload transfer: translation of requests, submission of their parts, and completion.

use std::io;

use suimon_image::{ByteRange, ImageError};
use suimon_ports::{DiskOp, DiskOutcome, FileIo, FileRequest, PayloadRange};
use suimon_storage_qos::RequestPhase;

use crate::engine::StorageEngine;
use crate::engine::io_token::{IoPurpose, PAGE_SHIFT};
use crate::engine::notices::StorageNotice;
use crate::engine::slab::Slab;
use crate::queue::QueueState;
use crate::request::discard::is_only_if_fast;
use crate::request::translation::{TranslationResult, translate_read, translate_write};
use crate::request::{EngineRequest, PartAction, RequestFullState, RequestPart};
use crate::scheduling::dispatch::report_to_store;
use crate::scheduling::phases::parked_phase;

impl StorageEngine {
    /// Starts the execution of a dispatched request.
    pub(crate) fn begin_request(&mut self, number: usize) {
        let Some(request) = self.requests.get(number) else { return };
        let (op, range, disk_number) = (request.op, request.range, request.disk);
        let Some(disk) = self.disks.get_mut(disk_number) else {
            return self.complete_request(number, DiskOutcome::Failed);
        };
        if disk.refuses(op) {
            return self.complete_request(number, DiskOutcome::Failed);
        }
        match op {
            DiskOp::Flush => {
                disk.commit_waiters.push(number);
                self.enter_phase(number, RequestPhase::Flush);
                self.begin_commit(disk_number);
            }
            DiskOp::Read | DiskOp::Write { .. } | DiskOp::AllocationStatus { .. } => {
                if disk.can_translate_now(range) {
                    self.transfer(number);
                } else {
                    disk.parked.push_back(number);
                    let phase = parked_phase(disk);
                    self.enter_phase(number, phase);
                }
            }
            DiskOp::Discard | DiskOp::WriteZeroes { .. } => {
                self.enter_phase(number, RequestPhase::Discard);
                self.begin_discard(number);
            }
        }
    }

    /// Translates a read or write and submits its parts. Returns false if the request must wait for
    /// metadata or a commit; it is then the first of the disk's parked requests.
    pub(crate) fn transfer(&mut self, number: usize) -> bool {
        let Some(&EngineRequest { disk: disk_number, queue, tag, op, range, phase, .. }) =
            self.requests.get(number)
        else {
            return true;
        };
        if let DiskOp::AllocationStatus { is_first_only } = op {
            return self.report_status(number, is_first_only);
        }
        let Some(disk) = self.disks.get_mut(disk_number) else { return true };
        if disk.refuses(op) {
            self.complete_request(number, DiskOutcome::Failed);
            return true;
        }
        let scratch = &mut self.scratch;
        let translated = match op {
            DiskOp::Write { is_durable } => {
                let is_durable = is_durable && disk.writes_durably();
                translate_write(disk, number, range, is_durable, scratch)
            }
            _ => translate_read(disk, number, range, scratch),
        };
        match translated {
            Err(error) => {
                self.complete_refused(number, &error);
            }
            Ok(TranslationResult::Blocked(blocked)) => {
                disk.parked.push_front(number);
                self.enter_phase(number, RequestPhase::Metadata);
                self.start_blocking_operation(disk_number, blocked);
                return false;
            }
            Ok(TranslationResult::Ready) => {
                if let Some(queue_state) = self.queues.get_mut(queue) {
                    for &(payload_offset, len) in &self.scratch.zero_payload_ranges {
                        queue_state.queue.zero_payload(tag, payload_offset, len);
                    }
                }
                disk.requests_with_io += 1;
                if phase != RequestPhase::Data {
                    self.enter_phase(number, RequestPhase::Data);
                }
                self.submit_parts(number);
            }
        }
        true
    }

    /// Submits the parts in `scratch` for a request that is counted in
    /// `DiskState::requests_with_io`.
    pub(crate) fn submit_parts(&mut self, number: usize) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let parts = &mut self.scratch.parts;
        // The number of parts is bounded by the number of extents of an image in memory.
        request.remaining_parts = parts.len() as u32;
        request.submitted_at = self.now;
        request.transferred_at = self.now;
        if parts.is_empty() {
            return self.handle_transferred(number);
        }
        let mut begun_parts = 0;
        // Parts that are waiting already are submitted before these.
        if self.parts_to_submit.is_empty() {
            let submits = |part: &&RequestPart| submit(&mut *self.io, &self.queues, request, part);
            begun_parts = parts.iter().take_while(submits).count();
        }
        if begun_parts < parts.len() {
            self.parts_to_submit.extend(parts.drain(begun_parts..));
        }
        parts.clear();
    }

    /// Submits queued parts while submission-queue entries are free.
    pub(crate) fn submit_queued_parts(&mut self) {
        while let Some(part) = self.parts_to_submit.front() {
            if let Some(request) = self.requests.get(part.request) {
                if !submit(&mut *self.io, &self.queues, request, part) {
                    return;
                }
            }
            self.parts_to_submit.pop_front();
        }
    }

    /// Handles the completion of one part of a request, at this page of the file.
    #[inline]
    pub(crate) fn handle_part_completed(
        &mut self,
        number: usize,
        page: u64,
        outcome: io::Result<()>,
    ) {
        if let Err(error) = outcome {
            self.handle_failed_part(number, page, &error);
        }
        let Some(request) = self.requests.get_mut(number) else { return };
        request.remaining_parts = request.remaining_parts.saturating_sub(1);
        if request.remaining_parts == 0 {
            self.handle_transferred(number);
        }
    }

    #[cold]
    fn handle_failed_part(&mut self, number: usize, page: u64, error: &io::Error) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let disk = request.disk;
        request.outcome = outcome_of(error);
        if request.outcome == DiskOutcome::NoSpace {
            // The error is reported when the request completes.
            return;
        }
        if is_only_if_fast(request.op) && error.kind() == io::ErrorKind::Unsupported {
            request.outcome = DiskOutcome::Unsupported;
            return;
        }
        self.handle_failed_durable_part(number, error);
        let offset = (page < IoPurpose::PAGE_MAX).then_some(page << PAGE_SHIFT);
        self.emit_disk_fault(disk, offset, error.to_string());
    }

    /// Continues a request when all its parts have completed.
    pub(crate) fn handle_transferred(&mut self, number: usize) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let EngineRequest { disk: disk_number, op, range, outcome, .. } = *request;
        // The duration of other operations depends on other requests too, so it is not a device
        // latency.
        if matches!(op, DiskOp::Read | DiskOp::Write { .. }) {
            request.transferred_at = self.now;
        }
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.requests_with_io -= 1;
        if let Some(pending_discard) = &mut disk.pending_discard {
            pending_discard.handle_request_ended(range);
        }
        if matches!(op, DiskOp::Read | DiskOp::AllocationStatus { .. }) {
            let completes = disk.is_contiguous() && !disk.has_pending_operation();
            self.complete_request(number, outcome);
            if completes {
                return;
            }
        } else {
            self.handle_changed(number);
        }
        self.commit_if_due(disk_number);
        self.disks_to_continue.push(disk_number);
    }

    /// Updates the image after a change of the disk. The request completes at once, or waits until
    /// the change is durable.
    fn handle_changed(&mut self, number: usize) {
        let Some(request) = self.requests.get(number) else { return };
        let EngineRequest { disk: disk_number, range, outcome, .. } = *request;
        let is_write = matches!(request.op, DiskOp::Write { .. });
        let is_durable = request.is_durable();
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let pieces = if is_write { None } else { disk.ranges_being_zeroed.remove(&number) };
        let is_to_commit = is_durable && !(is_write && disk.writes_durably());
        let image = &mut disk.own_layer().image;
        for piece in is_write.then_some(range).into_iter().chain(pieces.into_iter().flatten()) {
            match outcome {
                DiskOutcome::Done => image.handle_written(piece),
                _ => image.handle_write_failed(piece),
            }
        }
        // Before a commit, only this process has the new mapping, unless a redo record contains it.
        let has_record = disk.own_layer().image.has_redo_record(range);
        let is_to_commit = is_to_commit || (!has_record && disk.has_uncommitted_changes());
        if outcome == DiskOutcome::Done && is_to_commit {
            disk.commit_waiters.push(number);
            let phase = if is_durable { RequestPhase::Flush } else { RequestPhase::Metadata };
            self.enter_phase(number, phase);
            self.begin_commit(disk_number);
        } else {
            self.complete_request(number, outcome);
        }
    }

    /// Completes a request, or queues it if its store has no space for it.
    #[inline]
    pub(crate) fn complete_request(&mut self, number: usize, outcome: DiskOutcome) {
        self.enter_phase(number, RequestPhase::Data);
        let Some(request) = self.requests.get(number) else { return };
        let concerns_space =
            outcome == DiskOutcome::NoSpace || request.full_state != RequestFullState::NotFull;
        if concerns_space && self.queue_if_no_space(number, outcome) {
            return;
        }
        self.complete_without_space_check(number, outcome);
    }

    /// Completes a request. The outcome is not checked for a full store.
    #[inline]
    pub(crate) fn complete_without_space_check(&mut self, number: usize, outcome: DiskOutcome) {
        let Some(request) = self.requests.get(number) else { return };
        let is_alone =
            self.queues.get(request.queue).is_some_and(|queue_state| queue_state.in_flight == 1);
        if let Some(disk) = self.disks.get_mut(request.disk) {
            let times = (request.received_at, self.now);
            if !request.is_mirror {
                disk.counters.count(request.op, request.range.len(), outcome, times);
            }
            // The change is marked before the client sees the completion: see `mirror`.
            if let Some(dirty) = &disk.mirror.dirty {
                if request.may_change_disk() {
                    dirty.mark(request.range);
                }
            }
        }
        if let Some((worker_store, index)) = request
            .charged_slot
            .and_then(|index| Some((self.stores.get_mut(index.store_number)?, index)))
        {
            report_to_store(worker_store, self.now, index, request, (outcome, is_alone));
        }
        let queue = request.queue;
        if let Some(queue_state) = self.queues.get_mut(queue) {
            queue_state.queue.complete(request.tag, outcome);
            queue_state.in_flight -= 1;
            if queue_state.resume_polling_after_completion() {
                self.polled_queues.add(queue);
            }
        }
        self.mark_completions_to_publish(queue);
        self.requests.free(number);
    }

    /// Completes a request that the image has refused to translate. The outcome is not checked for
    /// a full store.
    pub(crate) fn complete_refused(&mut self, number: usize, error: &ImageError) {
        let Some(disk) = self.requests.get(number).map(|request| request.disk) else { return };
        let outcome = self.refuse(disk, error);
        self.enter_phase(number, RequestPhase::Data);
        self.end_repetition(number, false);
        self.complete_without_space_check(number, outcome);
    }

    /// Emits a notice that an image has refused a request. Returns the outcome for the client.
    fn refuse(&mut self, disk: usize, error: &ImageError) -> DiskOutcome {
        use suimon_image::ImageFault;
        let outcome = match error.fault {
            ImageFault::ReadOnly => return DiskOutcome::ReadOnly,
            ImageFault::FormatLimit { .. } => DiskOutcome::NoSpace,
            _ => DiskOutcome::Failed,
        };
        self.emit_disk_fault(disk, Some(error.offset), error.to_string());
        outcome
    }

    pub(crate) fn emit_disk_fault(&mut self, number: usize, offset: Option<u64>, detail: String) {
        let Some(disk) = self.disks.get_mut(number) else { return };
        if let Some(suppressed) = disk.fault_notice_limiter.take_suppressed_if_due(self.now) {
            self.notices.push(StorageNotice::DiskFault {
                disk: number,
                offset,
                detail,
                suppressed,
            });
        }
    }
}

/// Submits a part of a request. Returns false if no submission-queue entry is free.
#[inline]
fn submit(
    io: &mut dyn FileIo,
    queues: &Slab<QueueState>,
    request: &EngineRequest,
    part: &RequestPart,
) -> bool {
    let Some(queue_state) = queues.get(request.queue) else { return true };
    let payload = |from| PayloadRange {
        payloads: queue_state.queue.payloads(),
        tag: request.tag,
        offset: from,
        len: part.len,
    };
    let offset = part.offset;
    let op = match part.action {
        PartAction::Read { to } => FileRequest::Read { offset, destination: payload(to) },
        PartAction::Write { from, is_durable } => {
            FileRequest::Write { offset, source: payload(from), is_durable }
        }
        PartAction::Discard => match ByteRange::new(offset, part.len) {
            Some(range) => FileRequest::Discard(range),
            None => return true,
        },
        PartAction::Zero { may_unmap, only_if_fast } => match ByteRange::new(offset, part.len) {
            Some(range) => FileRequest::Zero { range, may_unmap, only_if_fast },
            None => return true,
        },
    };
    io.submit(part.file, op, IoPurpose::part(part.request, part.offset).token())
}

pub(crate) fn outcome_of(error: &io::Error) -> DiskOutcome {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskOutcome::NoSpace,
        io::ErrorKind::ReadOnlyFilesystem => DiskOutcome::ReadOnly,
        _ => DiskOutcome::Failed,
    }
}
