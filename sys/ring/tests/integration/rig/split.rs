//! Driver's side of a split ring, based on virtio-queue's test driver.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_ring::{InterruptLine, RingAddresses, RingFeatures, RingSetup};
use virtio_queue::desc::{RawDescriptor, split::Descriptor};
use virtio_queue::mock::{AvailRing, DescriptorTable, UsedRing};
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use super::{
    AREA_BYTES, GUEST_BASE, INDIRECT, NEXT, Piece, TABLE_BYTES, USER_BASE, Used, Vm, WRITE,
    kick_eventfd, stagger,
};

/// Driver of one split ring.
pub struct Driver<'a> {
    pub vm: &'a Vm,
    pub ring_addr: u64,
    /// Descriptor table. Areas are placed explicitly, because `MockSplitQueue` lets the used ring
    /// overlap the available ring's last fields.
    pub descriptors: DescriptorTable<'a, GuestMemoryMmap>,
    pub available: AvailRing<'a, GuestMemoryMmap>,
    pub used_ring: UsedRing<'a, GuestMemoryMmap>,
    pub available_at: GuestAddress,
    pub used_at: GuestAddress,
    pub size: u16,
    pub avail: u16,
    pub used: u16,
    free: Vec<u16>,
    /// Descriptor slots of the chain that begins at each head.
    chains: Vec<Vec<u16>>,
    /// Buffers of the chain that begins at each head.
    pub pieces: Vec<Vec<Piece>>,
}

impl<'a> Driver<'a> {
    pub fn new(vm: &'a Vm, size: u16) -> Self {
        Self::starting_at(vm, size, 0)
    }

    /// Creates a ring whose indices start at `base`.
    pub fn starting_at(vm: &'a Vm, size: u16, base: u16) -> Self {
        Self::placed(vm, size, base, GUEST_BASE)
    }

