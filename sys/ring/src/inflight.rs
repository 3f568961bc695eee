//! The region in which rings keep what they have taken and not yet returned
//! (vhost-user, "Inflight I/O tracking"). The front-end holds it while the
//! back-end is away; whoever comes next finds out from it where a ring stands and
//! what is to be done again.
//!
//! The region has one part per vring, of the split or the packed layout, each
//! aligned to 64 bytes. A part whose version is 0 says nothing: the ring starts
//! where the front-end says. A ring writes version 1 when it starts and 0 when it
//! is dropped in order, because then its position is known to the front-end and
//! nothing is in flight. So version 1 in a part that is opened means that the
//! process before died, and the part is believed rather than the front-end, which
//! cannot know.
//!
//! A network device's rings take and return buffers in the driver's order, a batch at
//! a time. Their batch is noted when it is about to be returned; before, its buffers are
//! still where the driver put them, and the position in the part says so. A ring of
//! requests returns them in any order; it notes each when it takes it. Where such a ring
//! goes on is told by the same numbers: behind what was used come those in flight, oldest
//! first, and then what is available.
//!
//! What stands in the region is as trustworthy as the front-end: indices are
//! checked, lists are followed no further than they can be long, and what a ring
//! needs while it runs it keeps in its own memory.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use crate::fault::{InflightError, RingFault};
use crate::inflight_packed;
use crate::inflight_split;
use crate::setup::QUEUE_SIZE_MAX;
use crate::shared_map::SharedMap;

/// The layout's version (`version` of both layouts).
pub(crate) const VERSION: u16 = 1;
/// Where both layouts keep their version.
pub(crate) const VERSION_AT: usize = 8;
/// Where both layouts keep the number of entries.
pub(crate) const ENTRIES_AT: usize = 10;
/// What each part is aligned to.
const PART_ALIGNMENT: usize = 64;

/// What a region is made for (`VhostUserInflight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightShape {
    /// Vrings that have a part.
    pub queues: u16,
    /// Entries of the largest vring.
    pub queue_size: u16,
    /// Whether the rings are packed.
    pub is_packed: bool,
}

impl InflightShape {
    /// Length of a part in bytes.
    fn part_bytes(&self) -> usize {
        let (header, entry) = if self.is_packed {
            (inflight_packed::HEADER_BYTES, inflight_packed::ENTRY_BYTES)
        } else {
            (inflight_split::HEADER_BYTES, inflight_split::ENTRY_BYTES)
        };
        (header + entry * usize::from(self.queue_size)).next_multiple_of(PART_ALIGNMENT)
    }

    /// Length of the region in bytes (`mmap size`).
    pub fn bytes(&self) -> u64 {
        self.part_bytes() as u64 * u64::from(self.queues)
    }

    fn check(&self) -> Result<(), InflightError> {
        if self.queues == 0 || self.queue_size == 0 || self.queue_size > QUEUE_SIZE_MAX {
            return Err(InflightError::Shape {
                queues: self.queues,
                size: self.queue_size,
                max: QUEUE_SIZE_MAX,
            });
        }
        Ok(())
    }
}

/// A mapped region.
pub struct Inflight {
    shape: InflightShape,
    map: SharedMap,
}

impl core::fmt::Debug for Inflight {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Inflight").field(&self.shape).finish()
    }
}

