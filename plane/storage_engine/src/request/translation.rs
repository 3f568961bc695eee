//! Translation of requests to file ranges through the layers of a disk.

use suimon_image::{ByteRange, ImageError, ImageExtent, ImageFault, Location, Translation};

use crate::disk::{BlockingOperation, DiskState};
use crate::request::{PartAction, RequestPart};

/// Result of translating a range of a disk to ranges of files.
pub(crate) enum TranslationResult {
    /// The whole range is translated.
    Ready,
    /// The translation must be repeated after this operation.
    Blocked(BlockingOperation),
}

/// Lists and a stack that all translations of a worker reuse, to avoid allocations.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) extents: Vec<ImageExtent>,
    pub(crate) parts: Vec<RequestPart>,
    /// Ranges of the payload that read as zeros: offset and length in bytes.
    pub(crate) zero_payload_ranges: Vec<(u64, u64)>,
    /// Stack of ranges to be translated: number of the layer, range, and offset in the payload.
    open: Vec<(usize, ByteRange, u64)>,
}

impl Scratch {
    fn clear(&mut self) {
        self.extents.clear();
        self.parts.clear();
        self.zero_payload_ranges.clear();
        self.open.clear();
    }
}

/// Returns the operation that must end before the image of a layer can translate a range; `None` if
/// the translation is complete.
pub(crate) fn blocking_operation(layer: usize, located: Translation) -> Option<BlockingOperation> {
    match located {
        Translation::Ready => None,
        Translation::NeedsMetadata(needed) => Some(BlockingOperation::MetadataRead(layer, needed)),
        Translation::NeedsCommit => Some(BlockingOperation::Commit),
    }
}

/// Translates a read of the request to parts and zeros in `scratch`, through all layers of the
/// disk.
#[inline]
pub(crate) fn translate_read(
    disk: &mut DiskState,
    request: usize,
    range: ByteRange,
    scratch: &mut Scratch,
) -> Result<TranslationResult, ImageError> {
    scratch.clear();
    if let Some(piece) = &disk.contiguous_range {
        if let Some(offset) = piece.locate(range) {
            let action = PartAction::Read { to: 0 };
            scratch.parts.push(RequestPart {
                request,
                file: piece.file,
                offset,
                len: range.len(),
                action,
            });
            return Ok(TranslationResult::Ready);
        }
    }
    scratch.open.push((0, range, 0));
    while let Some((number, range, payload)) = scratch.open.pop() {
        let Some(layer) = disk.layers.get_mut(number) else {
            return Err(ImageError::new("parent", range.offset(), ImageFault::MissingStructure));
        };
        // A parent reads as zeros beyond its end.
        let size = layer.image.disk_geometry().size_bytes.max(range.offset());
        let (range, after) = range.split_at(size - range.offset());
        if !after.is_empty() {
            scratch.zero_payload_ranges.push((payload + range.len(), after.len()));
        }
        scratch.extents.clear();
        if range.is_empty() {
            continue;
        }
        let located = layer.image.translate_read(range, &mut scratch.extents)?;
        if let Some(blocked) = blocking_operation(number, located) {
            return Ok(TranslationResult::Blocked(blocked));
        }
        let (mut remaining, mut payload_offset) = (range, payload);
        for &ImageExtent { location, len } in &scratch.extents {
            let (current, next) = remaining.split_at(len);
            match location {
                Location::Zero => scratch.zero_payload_ranges.push((payload_offset, current.len())),
                Location::Parent => scratch.open.push((number + 1, current, payload_offset)),
                Location::File(offset) => scratch.parts.push(RequestPart {
                    request,
                    file: layer.file,
                    offset,
                    len: current.len(),
                    action: PartAction::Read { to: payload_offset },
                }),
            }
            payload_offset += current.len();
            remaining = next;
        }
    }
    Ok(TranslationResult::Ready)
}

/// Translates a write of the request to parts in `scratch`, in the disk's own file.
pub(crate) fn translate_write(
    disk: &mut DiskState,
    request: usize,
    range: ByteRange,
    is_durable: bool,
    scratch: &mut Scratch,
) -> Result<TranslationResult, ImageError> {
    scratch.clear();
    let layer = disk.own_layer();
    let located = layer.image.translate_write(range, &mut scratch.extents)?;
    if let Some(blocked) = blocking_operation(0, located) {
        return Ok(TranslationResult::Blocked(blocked));
    }
    let mut source_offset = 0;
    for &ImageExtent { location, len } in &scratch.extents {
        let Location::File(offset) = location else {
            return Err(ImageError::new("payload", range.offset(), ImageFault::MissingStructure));
        };
        let action = PartAction::Write { from: source_offset, is_durable };
        scratch.parts.push(RequestPart { request, file: layer.file, offset, len, action });
        source_offset += len;
    }
    Ok(TranslationResult::Ready)
}
