//! Discards and writes of zeros.

use suimon_image::{ByteRange, ImageError, ImageExtent, Location};
use suimon_ports::{DiskOp, DiskOutcome};

use crate::disk::DiskState;
use crate::engine::StorageEngine;
use crate::request::pending_discard::PendingDiscard;
use crate::request::translation::{Scratch, TranslationResult, blocking_operation};
use crate::request::{EngineRequest, PartAction, RequestPart};

impl StorageEngine {
    /// Begins a discard or a write of zeros, request `request_number` in `requests`.
    pub(crate) fn begin_discard(&mut self, request_number: usize) {
        let Some(request) = self.requests.get(request_number) else { return };
        let (op, range, disk_number) = (request.op, request.range, request.disk);
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let can_punch = disk.layers[0].can_punch;
        let Some(start) = disk.layers[0].image.linear_offset() else {
            if is_only_if_fast(op) && !can_punch {
                return self.complete_request(request_number, DiskOutcome::Unsupported);
            }
            disk.parked.push_back(request_number);
            return self.disks_to_continue.push(disk_number);
        };
        // The image itself checks whether the range may be written.
        let mut extents = std::mem::take(&mut self.scratch.extents);
        extents.clear();
        let placed = disk.own_layer().image.translate_write(range, &mut extents);
        self.scratch.extents = extents;
        if let Err(error) = placed {
            return self.complete_refused(request_number, &error);
        }
        let action = match op {
            _ if is_only_if_fast(op) && !can_punch => {
                return self.complete_request(request_number, DiskOutcome::Unsupported);
            }
            DiskOp::WriteZeroes { may_unmap, only_if_fast, .. } => {
                PartAction::Zero { may_unmap, only_if_fast }
            }
            // A discard may leave bytes unchanged.
            _ if !can_punch => return self.complete_request(request_number, DiskOutcome::Done),
            _ => PartAction::Discard,
        };
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        disk.requests_with_io += 1;
        let file = disk.layers[0].file;
        let offset = start.saturating_add(range.offset());
        self.scratch.parts.clear();
        self.scratch.parts.push(RequestPart {
            request: request_number,
            file,
            offset,
            len: range.len(),
            action,
        });
        self.submit_parts(request_number);
    }

    /// Makes a discard or write of zeros pending until the overlapping requests in flight have
    /// ended.
    pub(crate) fn make_discard_pending(&mut self, number: usize) {
        let Some(&EngineRequest { disk: disk_number, op, range, .. }) = self.requests.get(number)
        else {
            return;
        };
        let Some(disk) = self.disks.get_mut(disk_number) else { return };
        let in_flight = self.requests.numbers().filter_map(|number| self.requests.get(number));
        let in_flight = in_flight.filter(|in_flight_request| {
            in_flight_request.disk == disk_number && in_flight_request.remaining_parts > 0
        });
        // The search ends after the last request in flight of the disk.
        let in_flight = in_flight.take(disk.requests_with_io);
        disk.pending_discard = Some(PendingDiscard {
            request: number,
            range,
            is_discard: op == DiskOp::Discard,
            overlapping_requests: in_flight
                .filter(|in_flight_request| in_flight_request.range.overlaps(range))
                .count(),
            awaits_blocking_operation: false,
        });
    }

    /// Executes a pending discard or write of zeros; no overlapping request is in flight. Returns
    /// false if it must wait for metadata or a commit first.
    pub(crate) fn execute_discard(&mut self, number: usize) -> bool {
        let Some(request) = self.requests.get(number) else { return true };
        let (op, range, disk_number) = (request.op, request.range, request.disk);
        let Some(disk) = self.disks.get_mut(disk_number) else { return true };
        let Some(mut pending_discard) = disk.pending_discard.take() else { return true };
        if disk.refuses(op) {
            self.complete_request(number, DiskOutcome::Failed);
            return true;
        }
        let mut pieces = Vec::new();
        match free(disk, number, op, range, &mut self.scratch, &mut pieces) {
            Err(error) => {
                cancel_writes(disk, pieces);
                self.complete_refused(number, &error);
            }
            Ok(TranslationResult::Blocked(blocked)) => {
                // The whole request will be translated again, so the ranges translated so far are
                // given up.
                cancel_writes(disk, pieces);
                pending_discard.awaits_blocking_operation = true;
                disk.pending_discard = Some(pending_discard);
                self.start_blocking_operation(disk_number, blocked);
                return false;
            }
            Ok(TranslationResult::Ready) => {
                if !pieces.is_empty() {
                    disk.ranges_being_zeroed.insert(number, pieces);
                }
                disk.requests_with_io += 1;
                self.submit_parts(number);
            }
        }
        true
    }
}

