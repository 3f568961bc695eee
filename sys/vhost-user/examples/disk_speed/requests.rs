//! Requests of a disk in memory (virtio 1.3, section 5.2.6): each slot has a header, payload
//! segments and a status.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use anyhow::{Result, ensure};
use virtio_bindings::virtio_blk::{VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT};
use vm_memory::{VolatileMemory, VolatileSlice};

use crate::front_end::Disk;
use crate::memory::{
    BUFFERS_AT, ENTRIES, GUEST_BASE, REQUEST_BYTES, REQUEST_DESCRIPTORS_MAX, REQUESTS_AT, STATUS_AT,
};

/// Parameters of the generated load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Size of a request in bytes.
    pub(crate) bytes: u64,
    /// Percentage of requests that are reads; others are writes.
    pub(crate) read_percent: u64,
    /// Random offsets if true; otherwise ascending offsets that wrap at `disk_bytes`.
    pub(crate) is_random: bool,
    /// Size in bytes of the part of the disk that is used, from its beginning.
    pub(crate) disk_bytes: u64,
}

/// Part of a request's memory, described by one descriptor: guest address, length in bytes, and
/// kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestBuffer {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) kind: RequestBufferKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestBufferKind {
    Header,
    /// Payload; device-writable if the request reads.
    Segment,
    Status,
}

/// Request that was written into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRequest {
    pub(crate) is_read: bool,
    /// True if the request is a read of a load without writes, so that the flags of its descriptors
    /// need no change.
    pub(crate) has_final_flags: bool,
}

/// Requests of all slots.
pub(crate) struct Requests<'a> {
    load: Load,
    segment_bytes: u64,
    /// Type fields of the headers: 0 (read) unless the load contains writes.
    kinds: Vec<&'a AtomicU32>,
    sectors: Vec<&'a AtomicU64>,
    statuses: Vec<&'a AtomicU8>,
    /// Number of requests generated so far.
    made: u64,
    state: u64,
}

impl<'a> Requests<'a> {
    /// Writes the headers of all slots to memory.
    ///
    /// # Errors
    /// The disk is smaller than `load.disk_bytes`, or does not accept requests of this size.
    pub(crate) fn new(slice: &'a VolatileSlice<'a>, load: Load, disk: &Disk) -> Result<Self> {
        if let Some(size) = disk.size {
            let required_bytes = load.disk_bytes;
            ensure!(
                size >= required_bytes,
                "the disk has {size} bytes, fewer than the {required_bytes} to be used"
            );
        }
        // Segments consist of whole sectors.
        let segment_bytes = load.bytes.min(disk.size_max / 512 * 512);
        ensure!(segment_bytes > 0, "the back-end takes segments of {} bytes only", disk.size_max);
        let segments = load.bytes.div_ceil(segment_bytes);
        let max = disk.seg_max.min(REQUEST_DESCRIPTORS_MAX - 2);
        ensure!(
            segments <= max,
            "a request of {} bytes has {segments} segments of {segment_bytes} bytes, more than {max}; \
             choose a smaller --block-kib",
            load.bytes
        );
        let request_offset = |slot: u16| to_usize(REQUESTS_AT + u64::from(slot) * REQUEST_BYTES);
        let slots = || 0..ENTRIES;
        Ok(Self {
            load,
            segment_bytes,
            kinds: slots()
                .map(|slot| slice.get_atomic_ref(request_offset(slot)))
                .collect::<Result<_, _>>()?,
            sectors: slots()
                .map(|slot| slice.get_atomic_ref(request_offset(slot) + 8))
                .collect::<Result<_, _>>()?,
            statuses: slots()
                .map(|slot| slice.get_atomic_ref(request_offset(slot) + to_usize(STATUS_AT)))
                .collect::<Result<_, _>>()?,
            made: 0,
            state: 0x2545_f491_4f6c_dd1d,
        })
    }

    /// Returns the memory of the request in a slot, one element per descriptor, in order.
    pub(crate) fn buffers(&self, slot: u16) -> Vec<RequestBuffer> {
        let request = GUEST_BASE + REQUESTS_AT + u64::from(slot) * REQUEST_BYTES;
        let new_piece = |address, bytes: u64, kind| {
            // Pieces are at most `size_max` bytes, which is a 32-bit field, or a whole request.
            RequestBuffer { address, bytes: u32::try_from(bytes).unwrap_or(u32::MAX), kind }
        };
        let mut pieces = vec![new_piece(request, 16, RequestBufferKind::Header)];
        let mut offset = 0;
        while offset < self.load.bytes {
            let bytes = self.segment_bytes.min(self.load.bytes - offset);
            let address = GUEST_BASE + BUFFERS_AT + u64::from(slot) * self.load.bytes + offset;
            pieces.push(new_piece(address, bytes, RequestBufferKind::Segment));
            offset += bytes;
        }
        pieces.push(new_piece(request + STATUS_AT, 1, RequestBufferKind::Status));
        pieces
    }

    /// Returns the next pseudo-random number (Marsaglia's xorshift64).
    fn throw(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 16
    }

    /// Writes the next generated request into a slot.
    pub(crate) fn generate(&mut self, slot: u16) -> SlotRequest {
        let Load { bytes, read_percent, is_random, disk_bytes } = self.load;
        let number = if is_random { self.throw() } else { self.made };
        let block = number % (disk_bytes / bytes);
        let is_read = read_percent >= 100 || self.throw() % 100 < read_percent;
        let is_laid_out = read_percent >= 100;
        let index = usize::from(slot);
        self.sectors[index].store((block * (bytes / 512)).to_le(), Ordering::Relaxed);
        if !is_laid_out {
            let kind = if is_read { VIRTIO_BLK_T_IN } else { VIRTIO_BLK_T_OUT };
            self.kinds[index].store(kind.to_le(), Ordering::Relaxed);
        }
        self.made += 1;
        SlotRequest { is_read, has_final_flags: is_laid_out }
    }

    /// Checks the status of a completed request.
    ///
    /// # Errors
    /// The request of this slot failed.
    pub(crate) fn check(&self, slot: u16) -> Result<()> {
        let status = self.statuses[usize::from(slot)].load(Ordering::Relaxed);
        let sector = self.sectors[usize::from(slot)].load(Ordering::Relaxed);
        ensure!(
            status == 0,
            "the back-end answered a request of {} bytes at sector {} with status {status}",
            self.load.bytes,
            u64::from_le(sector)
        );
        Ok(())
    }
}

/// Converts an offset in the shared memory from `u64` to `usize`.
pub(crate) fn to_usize(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
