//! Where a read's bytes are, through the layers of a disk.

use suimon_image::{ByteRange, Extent, ImageError, ImageFault, Located, Place};

use crate::disk::{Disk, Obstacle};
use crate::request::{Part, PartAction};

/// What translating gave.
pub(crate) enum Resolved {
    /// Everything has a place.
    Ready,
    /// Something must happen first.
    Not(Obstacle),
}

/// Lists and a stack that are used for every translation.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) extents: Vec<Extent>,
    pub(crate) parts: Vec<Part>,
    /// Parts of the payload that are zeros: from where, and how many bytes.
    pub(crate) zeros: Vec<(u64, u64)>,
    /// What is still to be looked up: in which layer, what, and where in the payload.
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

/// What an image needs before it can answer.
pub(crate) fn obstacle(layer: usize, located: Located) -> Option<Obstacle> {
    match located {
        Located::Ready => None,
        Located::Need(wanted) => Some(Obstacle::Metadata(layer, wanted)),
        Located::NeedCommit => Some(Obstacle::Commit),
    }
}

/// Where the bytes of a read are: parts of files, and zeros.
#[inline]
pub(crate) fn resolve_read(
    disk: &mut Disk,
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
            return Err(ImageError::new("parent", range.offset(), ImageFault::Missing));
        };
        // What is behind a parent's end is zeros.
        let size = layer.image.shape().size.max(range.offset());
        let (range, behind) = range.split_at(size - range.offset());
        if !behind.is_empty() {
            scratch.zeros.push((payload + range.len(), behind.len()));
        }
        scratch.extents.clear();
        if range.is_empty() {
            continue;
        }
        let located = layer.image.locate(range, &mut scratch.extents)?;
        if let Some(obstacle) = obstacle(number, located) {
            return Ok(Resolved::Not(obstacle));
        }
        let (mut rest, mut to) = (range, payload);
        for &Extent { place, len } in &scratch.extents {
            let (here, next) = rest.split_at(len);
            match place {
                Place::Zero => scratch.zeros.push((to, here.len())),
                Place::Parent => scratch.open.push((number + 1, here, to)),
                Place::File(offset) => scratch.parts.push(Part {
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

/// Where a write's bytes go.
pub(crate) fn resolve_write(
    disk: &mut Disk,
    request: usize,
    range: ByteRange,
    is_durable: bool,
    scratch: &mut Scratch,
) -> Result<Resolved, ImageError> {
    scratch.clear();
    let layer = disk.own();
    let located = layer.image.place_write(range, &mut scratch.extents)?;
    if let Some(obstacle) = obstacle(0, located) {
        return Ok(Resolved::Not(obstacle));
    }
    let mut from = 0;
    for &Extent { place, len } in &scratch.extents {
        let Place::File(offset) = place else {
            return Err(ImageError::new("payload", range.offset(), ImageFault::Missing));
        };
        let action = PartAction::Write { from, is_durable };
        scratch.parts.push(Part { request, file: layer.file, offset, len, action });
        from += len;
    }
    Ok(Resolved::Ready)
}