/// Reports to the image that ranges which it has translated for writing will not be written.
fn cancel_writes(disk: &mut DiskState, pieces: Vec<ByteRange>) {
    for piece in pieces {
        disk.own_layer().image.handle_write_failed(piece);
    }
}

/// Returns true if the request must fail where zeros would have to be written
/// (`BLKDEV_ZERO_NOFALLBACK`).
pub(crate) fn is_only_if_fast(op: DiskOp) -> bool {
    matches!(op, DiskOp::WriteZeroes { only_if_fast: true, .. })
}

/// Returns the subranges of `range` that must be overwritten with zeros, as few as possible.
/// `existing`: extents of the range; unallocated ones are skipped if `may_unmap`. An image may have
/// room for the metadata of one change of any size, but not of many changes at once.
fn to_write(range: ByteRange, existing: &[ImageExtent], may_unmap: bool) -> Vec<ByteRange> {
    let mut parts: Vec<ByteRange> = Vec::new();
    let mut remaining = range;
    for ImageExtent { location, len } in existing {
        let (part, next) = remaining.split_at(*len);
        remaining = next;
        if *location == Location::Zero && may_unmap {
            continue;
        }
        let joined = parts.last().filter(|last| last.end() == part.offset());
        match joined.and_then(|last| ByteRange::new(last.offset(), last.len() + part.len())) {
            Some(joined) => {
                parts.pop();
                parts.push(joined);
            }
            None => parts.push(part),
        }
    }
    parts
}

/// Frees those parts of a range that can be freed. I/O for other parts that must read as zeros is
/// added to `scratch.parts`, and the ranges that the image has translated for it to `pieces`.
fn free(
    disk: &mut DiskState,
    request: usize,
    op: DiskOp,
    range: ByteRange,
    scratch: &mut Scratch,
    pieces: &mut Vec<ByteRange>,
) -> Result<TranslationResult, ImageError> {
    scratch.parts.clear();
    let file = disk.layers[0].file;
    let image = &mut disk.own_layer().image;
    let mut zeroed = Vec::new();
    let may_unmap = matches!(op, DiskOp::Discard | DiskOp::WriteZeroes { may_unmap: true, .. });
    if may_unmap {
        if let Some(blocked) = blocking_operation(0, image.discard(range, &mut zeroed)?) {
            return Ok(TranslationResult::Blocked(blocked));
        }
    } else {
        zeroed.push(range);
    }
    if op == DiskOp::Discard {
        return Ok(TranslationResult::Ready);
    }
    for range in zeroed {
        let mut existing: Vec<ImageExtent> = Vec::new();
        if let Some(blocked) = blocking_operation(0, image.translate_read(range, &mut existing)?) {
            return Ok(TranslationResult::Blocked(blocked));
        }
        for part in to_write(range, &existing, may_unmap) {
            scratch.extents.clear();
            if let Some(blocked) =
                blocking_operation(0, image.translate_write(part, &mut scratch.extents)?)
            {
                return Ok(TranslationResult::Blocked(blocked));
            }
            pieces.push(part);
            for &ImageExtent { location, len } in &scratch.extents {
                if let Location::File(offset) = location {
                    let only_if_fast = is_only_if_fast(op);
                    let action = PartAction::Zero { may_unmap: false, only_if_fast };
                    scratch.parts.push(RequestPart { request, file, offset, len, action });
                }
            }
        }
    }
    Ok(TranslationResult::Ready)
}
