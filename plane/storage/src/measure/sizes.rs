//! Sizes of the file that a measurement uses.

pub(crate) const MIB: u64 = 1 << 20;
/// Maximum size of the test file in bytes. Larger than the caches of most devices' controllers, but
/// written in a short time.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * MIB;
/// Minimum size of the test file in bytes: with less, caches dominate the result.
pub(crate) const FILE_BYTES_MIN: u64 = 16 * MIB;
