//! The driver's side of a ring, over vm-memory and virtio-queue's test driver:
//! code that shares nothing with the engine under test.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use suimon_ring::{CallLine, GuestMemory, RegionSpec, RingAddresses, RingFeatures, RingSetup};
use virtio_bindings::virtio_ring::{VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};
use virtio_queue::desc::{RawDescriptor, split::Descriptor};
use virtio_queue::mock::{AvailRing, DescriptorTable, UsedRing};
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

pub const NEXT: u16 = VRING_DESC_F_NEXT as u16;
pub const WRITE: u16 = VRING_DESC_F_WRITE as u16;
pub const INDIRECT: u16 = VRING_DESC_F_INDIRECT as u16;

/// Guest memory starts here, ...
pub const GUEST_BASE: u64 = 0x10_0000;
/// ... and here in the front-end.
pub const USER_BASE: u64 = 0x7f00_0000_0000;
/// Each descriptor slot has a table for indirect descriptors ...
const TABLE_BYTES: u64 = 64 * 16;
/// ... and an area for its buffers.
const AREA_BYTES: u64 = 0x2_0000;

/// A VM's memory and one ring in it.
pub struct Vm {
    pub file: File,
    pub memory: GuestMemoryMmap,
    /// Sizes of the regions, one behind the other.
    regions: Vec<u64>,
}

impl Vm {
    /// Memory in two regions that meet at an odd place inside the buffers.
    pub fn new(size: u16) -> Self {
        let bytes = 0x10_0000 + u64::from(size) * (TABLE_BYTES + AREA_BYTES);
        let bytes = bytes.next_multiple_of(0x1000);
        let first = (bytes / 2).next_multiple_of(0x1000);
        Self::with_regions(vec![first, bytes - first])
    }

    pub fn with_regions(regions: Vec<u64>) -> Self {
        let fd = memfd_create("vm", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, regions.iter().sum()).unwrap();
        let file = File::from(fd);
        let mut at = 0;
        let ranges: Vec<_> = regions
            .iter()
            .map(|bytes| {
                let range = (
                    GuestAddress(GUEST_BASE + at),
                    *bytes as usize,
                    Some(FileOffset::new(file.try_clone().unwrap(), at)),
                );
                at += bytes;
                range
            })
            .collect();
        Self { memory: GuestMemoryMmap::from_ranges_with_files(ranges).unwrap(), file, regions }
    }

    /// The same memory as a device maps it. Neighbours in guest addresses are far
    /// apart in the front-end's.
    pub fn map(&self) -> Arc<GuestMemory> {
        let mut at = 0;
        let specs: Vec<_> = self
            .regions
            .iter()
            .enumerate()
            .map(|(index, bytes)| {
                let spec = RegionSpec {
                    guest_addr: GUEST_BASE + at,
                    size: *bytes,
                    user_addr: USER_BASE + ((index as u64) << 40) + at,
                    mmap_offset: at,
                    fd: self.file.as_fd(),
                };
                at += bytes;
                spec
            })
            .collect();
        Arc::new(GuestMemory::map(&specs).unwrap())
    }
}

/// One piece of a chain as the driver lays it out.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub addr: u64,
    pub len: u32,
}

/// A used entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    pub head: u16,
    pub len: u32,
}

/// The driver of one ring.
pub struct Driver<'a> {
    pub vm: &'a Vm,
    pub ring_addr: u64,
    /// Placed by hand: `MockSplitQueue` lets the used ring overlap the available
    /// ring's last fields.
    pub descriptors: DescriptorTable<'a, GuestMemoryMmap>,
    pub available: AvailRing<'a, GuestMemoryMmap>,
    pub used_ring: UsedRing<'a, GuestMemoryMmap>,
    pub available_at: GuestAddress,
    pub used_at: GuestAddress,
    pub size: u16,
    pub avail: u16,
    pub used: u16,
    free: Vec<u16>,
    /// Slots of the chain that starts at each head.
    chains: Vec<Vec<u16>>,
    /// Pieces of the chain that starts at each head.
    pub pieces: Vec<Vec<Piece>>,
}

impl<'a> Driver<'a> {
    pub fn new(vm: &'a Vm, size: u16) -> Self {
        Self::starting_at(vm, size, 0)
    }