    /// Creates a ring at the address `ring_addr`, whose indices start at `base`. The distance of
    /// its buffers from those of the first ring is 256 times that of the rings.
    pub fn placed(vm: &'a Vm, size: u16, base: u16, ring_addr: u64) -> Self {
        let address_at = |offset: u64| GuestAddress(ring_addr + offset);
        let entries = u64::from(size);
        let available_at = address_at(16 * entries);
        let descriptors = DescriptorTable::new(&vm.memory, address_at(0), size);
        let available = AvailRing::new(&vm.memory, available_at, size);
        let used_at = address_at((18 * entries + 6).next_multiple_of(4));
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

    /// Returns the same driver on a copy of its VM.
    pub fn in_copy<'b>(&self, vm: &'b Vm) -> Driver<'b> {
        let memory = &vm.memory;
        let used_end = self.used_at.0 + 6 + 8 * u64::from(self.size);
        let mut rings = vec![0; (used_end - self.available_at.0) as usize];
        memory.read_slice(&mut rings, self.available_at).unwrap();
        let driver = Driver {
            vm,
            ring_addr: self.ring_addr,
            descriptors: DescriptorTable::new(memory, GuestAddress(self.ring_addr), self.size),
            available: AvailRing::new(memory, self.available_at, self.size),
            used_ring: UsedRing::new(memory, self.used_at, self.size),
            available_at: self.available_at,
            used_at: self.used_at,
            size: self.size,
            avail: self.avail,
            used: self.used,
            free: self.free.clone(),
            chains: self.chains.clone(),
            pieces: self.pieces.clone(),
        };
        // The constructors of the ring views cleared the rings.
        memory.write_slice(&rings, self.available_at).unwrap();
        driver
    }

    /// Returns the chains that the device has used, if their number follows from the index alone
    /// and the entry at the start of each batch contains its last head (section 2.7.14).
    pub fn reap_in_order(&mut self) -> Vec<Used> {
        let idx = u16::from_le(self.used_ring.idx().load());
        let count = usize::from(idx.wrapping_sub(self.used));
        let mut used = Vec::new();
        let mut batch: Option<Used> = None;
        for head in self.outstanding().into_iter().take(count) {
            let last = batch.take().unwrap_or_else(|| {
                let address = self.used_at.0 + 4 + 8 * u64::from(self.used % self.size);
                let [head, len]: [u32; 2] = self.vm.memory.read_obj(GuestAddress(address)).unwrap();
                Used { head: head as u16, len }
            });
            let pieces = &self.pieces[usize::from(head)];
            let skipped = last.head != head;
            let len = if skipped { pieces.iter().map(|piece| piece.len).sum() } else { last.len };
            used.push(Used { head, len });
            if skipped {
                batch = Some(last);
            }
            let mut slots = core::mem::take(&mut self.chains[usize::from(head)]);
            self.free.append(&mut slots);
            self.used = self.used.wrapping_add(1);
        }
        assert!(batch.is_none(), "the last head of a batch differs from its entry");
        used
    }

    /// Returns the heads that were not returned yet, in the order in which they were made
    /// available.
    pub fn outstanding(&self) -> Vec<u16> {
        let waiting = self.avail.wrapping_sub(self.used);
        let entry = |distance| usize::from(self.used.wrapping_add(distance) % self.size);
        let heads = self.available.ring();
        (0..waiting)
            .map(|distance| u16::from_le(heads.ref_at(entry(distance)).unwrap().load()))
            .collect()
    }

    pub fn setup(
        &self,
        features: u64,
        kick: Option<&Arc<OwnedFd>>,
        call: &Arc<InterruptLine>,
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
            kick: kick.map(|kick| kick_eventfd(kick)),
            call: Arc::clone(call),
            error: Arc::default(),
        }
    }

    /// Returns virtio-queue's device side of this ring.
    pub fn reference(&self, event_idx: bool) -> Queue {
        let split = |addr: u64| (Some(addr as u32), Some((addr >> 32) as u32));
        let mut queue = Queue::new(self.size).unwrap();
        queue.set_size(self.size);
        let (low, high) = split(self.ring_addr);
        queue.set_desc_table_address(low, high);
        let (low, high) = split(self.available_at.0);
        queue.set_avail_ring_address(low, high);
        let (low, high) = split(self.used_at.0);
        queue.set_used_ring_address(low, high);
        queue.set_ready(true);
        queue.set_event_idx(event_idx);
        queue.set_next_avail(self.avail);
        queue.set_next_used(self.used);
        queue
    }

    /// Returns the guest address of the buffers of slot `slot`.
    pub fn area(&self, slot: u16) -> u64 {
        self.tables()
            + u64::from(self.size) * TABLE_BYTES
            + u64::from(slot) * AREA_BYTES
            + stagger(slot)
    }

    fn tables(&self) -> u64 {
        GUEST_BASE + 0x10_0000 + (self.ring_addr - GUEST_BASE) * 0x100
    }

    /// Makes consecutive chains use distant slots, so that their buffers are in different regions.
    pub fn scatter(&mut self) {
        let slots = self.free.len();
        // Odd and therefore coprime to the number of slots, a power of two.
        let stride = slots / 4 + 1;
        self.free = (0..slots).map(|index| (index * stride % slots) as u16).collect();
    }

    pub fn free_slots(&self) -> usize {
        self.free.len()
    }

    /// Makes a chain of buffers with these lengths available, filled with `bytes`. Returns `None`
    /// if there are not enough slots.
    pub fn add(
        &mut self,
        lens: &[u32],
        indirect: bool,
        writable: bool,
        bytes: &[u8],
    ) -> Option<u16> {
        self.add_request(lens, if writable { 0 } else { lens.len() }, indirect, bytes)
    }

    /// As [`Self::add`]; the first `readable` buffers are device-readable, the others
    /// device-writable.
    pub fn add_request(
        &mut self,
        lens: &[u32],
        readable: usize,
        indirect: bool,
        bytes: &[u8],
    ) -> Option<u16> {
        let required = if indirect { 1 } else { lens.len() };
        if self.free.len() < required {
            return None;
        }
        let slots: Vec<u16> = (0..required).filter_map(|_| self.free.pop()).collect();
        let head = slots[0];
        let mut addr = self.area(head) + 3;
        let mut remaining = bytes;
        let mut pieces = Vec::new();
        for len in lens {
            let (now, rest) = remaining.split_at(remaining.len().min(*len as usize));
            self.vm.memory.write_slice(now, GuestAddress(addr)).unwrap();
            remaining = rest;
            pieces.push(Piece { addr, len: *len });
            addr += u64::from(*len) + 5;
        }
        assert!(addr < self.area(head) + AREA_BYTES - stagger(63), "a test chain is too long");
        self.lay_out_by(
            &slots,
            indirect,
            |index| if index < readable { 0 } else { WRITE },
            &pieces,
        );
        self.pieces[usize::from(head)] = pieces;
        self.chains[usize::from(head)] = slots;
        self.offer(head);
        Some(head)
    }

    pub fn lay_out(&self, slots: &[u16], indirect: bool, flag: u16, pieces: &[Piece]) {
        self.lay_out_by(slots, indirect, |_| flag, pieces);
    }

    fn lay_out_by(
        &self,
        slots: &[u16],
        indirect: bool,
        flag: impl Fn(usize) -> u16,
        pieces: &[Piece],
    ) {
        let last = pieces.len() - 1;
        let head = slots[0];
        let table = self.tables() + u64::from(head) * TABLE_BYTES;
        for (index, piece) in pieces.iter().enumerate() {
            let flags = flag(index) | if index < last { NEXT } else { 0 };
            let next = match (indirect, index < last) {
                (_, false) => 0,
                (true, true) => index as u16 + 1,
                (false, true) => slots[index + 1],
            };
            let descriptor =
                RawDescriptor::from(Descriptor::new(piece.addr, piece.len, flags, next));
            if indirect {
                let address = GuestAddress(table + 16 * index as u64);
                self.vm.memory.write_obj(descriptor, address).unwrap();
            } else {
                self.descriptors.store(slots[index], descriptor).unwrap();
            }
        }
        if indirect {
            let bytes = 16 * pieces.len() as u32;
            self.store(head, table, bytes, INDIRECT, 0);
        }
    }

    /// Writes a descriptor unmodified, even if it is invalid.
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

    /// Returns the chains that the device has used, and frees their slots.
    pub fn reap(&mut self) -> Vec<Used> {
        let idx = u16::from_le(self.used_ring.idx().load());
        let mut used = Vec::new();
        while self.used != idx {
            let address = self.used_at.0 + 4 + 8 * u64::from(self.used % self.size);
            let [head, len]: [u32; 2] = self.vm.memory.read_obj(GuestAddress(address)).unwrap();
            let head = head as u16;
            let mut slots = core::mem::take(&mut self.chains[usize::from(head)]);
            assert!(!slots.is_empty(), "head {head} was returned but not available");
            self.free.append(&mut slots);
            used.push(Used { head, len });
            self.used = self.used.wrapping_add(1);
        }
        used
    }

    /// Returns the first `len` bytes of the buffers of a chain.
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
        let address = self.available_at.0 + 4 + 2 * u64::from(self.size);
        self.vm.memory.write_obj(index.to_le(), GuestAddress(address)).unwrap();
    }

    pub fn set_avail_flags(&self, flags: u16) {
        self.vm.memory.write_obj(flags.to_le(), self.available_at).unwrap();
    }

    pub fn avail_event(&self) -> u16 {
        let address = self.used_at.0 + 4 + 8 * u64::from(self.size);
        u16::from_le(self.vm.memory.read_obj(GuestAddress(address)).unwrap())
    }

    pub fn used_flags(&self) -> u16 {
        u16::from_le(self.vm.memory.read_obj(self.used_at).unwrap())
    }
}
