//! Translation of requests to file ranges through the layers of a disk.

use suimon_image::{ByteRange, ImageError, ImageExtent, ImageFault, Location, Translation};

use crate::disk::{BlockedBy, DiskState};
use crate::request::{Part, PartAction};

/// Result of translating a range of a disk to ranges of files.
pub(crate) enum Resolved {
    /// The whole range is translated.
    Ready,
    /// The translation must wait for this operation.
    Not(BlockedBy),
}

/// Lists and a stack that all translations reuse, to avoid allocations.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) extents: Vec<ImageExtent>,
    pub(crate) parts: Vec<Part>,
    /// Ranges of the payload that are zeros: offset and length in bytes.
    pub(crate) zeros: Vec<(u64, u64)>,
    /// Ranges to be translated: layer, range, and offset in the payload.
    open: Vec<(usize, ByteRange, u64)>,
}

impl Scratch {
    fn clear(&mut self) {
        self.extents.clear();
        self.parts.clear();
        self.zeros.clear();
        self.open.clear();
    }
}

/// Returns the operation that must end before an image can translate a range.
pub(crate) fn obstacle(layer: usize, located: Translation) -> Option<BlockedBy> {
    match located {
        Translation::Ready => None,
        Translation::NeedsMetadata(wanted) => Some(BlockedBy::Metadata(layer, wanted)),
        Translation::NeedsCommit => Some(BlockedBy::Commit),
    }
}

/// Translates a read to parts of files and to zeros.
#[inline]
pub(crate) fn resolve_read(
    disk: &mut DiskState,
    request: usize,
    range: ByteRange,
    scratch: &mut Scratch,
) -> Result<Resolved, ImageError> {
    scratch.clear();
    if let Some(one) = &disk.one_piece {
        if let Some(offset) = one.locate(range) {
            let action = PartAction::Read { to: 0 };
            scratch.parts.push(Part { request, file: one.file, offset, len: range.len(), action });
            return Ok(Resolved::Ready);
        }
    }
    scratch.open.push((0, range, 0));
    while let Some((number, range, payload)) = scratch.open.pop() {
        let Some(layer) = disk.layers.get_mut(number) else {
            return Err(ImageError::new("parent", range.offset(), ImageFault::MissingStructure));
        };
        // A parent reads as zeros beyond its end.
        let size = layer.image.disk_geometry().size.max(range.offset());
        let (range, behind) = range.split_at(size - range.offset());
        if !behind.is_empty() {
            scratch.zeros.push((payload + range.len(), behind.len()));
        }
        scratch.extents.clear();
        if range.is_empty() {
            continue;
        }
        let located = layer.image.translate_read(range, &mut scratch.extents)?;
        if let Some(obstacle) = obstacle(number, located) {
            return Ok(Resolved::Not(obstacle));
        }
        let (mut rest, mut to) = (range, payload);
        for &ImageExtent { location: place, len } in &scratch.extents {
            let (here, next) = rest.split_at(len);
            match place {
                Location::Zero => scratch.zeros.push((to, here.len())),
                Location::Parent => scratch.open.push((number + 1, here, to)),
                Location::File(offset) => scratch.parts.push(Part {
                    request,
                    file: layer.file,
                    offset,
                    len: here.len(),
                    action: PartAction::Read { to },
                }),
            }
            to += here.len();
            rest = next;
        }
    }
    Ok(Resolved::Ready)
}

/// Translates a write to parts of the disk's own file.
pub(crate) fn resolve_write(
    disk: &mut DiskState,
    request: usize,
    range: ByteRange,
    is_durable: bool,
    scratch: &mut Scratch,
) -> Result<Resolved, ImageError> {
    scratch.clear();
    let layer = disk.own_image();
    let located = layer.image.translate_write(range, &mut scratch.extents)?;
    if let Some(obstacle) = obstacle(0, located) {
        return Ok(Resolved::Not(obstacle));
    }
    let mut from = 0;
    for &ImageExtent { location: place, len } in &scratch.extents {
        let Location::File(offset) = place else {
            return Err(ImageError::new("payload", range.offset(), ImageFault::MissingStructure));
        };
        let action = PartAction::Write { from, is_durable };
        scratch.parts.push(Part { request, file: layer.file, offset, len, action });
        from += len;
    }
    Ok(Resolved::Ready)
}
