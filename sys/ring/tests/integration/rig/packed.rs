//! Driver's side of a packed ring, written from virtio 1.3, section 2.8, without code of the crate
//! under test except guest memory.
//!
//! Buffer ids are allocated in an order different from the positions, to detect a device that
//! confuses them.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_ring::{InterruptLine, RingAddresses, RingFeatures, RingSetup};
use vm_memory::{Bytes, GuestAddress};

use super::{
    AREA_BYTES, GUEST_BASE, INDIRECT, NEXT, Piece, TABLE_BYTES, USER_BASE, Used, Vm, WRITE,
    kick_eventfd, stagger,
};

const AVAIL: u16 = 1 << 7;
const USED: u16 = 1 << 15;
pub const RING_PACKED: u64 = 1 << 34;
pub const IN_ORDER: u64 = 1 << 35;

/// Chain that the driver has made available.
#[derive(Clone, Debug, Default)]
struct Offered {
    descriptors: u16,
    pieces: Vec<Piece>,
    len: u32,
}

/// Driver of one packed ring.
pub struct PackedDriver<'a> {
    pub vm: &'a Vm,
    pub size: u16,
    pub next_avail: u16,
    pub avail_wrap: bool,
    pub next_used: u16,
    pub used_wrap: bool,
    /// True if the device returns buffers in order, possibly several by one element.
    pub in_order: bool,
    /// True if the device returns buffers in any order.
    pub any_order: bool,
    /// Free buffer ids, used as a stack, as drivers with a free list do: few buffers are in use,
    /// which stay in the cache.
    free_ids: Vec<u16>,
    pub free_descriptors: u16,
    offered: Vec<Offered>,
    /// Ids in the order in which they were made available.
    order: VecDeque<u16>,
}

impl<'a> PackedDriver<'a> {
    pub fn new(vm: &'a Vm, size: u16) -> Self {
        Self::starting_at(vm, size, 0x8000)
    }

    /// Creates a ring at the position `base` (wrap counter in bit 15), as if it had been used up to
    /// there.
    pub fn starting_at(vm: &'a Vm, size: u16, base: u16) -> Self {
        let (next, wrap) = (base & 0x7fff, base & 0x8000 != 0);
        let mut ids: Vec<u16> = (0..size).rev().collect();
        ids.rotate_left(usize::from(size) / 3);
        let driver = Self {
            vm,
            size,
            next_avail: next,
            avail_wrap: wrap,
            next_used: next,
            used_wrap: wrap,
            in_order: false,
            any_order: false,
            free_ids: ids,
            free_descriptors: size,
            offered: vec![Offered::default(); usize::from(size)],
            order: VecDeque::new(),
        };
        // Descriptors before the position were used in this lap, those from the position on in the
        // previous lap.
        for index in 0..size {
            let lap = if index < next { wrap } else { !wrap };
            driver.store_flags(index, if lap { AVAIL | USED } else { 0 });
        }
        driver
    }

