//! The driver's side of one split ring of a disk, as a guest has it (virtio 1.3, sections
//! 2.7 and 5.2.6).

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use virtio_bindings::virtio_blk::{VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT};
use vm_memory::{Bytes, GuestAddress, VolatileMemory, VolatileSlice};

use crate::bench::rig::{GUEST_BASE, INDIRECT, NEXT, Vm, WRITE, count};

/// Entries of the ring.
pub(crate) const SIZE: u16 = 256;

/// Where things lie in memory, from its start.
pub(crate) const DESCRIPTORS: u64 = 0;
pub(crate) const AVAILABLE: u64 = 0x2000;
pub(crate) const USED: u64 = 0x3000;
const TABLES: u64 = 0x1_0000;
/// Each request's header, and its status in the same line, as drivers have them.
const REQUESTS: u64 = 0x2_0000;
const REQUEST_BYTES: u64 = 128;
const STATUS_AT: u64 = 16;
const BUFFERS: u64 = 0x10_0000;

/// What is asked of a disk, without end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of a request.
    pub(crate) bytes: u64,
    /// How many of a hundred requests read; the others write.
    pub(crate) read_percent: u64,
    /// Anywhere. Otherwise one behind the other, and from the beginning again.
    pub(crate) is_random: bool,
    /// Bytes of the disk that are used, from its beginning.
    pub(crate) disk_bytes: u64,
}

impl Load {
    /// What a VM needs for its ring and payloads.
    pub(crate) fn memory_bytes(&self) -> u64 {
        BUFFERS + u64::from(SIZE) * self.bytes
    }
}