impl Inflight {
    /// Makes an empty region (`VHOST_USER_GET_INFLIGHT_FD`) and returns the file
    /// behind it, whose length nobody can change. The region starts at offset 0.
    ///
    /// # Errors
    /// The shape is empty or too large, or the host refuses.
    pub fn create(shape: InflightShape) -> Result<(Arc<Self>, OwnedFd), InflightError> {
        shape.check()?;
        let host = |action: &'static str| {
            move |errno: rustix::io::Errno| InflightError::Host { action, source: errno.into() }
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("suimon-inflight", flags).map_err(host("make a file for"))?;
        ftruncate(&fd, shape.bytes()).map_err(host("lengthen"))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&fd, seals).map_err(host("seal"))?;
        Ok((Self::map(fd.as_fd(), 0, shape.bytes(), shape)?, fd))
    }

    /// Maps a region of this length at an offset of a file
    /// (`VHOST_USER_SET_INFLIGHT_FD`). What it says stays as it is.
    ///
    /// # Errors
    /// The shape is empty or needs more than `bytes`, or the file is no good.
    pub fn map(
        fd: BorrowedFd<'_>,
        offset: u64,
        bytes: u64,
        shape: InflightShape,
    ) -> Result<Arc<Self>, InflightError> {
        shape.check()?;
        if bytes < shape.bytes() {
            return Err(InflightError::TooShort { bytes, needed: shape.bytes() });
        }
        let map = SharedMap::new(fd, offset, shape.bytes())
            .map_err(|source| InflightError::Map { source })?;
        if !map.is_aligned() {
            return Err(InflightError::Alignment { offset });
        }
        Ok(Arc::new(Self { shape, map }))
    }

    /// Opens the region in a file that this host keeps under a name, and makes
    /// it if it is not there, of another length, or empty: for rings whose
    /// front-end keeps no region. The file's length must not change while it is
    /// mapped.
    ///
    /// # Errors
    /// As [`Inflight::map`].
    pub fn open_file(file: &File, shape: InflightShape) -> Result<Arc<Self>, InflightError> {
        shape.check()?;
        let host = |action| move |source| InflightError::Host { action, source };
        if file.metadata().map_err(host("look at"))?.len() != shape.bytes() {
            // What a region of another shape says is not about these rings.
            file.set_len(0).map_err(host("empty"))?;
            file.set_len(shape.bytes()).map_err(host("lengthen"))?;
        }
        Self::map(file.as_fd(), 0, shape.bytes(), shape)
    }

    /// What it was made for.
    pub fn shape(&self) -> InflightShape {
        self.shape
    }

    /// The part of vring `index`; `None` if it has none.
    pub fn queue(self: &Arc<Self>, index: u16) -> Option<InflightQueue> {
        (index < self.shape.queues).then(|| InflightQueue { region: Arc::clone(self), index })
    }

    /// Makes every part say nothing, as after a reset of the device: rings start
    /// where the front-end says. No ring may be using it.
    pub fn clear(&self) {
        for index in 0..usize::from(self.shape.queues) {
            self.map.store_16(index * self.shape.part_bytes() + VERSION_AT, 0);
        }
    }
}

/// One vring's part of a region.
#[derive(Clone, Debug)]
pub struct InflightQueue {
    region: Arc<Inflight>,
    index: u16,
}

impl InflightQueue {
    /// Whether a ring was using the part when its process died: then the ring
    /// that starts with it takes its position from here.
    pub fn was_abandoned(&self) -> bool {
        self.part().load_16(VERSION_AT) != 0
    }

    pub(crate) fn part(&self) -> Part {
        let at = self.region.shape.part_bytes() * usize::from(self.index);
        Part { region: Arc::clone(&self.region), at }
    }

    /// Checks that the part is one for a ring of this form and size.
    pub(crate) fn check(&self, queue: u16, size: u16, is_packed: bool) -> Result<(), RingFault> {
        let shape = self.region.shape;
        if shape.is_packed != is_packed {
            let reason = "the region was made for rings of the other form";
            return Err(RingFault::Inflight { queue, reason });
        }
        if shape.queue_size < size {
            let reason = "the region was made for a smaller ring";
            return Err(RingFault::Inflight { queue, reason });
        }
        let version = self.part().load_16(VERSION_AT);
        if version > VERSION {
            let reason = "the region has a version that is not known";
            return Err(RingFault::Inflight { queue, reason });
        }
        Ok(())
    }
}

/// The cells of one part.
#[derive(Clone)]
pub(crate) struct Part {
    region: Arc<Inflight>,
    at: usize,
}

impl Part {
    pub(crate) fn load_8(&self, at: usize) -> u8 {
        self.region.map.load_8(self.at + at)
    }

    pub(crate) fn load_16(&self, at: usize) -> u16 {
        self.region.map.load_16(self.at + at)
    }

    pub(crate) fn load_64(&self, at: usize) -> u64 {
        self.region.map.load_64(self.at + at)
    }

    pub(crate) fn store_8(&self, at: usize, value: u8) {
        self.region.map.store_8(self.at + at, value);
    }

    pub(crate) fn store_16(&self, at: usize, value: u16) {
        self.region.map.store_16(self.at + at, value);
    }

    pub(crate) fn store_64(&self, at: usize, value: u64) {
        self.region.map.store_64(self.at + at, value);
    }
}