    /// A ring whose indices already stand at `base`.
    pub fn starting_at(vm: &'a Vm, size: u16, base: u16) -> Self {
        Self::placed(vm, size, base, GUEST_BASE)
    }

    /// A ring at `ring_addr`; its buffers are at the same distance from the first
    /// ring's, times 256.
    pub fn placed(vm: &'a Vm, size: u16, base: u16, ring_addr: u64) -> Self {
        let at = |offset: u64| GuestAddress(ring_addr + offset);
        let entries = u64::from(size);
        let available_at = at(16 * entries);
        let descriptors = DescriptorTable::new(&vm.memory, at(0), size);
        let available = AvailRing::new(&vm.memory, available_at, size);
        let used_at = at((18 * entries + 6).next_multiple_of(4));
        let used_ring = UsedRing::new(&vm.memory, used_at, size);
        available.idx().store(u16::to_le(base));
        used_ring.idx().store(u16::to_le(base));
        let slots = usize::from(size);
        Self {
            vm,
            ring_addr,
            descriptors,
            available,
            used_ring,
            available_at,
            used_at,
            size,
            avail: base,
            used: base,
            free: (0..size).rev().collect(),
            chains: vec![Vec::new(); slots],
            pieces: vec![Vec::new(); slots],
        }
    }

    pub fn setup(
        &self,
        features: u64,
        kick: Option<&Arc<OwnedFd>>,
        call: &Arc<CallLine>,
    ) -> RingSetup {
        let user = |addr: GuestAddress| USER_BASE + (addr.0 - GUEST_BASE);
        RingSetup {
            queue: 0,
            size: u32::from(self.size),
            addresses: RingAddresses {
                descriptors: USER_BASE + self.ring_addr - GUEST_BASE,
                available: user(self.available_at),
                used: user(self.used_at),
            },
            base: self.avail,
            features: RingFeatures(features),
            kick: kick.cloned(),
            call: Arc::clone(call),
            error: Arc::default(),
        }
    }

    /// virtio-queue's device side of this ring.
    pub fn reference(&self, event_idx: bool) -> Queue {
        let halves = |addr: u64| (Some(addr as u32), Some((addr >> 32) as u32));
        let mut queue = Queue::new(self.size).unwrap();
        queue.set_size(self.size);
        let (low, high) = halves(self.ring_addr);
        queue.set_desc_table_address(low, high);
        let (low, high) = halves(self.available_at.0);
        queue.set_avail_ring_address(low, high);
        let (low, high) = halves(self.used_at.0);
        queue.set_used_ring_address(low, high);
        queue.set_ready(true);
        queue.set_event_idx(event_idx);
        queue.set_next_avail(self.avail);
        queue.set_next_used(self.used);
        queue
    }

    /// Where slot `slot` keeps its buffers.
    pub fn area(&self, slot: u16) -> u64 {
        self.tables()
            + u64::from(self.size) * TABLE_BYTES
            + u64::from(slot) * AREA_BYTES
            + stagger(slot)
    }

    fn tables(&self) -> u64 {
        GUEST_BASE + 0x10_0000 + (self.ring_addr - GUEST_BASE) * 0x100
    }

    pub fn free_slots(&self) -> usize {
        self.free.len()
    }

    /// Makes a chain of buffers with these lengths available, its buffers filled
    /// with `bytes`. `None` if slots are short.
    pub fn add(
        &mut self,
        lens: &[u32],
        indirect: bool,
        writable: bool,
        bytes: &[u8],
    ) -> Option<u16> {
        let needed = if indirect { 1 } else { lens.len() };
        if self.free.len() < needed {
            return None;
        }
        let slots: Vec<u16> = (0..needed).filter_map(|_| self.free.pop()).collect();
        let head = slots[0];
        let mut at = self.area(head) + 3;
        let mut left = bytes;
        let mut pieces = Vec::new();
        for len in lens {
            let (now, later) = left.split_at(left.len().min(*len as usize));
            self.vm.memory.write_slice(now, GuestAddress(at)).unwrap();
            left = later;
            pieces.push(Piece { addr: at, len: *len });
            at += u64::from(*len) + 5;
        }
        assert!(at < self.area(head) + AREA_BYTES - stagger(63), "a test chain is too long");
        self.lay_out(&slots, indirect, if writable { WRITE } else { 0 }, &pieces);
        self.pieces[usize::from(head)] = pieces;
        self.chains[usize::from(head)] = slots;
        self.offer(head);
        Some(head)
    }