/// The driver of one split ring, which has one request for each descriptor.
pub(crate) struct Driver<'a> {
    load: Load,
    types: Vec<&'a AtomicU32>,
    sectors: Vec<&'a AtomicU64>,
    available: Vec<&'a AtomicU16>,
    available_index: &'a AtomicU16,
    /// Where the back-end wants to be kicked, and where we want to be interrupted.
    kick_at: &'a AtomicU16,
    call_at: &'a AtomicU16,
    used: Vec<&'a AtomicU32>,
    used_index: &'a AtomicU16,
    statuses: Vec<&'a AtomicU8>,
    /// Flags of the descriptors of payloads.
    ways: Vec<&'a AtomicU16>,
    kick: OwnedFd,
    call: OwnedFd,
    offered: u16,
    seen: u16,
    /// Requests offered so far.
    asked: u64,
    state: u64,
    pub(crate) kicks: u64,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        vm: &Vm,
        slice: &'a VolatileSlice<'a>,
        [kick, call]: [OwnedFd; 2],
        load: Load,
    ) -> Self {
        macro_rules! at {
            ($kind:ty, $offset:expr) => {
                slice.get_atomic_ref::<$kind>(($offset) as usize).expect("it is in memory")
            };
        }
        let entries = 0..u64::from(SIZE);
        entries.clone().for_each(|entry| describe(vm, entry, load.bytes));
        Self {
            load,
            types: entries
                .clone()
                .map(|entry| at!(AtomicU32, REQUESTS + entry * REQUEST_BYTES))
                .collect(),
            ways: entries
                .clone()
                .map(|entry| at!(AtomicU16, TABLES + entry * 64 + 16 + 12))
                .collect(),
            sectors: entries
                .clone()
                .map(|entry| at!(AtomicU64, REQUESTS + entry * REQUEST_BYTES + 8))
                .collect(),
            available: entries
                .clone()
                .map(|entry| at!(AtomicU16, AVAILABLE + 4 + entry * 2))
                .collect(),
            available_index: at!(AtomicU16, AVAILABLE + 2),
            call_at: at!(AtomicU16, AVAILABLE + 4 + u64::from(SIZE) * 2),
            used: entries.clone().map(|entry| at!(AtomicU32, USED + 4 + entry * 8)).collect(),
            used_index: at!(AtomicU16, USED + 2),
            kick_at: at!(AtomicU16, USED + 4 + u64::from(SIZE) * 8),
            statuses: entries
                .map(|entry| at!(AtomicU8, REQUESTS + entry * REQUEST_BYTES + STATUS_AT))
                .collect(),
            kick,
            call,
            offered: 0,
            seen: 0,
            asked: 0,
            state: 0x2545_f491_4f6c_dd1d,
            kicks: 0,
        }
    }

    /// Marsaglia's xorshift64.
    fn throw(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 16
    }

    /// Puts the next request of the load in place of this one.
    pub(crate) fn offer(&mut self, head: u16) {
        let Load { bytes, read_percent, is_random, disk_bytes } = self.load;
        let number = if is_random { self.throw() } else { self.asked };
        let block = number % (disk_bytes / bytes);
        let at = usize::from(head);
        self.sectors[at].store(block * (bytes / 512), Ordering::Relaxed);
        // What only reads stays as it was laid out.
        if read_percent < 100 {
            let (kind, way) = match self.throw() % 100 < read_percent {
                true => (VIRTIO_BLK_T_IN, NEXT | WRITE),
                false => (VIRTIO_BLK_T_OUT, NEXT),
            };
            self.types[at].store(kind.to_le(), Ordering::Relaxed);
            self.ways[at].store(way.to_le(), Ordering::Relaxed);
        }
        let slot = usize::from(self.offered % SIZE);
        self.available[slot].store(head, Ordering::Relaxed);
        self.offered = self.offered.wrapping_add(1);
        self.asked += 1;
    }

    /// Makes what was offered visible, and kicks if the back-end asked for that.
    pub(crate) fn publish(&mut self) {
        let old = self.available_index.load(Ordering::Relaxed);
        if old == self.offered {
            return;
        }
        self.available_index.store(self.offered, Ordering::Release);
        std::sync::atomic::fence(Ordering::SeqCst);
        let wanted = self.kick_at.load(Ordering::Relaxed);
        let since = self.offered.wrapping_sub(wanted).wrapping_sub(1);
        if since < self.offered.wrapping_sub(old) {
            self.kicks += 1;
            rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).expect("a kick");
        }
    }

    /// Takes in what was answered, and asks again; how many that were.
    pub(crate) fn turn(&mut self) -> u64 {
        let until = self.used_index.load(Ordering::Acquire);
        let count = until.wrapping_sub(self.seen);
        for _ in 0..count {
            let head = self.used[usize::from(self.seen % SIZE)].load(Ordering::Relaxed) as u16;
            assert_eq!(
                self.statuses[usize::from(head)].load(Ordering::Relaxed),
                0,
                "a request failed"
            );
            self.seen = self.seen.wrapping_add(1);
            self.offer(head);
        }
        // One that has been passed already: no interrupts.
        self.call_at.store(self.seen.wrapping_sub(1), Ordering::Relaxed);
        self.publish();
        u64::from(count)
    }

    /// Sleeps until something is answered, as a driver does that is interrupted, or for 5 s.
    pub(crate) fn wait(&mut self) {
        self.call_at.store(self.seen, Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.used_index.load(Ordering::Acquire) != self.seen {
            return;
        }
        let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
        let fds = &mut [PollFd::new(&self.call, PollFlags::IN)];
        poll(fds, Some(&limit)).expect("a descriptor to wait for");
        let _ = count(&self.call);
    }
}

/// Lays out a read in the descriptors of an entry.
fn describe(vm: &Vm, entry: u64, bytes: u64) {
    let table = GUEST_BASE + TABLES + entry * 64;
    let request = REQUESTS + entry * REQUEST_BYTES;
    let pieces = [
        (request, 16, NEXT, 1),
        (BUFFERS + entry * bytes, bytes as u32, NEXT | WRITE, 2),
        (request + STATUS_AT, 1, WRITE, 0),
    ];
    let describe = |place: u64, addr: u64, len: u32, flags: u16, next: u16| {
        let word = u128::from(addr)
            | u128::from(len) << 64
            | u128::from(flags) << 96
            | u128::from(next) << 112;
        vm.memory.write_slice(&word.to_le_bytes(), GuestAddress(place)).expect("memory");
    };
    for ((addr, len, flags, next), nth) in pieces.into_iter().zip(0..) {
        describe(table + nth * 16, GUEST_BASE + addr, len, flags, next);
    }
    describe(GUEST_BASE + DESCRIPTORS + entry * 16, table, 48, INDIRECT, 0);
}
