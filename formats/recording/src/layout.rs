//! Constants of the file format.

/// Magic number at the start of a recording.
pub const MAGIC: [u8; 8] = *b"SUIMONRC";
/// Format version written and read by this crate.
pub const VERSION: u32 = 3;
/// Length of the file header in bytes.
pub const FILE_HEADER_BYTES: usize = 12;
/// Length of a block header in bytes.
pub const BLOCK_HEADER_BYTES: usize = 8;
/// Maximum length of a block's body in bytes.
pub const BLOCK_BYTES_MAX: u32 = 16 << 20;