    fn lay_out(&self, slots: &[u16], indirect: bool, flag: u16, pieces: &[Piece]) {
        let last = pieces.len() - 1;
        let head = slots[0];
        let table = self.tables() + u64::from(head) * TABLE_BYTES;
        for (nth, piece) in pieces.iter().enumerate() {
            let flags = flag | if nth < last { NEXT } else { 0 };
            let next = match (indirect, nth < last) {
                (_, false) => 0,
                (true, true) => nth as u16 + 1,
                (false, true) => slots[nth + 1],
            };
            let descriptor =
                RawDescriptor::from(Descriptor::new(piece.addr, piece.len, flags, next));
            if indirect {
                let at = GuestAddress(table + 16 * nth as u64);
                self.vm.memory.write_obj(descriptor, at).unwrap();
            } else {
                self.descriptors.store(slots[nth], descriptor).unwrap();
            }
        }
        if indirect {
            let bytes = 16 * pieces.len() as u32;
            self.store(head, table, bytes, INDIRECT, 0);
        }
    }

    /// Writes a descriptor as it is, however wrong.
    pub fn store(&self, slot: u16, addr: u64, len: u32, flags: u16, next: u16) {
        let descriptor = RawDescriptor::from(Descriptor::new(addr, len, flags, next));
        self.descriptors.store(slot, descriptor).unwrap();
    }

    /// Makes the chain at `head` available.
    pub fn offer(&mut self, head: u16) {
        let entry = usize::from(self.avail % self.size);
        self.available.ring().ref_at(entry).unwrap().store(u16::to_le(head));
        self.avail = self.avail.wrapping_add(1);
        self.available.idx().store(u16::to_le(self.avail));
    }

    /// Takes back what the device has used.
    pub fn reap(&mut self) -> Vec<Used> {
        let idx = u16::from_le(self.used_ring.idx().load());
        let mut used = Vec::new();
        while self.used != idx {
            let at = self.used_at.0 + 4 + 8 * u64::from(self.used % self.size);
            let [head, len]: [u32; 2] = self.vm.memory.read_obj(GuestAddress(at)).unwrap();
            let head = head as u16;
            let mut slots = core::mem::take(&mut self.chains[usize::from(head)]);
            assert!(!slots.is_empty(), "head {head} was returned but not available");
            self.free.append(&mut slots);
            used.push(Used { head, len });
            self.used = self.used.wrapping_add(1);
        }
        used
    }

    /// The first `len` bytes of the buffers of a chain.
    pub fn contents(&self, head: u16, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &self.pieces[usize::from(head)] {
            let mut part = vec![0; piece.len as usize];
            self.vm.memory.read_slice(&mut part, GuestAddress(piece.addr)).unwrap();
            bytes.extend(part);
        }
        bytes.truncate(len);
        bytes
    }

    pub fn set_used_event(&self, index: u16) {
        let at = self.available_at.0 + 4 + 2 * u64::from(self.size);
        self.vm.memory.write_obj(index.to_le(), GuestAddress(at)).unwrap();
    }

    pub fn set_avail_flags(&self, flags: u16) {
        self.vm.memory.write_obj(flags.to_le(), self.available_at).unwrap();
    }

    pub fn avail_event(&self) -> u16 {
        let at = self.used_at.0 + 4 + 8 * u64::from(self.size);
        u16::from_le(self.vm.memory.read_obj(GuestAddress(at)).unwrap())
    }

    pub fn used_flags(&self) -> u16 {
        u16::from_le(self.vm.memory.read_obj(self.used_at).unwrap())
    }
}

/// Moves the areas of neighbouring slots into different cache sets.
fn stagger(slot: u16) -> u64 {
    u64::from(slot % 64) * 192
}

/// An eventfd that does not block.
pub fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// How often an eventfd was written since it was last read.
pub fn count(fd: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    rustix::io::read(fd, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
}

/// A call line and its far end.
pub fn call_line() -> (Arc<CallLine>, OwnedFd) {
    let far = event();
    let line = Arc::new(CallLine::new());
    line.connect(Some(far.try_clone().unwrap()));
    (line, far)
}
