//! Memory shared with the back-end: a ring, its requests, and their payloads.

use std::fs::File;

use anyhow::{Context, Result};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vm_memory::{
    FileOffset, GuestAddress, GuestMemory, GuestMemoryMmap, GuestMemoryRegion, VolatileSlice,
};

/// Guest-physical address of the shared memory.
pub(crate) const GUEST_BASE: u64 = 0x10_0000;
/// Address of the shared memory in the front-end (`user_addr` of the region).
pub(crate) const USER_BASE: u64 = 0x7f00_0000_0000;

/// Entries of the ring, and maximum number of requests in flight.
pub(crate) const ENTRIES: u16 = 256;
/// Maximum number of descriptors of a request: header, segments and status.
pub(crate) const REQUEST_DESCRIPTORS_MAX: u64 = 64;

/// Offset of the descriptor table in the shared memory.
pub(crate) const DESCRIPTORS_AT: u64 = 0;
/// Offset of the driver area (available ring).
pub(crate) const DRIVER_AREA_AT: u64 = 0x2000;
/// Offset of the device area (used ring).
pub(crate) const DEVICE_AREA_AT: u64 = 0x3000;
/// Offset of the indirect descriptor tables, one for each request.
pub(crate) const TABLES_AT: u64 = 0x1_0000;
pub(crate) const TABLE_BYTES: u64 = REQUEST_DESCRIPTORS_MAX * 16;
/// Offset of the request headers. The status of a request is in the same cache line, as in drivers.
pub(crate) const REQUESTS_AT: u64 = TABLES_AT + ENTRIES as u64 * TABLE_BYTES;
pub(crate) const REQUEST_BYTES: u64 = 128;
pub(crate) const STATUS_AT: u64 = 16;
pub(crate) const BUFFERS_AT: u64 = 0x10_0000;

/// Shared memory, backed by a memfd.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
    mapped: GuestMemoryMmap,
    bytes: u64,
}

impl Memory {
    /// Allocates memory with a payload buffer of `block` bytes for each request.
    pub(crate) fn new(block: u64) -> Result<Self> {
        let bytes =
            block.checked_mul(ENTRIES.into()).and_then(|total| total.checked_add(BUFFERS_AT));
        let bytes = bytes.context("requests are too long")?.next_multiple_of(4096);
        let file = File::from(memfd_create("disk_speed", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, bytes).with_context(|| format!("there are no {bytes} bytes of memory"))?;
        let length = usize::try_from(bytes).context("requests are too long")?;
        let region =
            (GuestAddress(GUEST_BASE), length, Some(FileOffset::new(file.try_clone()?, 0)));
        let mapped = GuestMemoryMmap::from_ranges_with_files([region])
            .with_context(|| format!("{bytes} bytes of memory cannot be mapped"))?;
        Ok(Self { file, mapped, bytes })
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Returns a slice of the whole memory.
    pub(crate) fn slice(&self) -> Result<VolatileSlice<'_>> {
        let region = self.mapped.find_region(GuestAddress(GUEST_BASE)).context("no memory")?;
        Ok(region.as_volatile_slice()?)
    }
}
