//! Rings in memory that holds any bytes at all.
//!
//! The first bytes choose the ring, the rest is the VM's memory from its start:
//! descriptor table, available ring, used ring. Checked: nothing hangs or
//! crashes, no frame is longer than one may be, and no byte changes outside the
//! used ring and the buffers that the driver described as writable.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use suimon_frame::{FRAME_BYTES_MAX, FrameBatch, Offloads};
use suimon_ports::{FrameSink, FrameSource};
use suimon_ring::{
    CallLine, GuestMemory, OffloadMask, RegionSpec, RingAddresses, RingFeatures, RingSetup, RxRing,
    TxRing,
};

const MEMORY_BYTES: usize = 0x4_0000;
const INDIRECT_DESC: u64 = 1 << 28;
const EVENT_IDX: u64 = 1 << 29;
const MERGEABLE: u64 = 1 << 15;
const VERSION_1: u64 = 1 << 32;
const WRITE: u64 = 2;

thread_local! {
    /// Made once: its buffers are large.
    static BATCH: RefCell<FrameBatch> = RefCell::new(FrameBatch::new());
}

/// Runs both kinds of ring over the memory described by `input`.
pub fn check(input: &[u8]) {
    let Some((choice, image)) = input.split_first_chunk::<4>() else { return };
    let [size_log, flags, base, near] = *choice;
    let size = 1_u16 << (size_log % 7);
    let mut memory = vec![0_u8; MEMORY_BYTES];
    let used = image.len().min(MEMORY_BYTES);
    memory[..used].copy_from_slice(&image[..used]);
    // Random addresses are hardly ever inside memory; bring them near it.
    if near & 1 != 0 {
        for descriptor in memory[..16 * usize::from(size)].chunks_exact_mut(16) {
            descriptor[3..8].fill(0);
            descriptor[2] &= 7;
        }
    }
    let features = [EVENT_IDX, INDIRECT_DESC, MERGEABLE, VERSION_1, 1, 2, 1 << 7, 1 << 11];
    let bits = features.iter().enumerate();
    let features = bits.filter(|(nth, _)| flags >> nth & 1 != 0).fold(0, |all, (_, bit)| all | bit);
    let ring = Ring { size, features, base: u16::from(base), memory };
    ring.check_transmit();
    ring.check_receive();
}

struct Ring {
    size: u16,
    features: u64,
    base: u16,
    memory: Vec<u8>,
}

impl Ring {
    fn used_at(&self) -> usize {
        (18 * usize::from(self.size) + 6).next_multiple_of(4)
    }

    fn map(&self) -> (File, Arc<GuestMemory>, RingSetup) {
        let fd = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let file = File::from(fd);
        file.write_all_at(&self.memory, 0).unwrap();
        let half = MEMORY_BYTES as u64 / 2;
        let spec = |at: u64| RegionSpec {
            guest_addr: at,
            size: half,
            user_addr: at,
            mmap_offset: at,
            fd: file.as_fd(),
        };
        let memory = Arc::new(GuestMemory::map(&[spec(0), spec(half)]).unwrap());
        let setup = RingSetup {
            queue: 0,
            size: u32::from(self.size),
            addresses: RingAddresses {
                descriptors: 0,
                available: 16 * u64::from(self.size),
                used: self.used_at() as u64,
            },
            base: self.base,
            features: RingFeatures(self.features),
            kick: None,
            call: Arc::new(CallLine::new()),
            error: Arc::new(CallLine::new()),
        };
        (file, memory, setup)
    }

    fn check_transmit(&self) {
        let (file, memory, setup) = self.map();
        let Ok(mut ring) = TxRing::new(memory, &setup) else { return };
        BATCH.with_borrow_mut(|batch| Self::receive_all(&mut ring, batch));
        drop(ring);
        self.check_unchanged(&file, false);
    }

    fn receive_all(ring: &mut TxRing, batch: &mut FrameBatch) {
        for _ in 0..8 {
            batch.clear();
            let received = ring.receive(batch);
            assert!(batch.frames().iter().all(|frame| frame.len() <= FRAME_BYTES_MAX));
            let _ = ring.arm();
            ring.disarm();
            match received {
                Ok(count) if count > 0 => assert_eq!(count, batch.len()),
                _ => break,
            }
        }
    }

    fn check_receive(&self) {
        let (file, memory, setup) = self.map();
        let mask = Arc::new(OffloadMask::new(Offloads::TCP));
        let Ok(mut ring) = RxRing::new(memory, &setup, mask) else { return };
        BATCH.with_borrow_mut(|batch| {
            batch.clear();
            let frame = batch.spare().expect("an empty batch has room");
            for len in [60, 1514, 9000, FRAME_BYTES_MAX, 60] {
                frame.reset();
                frame.set_len(len);
                frame.bytes_mut().fill(0xa5);
                if ring.transmit(frame).is_err() || ring.flush().is_err() {
                    break;
                }
            }
        });
        drop(ring);
        self.check_unchanged(&file, true);
    }

    /// Every byte outside the used ring and the writable buffers is as it was.
    /// Buffers of indirect tables are not known here, so those rings are let off.
    fn check_unchanged(&self, file: &File, may_fill_buffers: bool) {
        if may_fill_buffers && self.features & INDIRECT_DESC != 0 {
            return;
        }
        let mut after = vec![0; MEMORY_BYTES];
        file.read_exact_at(&mut after, 0).unwrap();
        let ring_end = self.used_at() + 8 * usize::from(self.size) + 6;
        let mut may_change: Vec<_> = std::iter::once(self.used_at()..ring_end).collect();
        if may_fill_buffers {
            // A driver may place a buffer over the descriptor table itself; what
            // the table says then depends on when it is read.
            for descriptor in self.memory[..16 * usize::from(self.size)].chunks_exact(16) {
                let word =
                    |at: usize| u64::from_le_bytes(descriptor[at..at + 8].try_into().unwrap());
                let (addr, rest) = (word(0), word(8));
                if rest >> 32 & WRITE == 0 || addr >= MEMORY_BYTES as u64 {
                    continue;
                }
                let end = (addr + (rest & 0xffff_ffff)).min(MEMORY_BYTES as u64) as usize;
                if (addr as usize) < ring_end {
                    return;
                }
                may_change.push(addr as usize..end);
            }
        }
        let mut before = self.memory.clone();
        for range in may_change {
            before[range.clone()].fill(0);
            after[range].fill(0);
        }
        if before != after {
            let changed = before.iter().zip(&after).position(|(before, after)| before != after);
            panic!("byte {changed:x?} was changed");
        }
    }
}
