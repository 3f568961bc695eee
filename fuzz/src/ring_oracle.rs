//! Fuzz oracle of split virtio-net rings in arbitrary guest memory.
//!
//! The first four bytes select the ring; the others are the start of the guest's memory: descriptor
//! table, available ring, used ring. The oracle checks that the ring neither hangs nor panics; that
//! no frame exceeds the maximum length; that bytes change only in the used ring and in buffers that
//! the driver declared writable; and that every changed page is in the dirty log.

use std::cell::RefCell;
use std::sync::Arc;

use suimon_frame::{FRAME_BYTES_MAX, FrameBatch, Offloads};
use suimon_ports::{FrameSink, FrameSource};
use suimon_ring::{OffloadMask, RingAddresses, RxRing, TxRing};

use crate::guest_image::{GuestImage, MEMORY_BYTES, Records};

const INDIRECT_DESC: u64 = 1 << 28;
const EVENT_IDX: u64 = 1 << 29;
const MERGEABLE: u64 = 1 << 15;
const VERSION_1: u64 = 1 << 32;
const IN_ORDER: u64 = 1 << 35;
const WRITE: u64 = 2;

thread_local! {
    /// Batch shared by all runs of a thread, because its buffers are large.
    static BATCH: RefCell<FrameBatch> = RefCell::new(FrameBatch::new());
}

/// Runs a transmit and a receive ring over the guest memory described by `input`.
///
/// # Panics
///
/// A ring violates a rule above.
pub fn check(input: &[u8]) {
    let Some((choice, image)) = input.split_first_chunk::<4>() else { return };
    let [size_log, flags, base, mode] = *choice;
    let size = 1_u16 << (size_log % 7);
    let mut memory = GuestImage::new(image);
    // Random addresses are rarely in guest memory; move them there.
    if mode & 1 != 0 {
        memory.bring_near(16 * usize::from(size));
    }
    let features = [EVENT_IDX, INDIRECT_DESC, MERGEABLE, VERSION_1, 1, 2, 1 << 7, 1 << 11];
    let bits = features.iter().enumerate();
    let features =
        bits.filter(|(index, _)| flags >> index & 1 != 0).fold(0, |sum, (_, bit)| sum | bit);
    let features = features | if mode & 8 != 0 { IN_ORDER } else { 0 };
    let records = Records::chosen_by(mode);
    let ring = Ring { size, features, base: u16::from(base), records, memory };
    ring.check_transmit();
    ring.check_receive();
}

struct Ring {
    size: u16,
    features: u64,
    base: u16,
    records: Records,
    memory: GuestImage,
}

impl Ring {
    fn used_at(&self) -> usize {
        (18 * usize::from(self.size) + 6).next_multiple_of(4)
    }

    fn addresses(&self) -> RingAddresses {
        RingAddresses {
            descriptors: 0,
            available: 16 * u64::from(self.size),
            used: self.used_at() as u64,
        }
    }

    fn check_transmit(&self) {
        let guest = self.memory.open(self.size.into(), self.features, self.base, self.addresses());
        let records = guest.records(self.records, false, self.used_at() as u64);
        let Ok(mut ring) = TxRing::with_tracking(guest.memory.clone(), &guest.setup, records)
        else {
            return;
        };
        BATCH.with_borrow_mut(|batch| Self::receive_all(&mut ring, batch));
        drop(ring);
        guest.check_log(&self.memory);
        self.check_unchanged(&guest.bytes(), false);
    }

    fn receive_all(ring: &mut TxRing, batch: &mut FrameBatch) {
        for _ in 0..8 {
            batch.clear();
            let received = ring.receive(batch);
            for frame in batch.frames_mut() {
                frame.linearize();
                assert_eq!(frame.bytes().len(), frame.len());
                assert!(frame.len() <= FRAME_BYTES_MAX);
            }
            ring.release();
            let _ = ring.arm();
            ring.disarm();
            match received {
                Ok(count) if count > 0 => assert_eq!(count, batch.len()),
                _ => break,
            }
        }
    }

    fn check_receive(&self) {
        let guest = self.memory.open(self.size.into(), self.features, self.base, self.addresses());
        let mask = Arc::new(OffloadMask::new(Offloads::TCP));
        let records = guest.records(self.records, false, self.used_at() as u64);
        let result = RxRing::with_tracking(guest.memory.clone(), &guest.setup, records, mask);
        let Ok(mut ring) = result else { return };
        BATCH.with_borrow_mut(|batch| {
            batch.clear();
            let frame = batch.next_free_frame().expect("an empty batch has room");
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
        guest.check_log(&self.memory);
        self.check_unchanged(&guest.bytes(), true);
    }

    /// Checks that bytes changed only in the used ring and in writable buffers. Rings with indirect
    /// tables are not checked, because their buffers are not known here.
    fn check_unchanged(&self, after: &[u8], may_fill_buffers: bool) {
        if may_fill_buffers && self.features & INDIRECT_DESC != 0 {
            return;
        }
        let ring_end = self.used_at() + 8 * usize::from(self.size) + 6;
        let mut may_change: Vec<_> = std::iter::once(self.used_at()..ring_end).collect();
        if may_fill_buffers {
            // A driver may place a buffer over the descriptor table; the descriptors then depend on
            // when the ring reads them.
            let table = &self.memory.bytes()[..16 * usize::from(self.size)];
            for descriptor in table.chunks_exact(16) {
                let word = |offset: usize| {
                    u64::from_le_bytes(descriptor[offset..offset + 8].try_into().unwrap())
                };
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
        self.memory.check_unchanged(after, &may_change);
    }
}
