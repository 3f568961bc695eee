//! Block status queries (NBD): allocation of a disk's bytes through its layers.

use suimon_image::{ByteRange, ImageError, ImageExtent, Location};
use suimon_ports::{Allocation, AllocationExtent, DiskOutcome};
use suimon_storage_qos::RequestPhase;

use crate::disk::{BlockingOperation, DiskState};
use crate::engine::StorageEngine;
use crate::request::EngineRequest;
use crate::request::translation::blocking_operation;

/// Maximum number of extents in a reply. Clients query the remainder separately.
pub(crate) const EXTENTS_MAX: usize = 256;

/// Bytes per query to an image. The image returns every extent of that range.
const STEP_BYTES: u64 = 16 << 20;

/// Maximum number of queries to images for one request.
const STEPS_MAX: usize = 1024;

impl StorageEngine {
    /// Reports the allocation of a request's range to its queue, and completes the request. The
    /// report may cover only the beginning of the range. Returns false if the request must wait for
    /// metadata or a commit; it is then the first of the disk's parked requests.
    pub(crate) fn report_status(&mut self, number: usize, is_first_only: bool) -> bool {
        let Some(&EngineRequest { disk: disk_number, queue, tag, range, .. }) =
            self.requests.get(number)
        else {
            return true;
        };
        let Some(disk) = self.disks.get_mut(disk_number) else { return true };
        let mut found = FoundExtents {
            extents: Vec::new(),
            extents_max: if is_first_only { 1 } else { EXTENTS_MAX },
        };
        let blocked = if disk.is_contiguous() {
            query_file(disk, range, &mut found).map(|()| None)
        } else {
            query_images(disk, range, &mut found)
        };
        // A partial result is a valid reply. A client therefore makes progress even if the image
        // keeps less metadata in memory than the range has.
        match blocked {
            Err(error) if found.extents.is_empty() => {
                self.complete_refused(number, &error);
            }
            Ok(Some(blocked)) if found.extents.is_empty() => {
                disk.parked.push_front(number);
                self.enter_phase(number, RequestPhase::Metadata);
                self.start_blocking_operation(disk_number, blocked);
                return false;
            }
            _ => {
                if let Some(queue_state) = self.queues.get_mut(queue) {
                    queue_state.queue.set_allocation(tag, &found.extents);
                }
                self.complete_request(number, DiskOutcome::Done);
            }
        }
        true
    }
}

/// Extents found so far, in ascending order of their offsets on the disk.
pub(crate) struct FoundExtents {
    pub(crate) extents: Vec<AllocationExtent>,
    pub(crate) extents_max: usize,
}

impl FoundExtents {
    /// Appends `len` bytes with this allocation status. Returns false if the limit of extents is
    /// reached and the bytes were not appended.
    fn push(&mut self, allocation: Allocation, len: u64) -> bool {
        let count = self.extents.len();
        match self.extents.last_mut() {
            _ if len == 0 => {}
            Some(last) if last.allocation == allocation => last.len = last.len.saturating_add(len),
            _ if count >= self.extents_max => return false,
            _ => self.extents.push(AllocationExtent { allocation, len }),
        }
        true
    }
}

/// Appends the extents of a range of a disk that is contiguous in its file, as the file system
/// reports them.
pub(crate) fn query_file(
    disk: &mut DiskState,
    range: ByteRange,
    found: &mut FoundExtents,
) -> Result<(), ImageError> {
    let layer = disk.own_layer();
    // The image checks whether the range is valid.
    layer.image.translate_read(range, &mut Vec::new())?;
    let start = layer.image.linear_offset().unwrap_or(0);
    let mut remaining = range;
    for _ in 0..found.extents_max.saturating_mul(2) {
        let Some(of_file) =
            ByteRange::new(start.saturating_add(remaining.offset()), remaining.len())
        else {
            break;
        };
        // Unknown allocation is reported as data, which the protocol always permits.
        let data = AllocationExtent { allocation: Allocation::Data, len: remaining.len() };
        let AllocationExtent { allocation, len } =
            layer.disk_file.allocation(of_file).unwrap_or(data);
        let len = len.clamp(1, remaining.len());
        if !found.push(allocation, len) {
            break;
        }
        remaining = remaining.split_at(len).1;
        if remaining.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Appends the extents of a range, by translations of the images, starting with the disk's own.
/// Bytes that are allocated in any of them are data. Returns the operation that must end before the
/// query can be repeated; `None` if it is complete.
pub(crate) fn query_images(
    disk: &mut DiskState,
    range: ByteRange,
    found: &mut FoundExtents,
) -> Result<Option<BlockingOperation>, ImageError> {
    let mut remaining = range;
    for _ in 0..STEPS_MAX {
        let (step, after) = remaining.split_at(STEP_BYTES);
        if step.is_empty() {
            break;
        }
        let mut open = vec![Open::Query(0, step)];
        while let Some(next) = open.pop() {
            let (number, range) = match next {
                Open::Known(allocation, len) if found.push(allocation, len) => continue,
                Open::Known(..) => return Ok(None),
                Open::Query(number, range) => (number, range),
            };
            let blocked = query_image(disk, number, range, &mut open)?;
            if blocked.is_some() {
                return Ok(blocked);
            }
        }
        remaining = after;
    }
    Ok(None)
}

/// Element of the stack of ranges that remain to be reported.
enum Open {
    Known(Allocation, u64),
    /// Range to query from the layer with this number.
    Query(usize, ByteRange),
}

/// Translates a range by the layer with this number and pushes its extents onto the stack, the
/// first extent on top. Returns the operation that must end before the translation can be repeated,
/// if any.
fn query_image(
    disk: &mut DiskState,
    number: usize,
    range: ByteRange,
    open: &mut Vec<Open>,
) -> Result<Option<BlockingOperation>, ImageError> {
    let Some(layer) = disk.layers.get_mut(number) else {
        // A read of the range fails, and reports the error.
        open.push(Open::Known(Allocation::Data, range.len()));
        return Ok(None);
    };
    // A parent reads as zeros beyond its end.
    let size = layer.image.disk_geometry().size_bytes.max(range.offset());
    let (range, after) = range.split_at(size - range.offset());
    let mut extents: Vec<ImageExtent> = Vec::new();
    if !range.is_empty() {
        let located = layer.image.translate_read(range, &mut extents)?;
        if let Some(blocked) = blocking_operation(number, located) {
            return Ok(Some(blocked));
        }
    }
    open.push(Open::Known(Allocation::Hole, after.len()));
    let first = open.len();
    let mut remaining = range;
    for ImageExtent { location, len } in extents {
        let (part, next) = remaining.split_at(len);
        remaining = next;
        open.push(match location {
            Location::File(_) => Open::Known(Allocation::Data, part.len()),
            Location::Zero => Open::Known(Allocation::Hole, part.len()),
            Location::Parent => Open::Query(number + 1, part),
        });
    }
    if let Some(of_layer) = open.get_mut(first..) {
        of_layer.reverse();
    }
    Ok(None)
}
