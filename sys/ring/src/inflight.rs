//! In-flight region: shared memory in which rings record buffers that were taken and not returned
//! (vhost-user, "Inflight I/O tracking"). The front-end keeps the region while the back-end is
//! restarted. The next back-end reads from it a ring's position and the buffers to process again.
//!
//! The region has one part per vring, of the split or the packed layout, aligned to 64 bytes. A
//! part with version 0 is empty: the ring starts at the front-end's base. A ring writes version 1
//! when it starts, and 0 when it is dropped in order, because then the front-end has its position
//! and nothing is in flight. Version 1 in a part that is opened therefore means that the previous
//! process died. In that case the part determines the position, because the front-end cannot.
//!
//! Rings of a network device take and return buffers in the driver's order, in batches. A batch is
//! recorded immediately before it is returned. Until then its buffers are still available in the
//! ring, as the position in the part states. Request rings return buffers in any order and record
//! each when it is taken. The position of such a ring follows from the same fields: the used
//! buffers are followed by those in flight, oldest first, then by the available ones.
//!
//! The front-end can write any contents to the region: indices are checked, lists are followed no
//! further than their maximum length, and a running ring keeps its own state in private memory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use crate::addresses::QUEUE_SIZE_MAX;
use crate::fault::{InflightError, RingFault};
use crate::inflight_layout::{
    PACKED_ENTRY_BYTES, PACKED_HEADER_BYTES, SPLIT_ENTRY_BYTES, SPLIT_HEADER_BYTES, VERSION,
    VERSION_AT,
};
use crate::shared_map::SharedMap;

/// Alignment of each part in bytes.
const PART_ALIGNMENT: usize = 64;

/// Dimensions of an in-flight region (`VhostUserInflight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightLayout {
    /// Number of vrings that have a part.
    pub queues: u16,
    /// Maximum number of entries of a vring.
    pub queue_size: u16,
    /// True if the rings are packed.
    pub is_packed: bool,
}

impl InflightLayout {
    /// Returns the length of one vring's part in bytes.
    fn part_bytes(&self) -> usize {
        let (header, entry) = if self.is_packed {
            (PACKED_HEADER_BYTES, PACKED_ENTRY_BYTES)
        } else {
            (SPLIT_HEADER_BYTES, SPLIT_ENTRY_BYTES)
        };
        (header + entry * usize::from(self.queue_size)).next_multiple_of(PART_ALIGNMENT)
    }

    /// Returns the length of the region in bytes (`mmap size`).
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

/// Mapped in-flight region of one device.
pub struct InflightRegion {
    layout: InflightLayout,
    map: SharedMap,
}

impl core::fmt::Debug for InflightRegion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Inflight").field(&self.layout).finish()
    }
}

impl InflightRegion {
    /// Creates a file with an empty region at offset 0 (`VHOST_USER_GET_INFLIGHT_FD`). Returns the
    /// region and the file, whose length is sealed.
    ///
    /// # Errors
    /// A dimension is 0 or too large, or the host failed to create the file.
    pub fn create(layout: InflightLayout) -> Result<(Arc<Self>, OwnedFd), InflightError> {
        layout.check()?;
        let host = |action: &'static str| {
            move |errno: rustix::io::Errno| InflightError::Host { action, source: errno.into() }
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("suimon-inflight", flags).map_err(host("create a file for"))?;
        ftruncate(&fd, layout.bytes()).map_err(host("lengthen"))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&fd, seals).map_err(host("seal"))?;
        Ok((Self::map(fd.as_fd(), 0, layout.bytes(), layout)?, fd))
    }

    /// Maps a region of `bytes` bytes at `offset` of a file (`VHOST_USER_SET_INFLIGHT_FD`), with
    /// its contents.
    ///
    /// # Errors
    /// A dimension is 0 or too large, the region needs more than `bytes`, or the file cannot be
    /// mapped.
    pub fn map(
        fd: BorrowedFd<'_>,
        offset: u64,
        bytes: u64,
        layout: InflightLayout,
    ) -> Result<Arc<Self>, InflightError> {
        layout.check()?;
        if bytes < layout.bytes() {
            return Err(InflightError::TooShort { bytes, required: layout.bytes() });
        }
        let map = SharedMap::new(fd, offset, layout.bytes())
            .map_err(|source| InflightError::Map { source })?;
        if !map.is_aligned() {
            return Err(InflightError::Alignment { offset });
        }
        Ok(Arc::new(Self { layout, map }))
    }

    /// Returns the dimensions of the region.
    pub fn layout(&self) -> InflightLayout {
        self.layout
    }

    /// Returns the part of vring `index`; `None` if it has none.
    pub fn queue(self: &Arc<Self>, index: u16) -> Option<InflightQueue> {
        (index < self.layout.queues).then(|| InflightQueue { region: Arc::clone(self), index })
    }

    /// Empties every part, as after a reset of the device: rings then start at the front-end's
    /// base. No ring may use the region meanwhile.
    pub fn clear(&self) {
        for index in 0..usize::from(self.layout.queues) {
            self.map.store_16(index * self.layout.part_bytes() + VERSION_AT, 0);
        }
    }
}

/// Part of an in-flight region that records the buffers of one vring.
#[derive(Clone, Debug)]
pub struct InflightQueue {
    region: Arc<InflightRegion>,
    index: u16,
}

impl InflightQueue {
    /// Returns true if a ring used the part when its process died. The next ring with the part
    /// takes its position from it.
    pub fn was_in_use_at_crash(&self) -> bool {
        self.fields().load_16(VERSION_AT) != 0
    }

    pub(crate) fn fields(&self) -> InflightFields {
        let offset = self.region.layout.part_bytes() * usize::from(self.index);
        InflightFields { region: Arc::clone(&self.region), offset }
    }

    /// Checks that the part has the layout and the number of entries of a ring, and a supported
    /// version. `queue` is named in errors.
    pub(crate) fn check(&self, queue: u16, size: u16, is_packed: bool) -> Result<(), RingFault> {
        let layout = self.region.layout;
        if layout.is_packed != is_packed {
            let reason = "the region was created for the other ring format (split or packed)";
            return Err(RingFault::Inflight { queue, reason });
        }
        if layout.queue_size < size {
            let reason = "the region was created for a smaller ring";
            return Err(RingFault::Inflight { queue, reason });
        }
        let version = self.fields().load_16(VERSION_AT);
        if version > VERSION {
            let reason = "the region has an unknown version";
            return Err(RingFault::Inflight { queue, reason });
        }
        Ok(())
    }
}

/// Access to the fields of one part.
#[derive(Clone)]
pub(crate) struct InflightFields {
    region: Arc<InflightRegion>,
    offset: usize,
}

impl InflightFields {
    pub(crate) fn load_8(&self, offset: usize) -> u8 {
        self.region.map.load_8(self.offset + offset)
    }

    pub(crate) fn load_16(&self, offset: usize) -> u16 {
        self.region.map.load_16(self.offset + offset)
    }

    pub(crate) fn load_64(&self, offset: usize) -> u64 {
        self.region.map.load_64(self.offset + offset)
    }

    pub(crate) fn store_8(&self, offset: usize, value: u8) {
        self.region.map.store_8(self.offset + offset, value);
    }

    pub(crate) fn store_16(&self, offset: usize, value: u16) {
        self.region.map.store_16(self.offset + offset, value);
    }

    pub(crate) fn store_64(&self, offset: usize, value: u64) {
        self.region.map.store_64(self.offset + offset, value);
    }
}