    /// Returns the same driver on a copy of its VM.
    pub fn in_copy<'b>(&self, vm: &'b Vm) -> PackedDriver<'b> {
        PackedDriver {
            vm,
            free_ids: self.free_ids.clone(),
            offered: self.offered.clone(),
            order: self.order.clone(),
            ..*self
        }
    }

    pub fn base(&self) -> u16 {
        self.next_avail | if self.avail_wrap { 0x8000 } else { 0 }
    }

    pub fn setup(
        &self,
        features: u64,
        kick: Option<&Arc<OwnedFd>>,
        call: &Arc<InterruptLine>,
    ) -> RingSetup {
        RingSetup {
            queue: 0,
            size: u32::from(self.size),
            addresses: RingAddresses {
                descriptors: USER_BASE,
                available: USER_BASE + self.driver_event_at() - GUEST_BASE,
                used: USER_BASE + self.device_event_at() - GUEST_BASE,
            },
            base: self.base(),
            features: RingFeatures(features | RING_PACKED),
            kick: kick.map(|kick| kick_eventfd(kick)),
            call: Arc::clone(call),
            error: Arc::default(),
        }
    }

    pub fn descriptor_at(&self, index: u16) -> GuestAddress {
        GuestAddress(GUEST_BASE + 16 * u64::from(index))
    }

    /// Returns the guest address of the driver's event suppression structure.
    pub fn driver_event_at(&self) -> u64 {
        GUEST_BASE + 16 * u64::from(self.size)
    }

    /// Returns the guest address of the device's event suppression structure.
    pub fn device_event_at(&self) -> u64 {
        self.driver_event_at() + 4
    }

    fn tables(&self) -> u64 {
        GUEST_BASE + 0x10_0000
    }

    /// Returns the guest address of the buffers of chain `id`.
    pub fn area(&self, id: u16) -> u64 {
        self.tables()
            + u64::from(self.size) * TABLE_BYTES
            + u64::from(id) * AREA_BYTES
            + stagger(id)
    }

    fn store_flags(&self, index: u16, flags: u16) {
        let address = GuestAddress(self.descriptor_at(index).0 + 14);
        self.vm.memory.write_obj(flags.to_le(), address).unwrap();
    }

    /// Writes a descriptor unmodified, including its flags.
    pub fn store(&self, index: u16, addr: u64, len: u32, id: u16, flags: u16) {
        let word = u64::from(len) | u64::from(id) << 32 | u64::from(flags) << 48;
        let address = self.descriptor_at(index);
        self.vm.memory.write_obj(addr.to_le(), address).unwrap();
        self.vm.memory.write_obj(word.to_le(), GuestAddress(address.0 + 8)).unwrap();
    }

    /// Returns the flags that make a descriptor available in this lap.
    pub fn available_flags(&self) -> u16 {
        if self.avail_wrap { AVAIL } else { USED }
    }

    fn step_avail(&mut self) {
        self.next_avail += 1;
        if self.next_avail == self.size {
            self.next_avail = 0;
            self.avail_wrap = !self.avail_wrap;
        }
    }

    /// Makes a chain of buffers with these lengths available, filled with `bytes`, and returns its
    /// id. Returns `None` if there are not enough ids or descriptors.
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
        let descriptors = if indirect { 1 } else { lens.len() as u16 };
        if self.free_descriptors < descriptors {
            return None;
        }
        let id = self.free_ids.pop()?;
        let mut addr = self.area(id) + 3;
        let mut remaining = bytes;
        let mut pieces = Vec::new();
        for len in lens {
            let (now, rest) = remaining.split_at(remaining.len().min(*len as usize));
            self.vm.memory.write_slice(now, GuestAddress(addr)).unwrap();
            remaining = rest;
            pieces.push(Piece { addr, len: *len });
            addr += u64::from(*len) + 5;
        }
        assert!(addr < self.area(id) + AREA_BYTES - stagger(63), "a test chain is too long");
        self.lay_out(id, indirect, |index| if index < readable { 0 } else { WRITE }, &pieces);
        self.free_descriptors -= descriptors;
        self.order.push_back(id);
        let len = lens.iter().sum();
        self.offered[usize::from(id)] = Offered { descriptors, pieces, len };
        Some(id)
    }

    /// Writes the descriptors of a chain; the flags of the first one last (section 2.8.21.1).
    fn lay_out(&mut self, id: u16, indirect: bool, flag: impl Fn(usize) -> u16, pieces: &[Piece]) {
        let (first, first_flags) = (self.next_avail, self.available_flags());
        if indirect {
            let table = self.tables() + u64::from(id) * TABLE_BYTES;
            for (index, piece) in pieces.iter().enumerate() {
                // All flags except WRITE are reserved in a table and ignored by a device.
                let junk = u64::from(flag(index) | NEXT | INDIRECT | AVAIL) << 48 | 0xbad << 32;
                let address = GuestAddress(table + 16 * index as u64);
                self.vm.memory.write_obj(piece.addr.to_le(), address).unwrap();
                let word = (u64::from(piece.len) | junk).to_le();
                self.vm.memory.write_obj(word, GuestAddress(address.0 + 8)).unwrap();
            }
            let bytes = 16 * pieces.len() as u32;
            self.store(first, table, bytes, id, first_flags | INDIRECT);
            self.step_avail();
            return;
        }
        let last = pieces.len() - 1;
        for (index, piece) in pieces.iter().enumerate() {
            let next_flag = if index < last { NEXT } else { 0 };
            // Only the last descriptor's id is valid (section 2.8.6).
            let stored_id = if index < last { 0x7777 } else { id };
            let wrap_flags =
                if index == 0 { !first_flags & (AVAIL | USED) } else { self.available_flags() };
            self.store(
                self.next_avail,
                piece.addr,
                piece.len,
                stored_id,
                flag(index) | next_flag | wrap_flags,
            );
            self.step_avail();
        }
        let next_flag = if last > 0 { NEXT } else { 0 };
        self.store_flags(first, flag(0) | next_flag | first_flags);
    }

    /// Returns the chains that the device has used, and frees their ids.
    pub fn reap(&mut self) -> Vec<Used> {
        let mut used = Vec::new();
        loop {
            let address = GuestAddress(self.descriptor_at(self.next_used).0 + 8);
            let tail = u64::from_le(self.vm.memory.read_obj(address).unwrap());
            let flags = (tail >> 48) as u16;
            if (flags & AVAIL != 0) != self.used_wrap || (flags & USED != 0) != self.used_wrap {
                return used;
            }
            let (id, len) = ((tail >> 32) as u16, tail as u32);
            assert_eq!(
                len != 0,
                flags & WRITE != 0,
                "the WRITE flag does not match the written length"
            );
            if self.any_order {
                let offered = self.order.iter().position(|offered| *offered == id);
                self.order.remove(offered.expect("an id that was not made available"));
                used.push(self.release(id, len));
                continue;
            }
            let expected = *self.order.front().expect("returned without being made available");
            if !self.in_order {
                assert_eq!(id, expected, "buffers were returned out of order");
            }
            loop {
                let next = self.order.pop_front().expect("an id that was not made available");
                let skipped = next != id;
                // A skipped buffer counts as filled completely.
                let len = if skipped { self.offered[usize::from(next)].len } else { len };
                used.push(self.release(next, len));
                if !skipped {
                    break;
                }
            }
        }
    }

    fn release(&mut self, id: u16, len: u32) -> Used {
        let descriptors = self.offered[usize::from(id)].descriptors;
        self.free_descriptors += descriptors;
        self.free_ids.push(id);
        self.next_used += descriptors;
        if self.next_used >= self.size {
            self.next_used -= self.size;
            self.used_wrap = !self.used_wrap;
        }
        Used { head: id, len }
    }

    /// Returns the buffers of a chain.
    pub fn pieces(&self, id: u16) -> &[Piece] {
        &self.offered[usize::from(id)].pieces
    }

    /// Returns the first `len` bytes of the buffers of a chain.
    pub fn contents(&self, id: u16, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &self.offered[usize::from(id)].pieces {
            let mut part = vec![0; piece.len as usize];
            self.vm.memory.read_slice(&mut part, GuestAddress(piece.addr)).unwrap();
            bytes.extend(part);
        }
        bytes.truncate(len);
        bytes
    }

    /// Returns the ids of chains that were not returned yet, in the order in which they were made
    /// available.
    pub fn outstanding(&self) -> Vec<u16> {
        self.order.iter().copied().collect()
    }

    /// Sets the driver's interrupt request: flags and position.
    pub fn set_driver_event(&self, position: u16, flags: u16) {
        let event = u32::from(position) | u32::from(flags) << 16;
        self.vm.memory.write_obj(event.to_le(), GuestAddress(self.driver_event_at())).unwrap();
    }

    /// Returns true if a kick is due after the ring advanced from the position `old` (section
    /// 2.8.10.1). Checks each position in between.
    pub fn wants_kick(&self, old: u16) -> bool {
        let event: u32 = self.vm.memory.read_obj(GuestAddress(self.device_event_at())).unwrap();
        let event = u32::from_le(event);
        match event >> 16 {
            0 => self.base() != old,
            1 => false,
            _ => passes(self.size, old, self.base(), event as u16),
        }
    }

    pub fn used_position(&self) -> u16 {
        self.next_used | if self.used_wrap { 0x8000 } else { 0 }
    }
}

/// Returns true if moving from `from` to `to`, descriptor by descriptor, passes `event`.
pub fn passes(size: u16, from: u16, to: u16, event: u16) -> bool {
    let mut position = from;
    while position != to {
        if position == event {
            return true;
        }
        position = if (position & 0x7fff) + 1 == size {
            (position & 0x8000) ^ 0x8000
        } else {
            position + 1
        };
    }
    false
}
