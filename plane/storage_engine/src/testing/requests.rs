//! Disk of the tests, and requests to it.

use suimon_image::ByteRange;
use suimon_ports::DiskOp;

/// Size of the disk in bytes.
pub const SIZE: u64 = 4 << 20;

/// Write that need not be durable when it completes.
pub const WRITE: DiskOp = DiskOp::Write { is_durable: false };

/// Returns the range of the disk with this offset and length in bytes.
///
/// # Panics
/// The range exceeds the addressable bytes.
#[must_use]
pub fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange::new(offset, len).unwrap()
}
