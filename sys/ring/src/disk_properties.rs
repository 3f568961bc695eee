//! Properties of a disk that its rings use. Some change while the rings run.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use suimon_image::ByteRange;

/// Unit in bytes of `sector` and `num_sectors` in requests and of `capacity` in configuration
/// space, independent of the disk's sector size (virtio 1.3, section 5.2.5).
pub const SECTOR_BYTES: u64 = 512;
/// Length in bytes of a disk's serial number (`VIRTIO_BLK_ID_BYTES`).
pub const SERIAL_BYTES: usize = 20;
/// Maximum number of 512-byte sectors of one discard or write-zeroes request
/// (`max_discard_sectors`, `max_write_zeroes_sectors`): 2 GiB.
pub const RANGE_SECTORS_MAX: u32 = 1 << 22;

/// Size, sector size, access mode and serial number of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskDescription {
    /// Length of the disk in bytes.
    pub bytes: u64,
    /// Sector size in bytes: a power of two, at least 512. Offsets and lengths of requests are
    /// multiples of it.
    pub sector_bytes: u32,
    /// True if the disk cannot be written.
    pub is_read_only: bool,
    /// Serial number; bytes beyond the first 20 are ignored.
    pub serial: String,
}

/// Properties of a disk, shared by its rings and the threads that change them.
#[derive(Debug)]
pub struct DiskProperties {
    bytes: AtomicU64,
    is_write_back: AtomicBool,
    sector_bytes: u32,
    is_read_only: bool,
    serial: [u8; SERIAL_BYTES],
}

impl DiskProperties {
    /// Creates the properties of a disk with a write-back cache.
    pub fn new(disk: &DiskDescription) -> Self {
        let mut serial = [0; SERIAL_BYTES];
        for (to, from) in serial.iter_mut().zip(disk.serial.bytes()) {
            *to = from;
        }
        Self {
            bytes: AtomicU64::new(disk.bytes),
            is_write_back: AtomicBool::new(true),
            sector_bytes: disk.sector_bytes.max(SECTOR_BYTES as u32),
            is_read_only: disk.is_read_only,
            serial,
        }
    }

    /// Returns the length of the disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Sets the length in bytes. Requests that a ring has already taken are not affected.
    pub fn resize(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns true if completed writes may still be in a cache (`writeback` of configuration
    /// space).
    pub fn is_write_back(&self) -> bool {
        self.is_write_back.load(Ordering::Relaxed)
    }

    /// Selects write-back (true) or write-through (false), for a driver that has negotiated
    /// `CONFIG_WCE`. Applies to writes that a ring takes later.
    pub fn set_write_back(&self, is_write_back: bool) {
        self.is_write_back.store(is_write_back, Ordering::Relaxed);
    }

    /// Returns the sector size in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Returns true if offset and length of the range are multiples of the sector size.
    #[inline]
    pub(crate) fn is_sector_aligned(&self, range: ByteRange) -> bool {
        let within_sector = u64::from(self.sector_bytes) - 1;
        (range.offset() | range.len()) & within_sector == 0
    }

    /// Returns true if the disk cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Returns the serial number, padded with zeros.
    pub fn serial(&self) -> [u8; SERIAL_BYTES] {
        self.serial
    }
}
