//! A VM's memory and the driver's side of rings in it, based on vm-memory, without code of the
//! crate under test.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod any;
pub mod packed;
mod split;
pub mod stepper;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SeekFrom, ftruncate, memfd_create, seek};
pub use split::Driver;
use suimon_eventfd::PeerEventFd;
use suimon_ring::{GuestMemory, InterruptLine, RegionSpec};
use virtio_bindings::virtio_ring::{VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap};

pub const NEXT: u16 = VRING_DESC_F_NEXT as u16;
pub const WRITE: u16 = VRING_DESC_F_WRITE as u16;
pub const INDIRECT: u16 = VRING_DESC_F_INDIRECT as u16;

/// Guest-physical address of the first byte of memory.
pub const GUEST_BASE: u64 = 0x10_0000;
/// Address of the first byte of memory in the front-end.
pub const USER_BASE: u64 = 0x7f00_0000_0000;
/// Size in bytes of the indirect table of each descriptor slot or buffer id.
const TABLE_BYTES: u64 = 64 * 16;
/// Size in bytes of the buffer area of each descriptor slot or buffer id.
const AREA_BYTES: u64 = 0x2_0000;

/// Memory of a VM that contains one ring.
pub struct Vm {
    pub file: File,
    pub memory: GuestMemoryMmap,
    /// Sizes of the consecutive regions in bytes.
    regions: Vec<u64>,
}

impl Vm {
    /// Creates memory of two regions that meet at an unaligned address inside the buffers.
    pub fn new(size: u16) -> Self {
        let bytes = 0x10_0000 + u64::from(size) * (TABLE_BYTES + AREA_BYTES);
        let bytes = bytes.next_multiple_of(0x1000);
        let first = (bytes / 2).next_multiple_of(0x1000);
        Self::with_regions(vec![first, bytes - first])
    }

    /// Creates memory of `count` regions of about the same size. The first one contains the ring.
    pub fn of_regions(size: u16, count: u64) -> Self {
        let bytes = 0x10_0000 + u64::from(size) * (TABLE_BYTES + AREA_BYTES);
        let region_bytes = bytes.div_ceil(count).next_multiple_of(0x1000).max(0x10_0000);
        Self::with_regions(vec![region_bytes; count as usize])
    }

    pub fn with_regions(regions: Vec<u64>) -> Self {
        let fd = memfd_create("vm", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, regions.iter().sum()).unwrap();
        let file = File::from(fd);
        let mut offset = 0;
        let ranges: Vec<_> = regions
            .iter()
            .map(|bytes| {
                let range = (
                    GuestAddress(GUEST_BASE + offset),
                    *bytes as usize,
                    Some(FileOffset::new(file.try_clone().unwrap(), offset)),
                );
                offset += bytes;
                range
            })
            .collect();
        Self { memory: GuestMemoryMmap::from_ranges_with_files(ranges).unwrap(), file, regions }
    }

    /// Creates another VM with the same memory contents. Pages that were never written stay
    /// unallocated.
    pub fn copy(&self) -> Self {
        let copy = Self::with_regions(self.regions.clone());
        let mut end = 0;
        while let Ok(start) = seek(&self.file, SeekFrom::Data(end)) {
            end = seek(&self.file, SeekFrom::Hole(start)).unwrap();
            let mut bytes = vec![0; (end - start) as usize];
            self.file.read_exact_at(&mut bytes, start).unwrap();
            copy.file.write_all_at(&bytes, start).unwrap();
        }
        copy
    }

    /// Maps the memory as a device does. Regions adjacent in guest addresses are far apart in the
    /// front-end's addresses.
    pub fn map(&self) -> Arc<GuestMemory> {
        let mut offset = 0;
        let specs: Vec<_> = self
            .regions
            .iter()
            .enumerate()
            .map(|(index, bytes)| {
                let spec = RegionSpec {
                    guest_addr: GUEST_BASE + offset,
                    size: *bytes,
                    user_addr: USER_BASE + ((index as u64) << 40) + offset,
                    mmap_offset: offset,
                    fd: self.file.as_fd(),
                };
                offset += bytes;
                spec
            })
            .collect();
        Arc::new(GuestMemory::map(&specs).unwrap())
    }
}

/// Buffer of a chain as laid out by the driver.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub addr: u64,
    pub len: u32,
}

/// Used entry of a ring, as the driver reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    pub head: u16,
    pub len: u32,
}

/// Returns an offset that distributes the areas of neighbouring slots or ids over different cache
/// sets.
fn stagger(slot: u16) -> u64 {
    u64::from(slot % 64) * 192
}

/// Creates a non-blocking eventfd.
pub fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// Reads an eventfd's counter: the number of signals since the previous read.
pub fn count(fd: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    rustix::io::read(fd, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
}

/// Returns the ring's side of a kick eventfd. Its counter is 0.
pub fn kick_eventfd(fd: &OwnedFd) -> Arc<PeerEventFd> {
    Arc::new(PeerEventFd::for_signalling(fd.try_clone().unwrap()).unwrap())
}

/// Creates a call line and returns it with its eventfd.
pub fn call_line() -> (Arc<InterruptLine>, OwnedFd) {
    let far = event();
    let line = Arc::new(InterruptLine::new());
    line.connect(Some(PeerEventFd::for_signalling(far.try_clone().unwrap()).unwrap()));
    (line, far)
}
