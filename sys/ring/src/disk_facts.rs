//! What the rings of a disk must know of it, part of which changes while they run.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use suimon_image::ByteRange;

/// The unit of `sector` and `num_sectors` in requests and of `capacity` in configuration
/// space, whatever the disk's own sectors are (virtio 1.3, section 5.2.5).
pub const SECTOR_BYTES: u64 = 512;
/// Bytes of a disk's serial number (`VIRTIO_BLK_ID_BYTES`).
pub const SERIAL_BYTES: usize = 20;
/// The most sectors of 512 bytes that one request may discard or fill with zeros
/// (`max_discard_sectors`, `max_write_zeroes_sectors`): 2 GB.
pub const RANGE_SECTORS_MAX: u32 = 1 << 22;

/// What a disk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskShape {
    /// Its length.
    pub bytes: u64,
    /// Bytes of its sectors: offsets and lengths of requests are multiples of this. A
    /// power of two, at least 512.
    pub sector_bytes: u32,
    /// Whether nothing may be written.
    pub is_read_only: bool,
    /// Its serial number; what is beyond 20 bytes is left out.
    pub serial: String,
}

/// A disk as its rings see it. Shared by them and by whoever changes it.
#[derive(Debug)]
pub struct DiskFacts {
    bytes: AtomicU64,
    is_write_back: AtomicBool,
    sector_bytes: u32,
    is_read_only: bool,
    serial: [u8; SERIAL_BYTES],
}

impl DiskFacts {
    /// A disk with a write-back cache.
    pub fn new(shape: &DiskShape) -> Self {
        let mut serial = [0; SERIAL_BYTES];
        for (to, from) in serial.iter_mut().zip(shape.serial.bytes()) {
            *to = from;
        }
        Self {
            bytes: AtomicU64::new(shape.bytes),
            is_write_back: AtomicBool::new(true),
            sector_bytes: shape.sector_bytes.max(SECTOR_BYTES as u32),
            is_read_only: shape.is_read_only,
            serial,
        }
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// From now on it is this long; requests that a ring has taken stand.
    pub fn resize(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether what is answered may still be in a cache (`writeback` of configuration
    /// space).
    pub fn is_write_back(&self) -> bool {
        self.is_write_back.load(Ordering::Relaxed)
    }

    /// Chooses it, as a driver does that negotiated `CONFIG_WCE`. Writes that a ring takes
    /// from now on are done so.
    pub fn set_write_back(&self, is_write_back: bool) {
        self.is_write_back.store(is_write_back, Ordering::Relaxed);
    }

    /// Bytes of its sectors.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Whether a range is of whole sectors.
    #[inline]
    pub(crate) fn has_whole_sectors(&self, range: ByteRange) -> bool {
        let within_sector = u64::from(self.sector_bytes) - 1;
        (range.offset() | range.len()) & within_sector == 0
    }

    /// Whether nothing may be written.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Its serial number, zeros behind it.
    pub fn serial(&self) -> [u8; SERIAL_BYTES] {
        self.serial
    }
}
