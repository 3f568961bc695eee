//! Records of image metadata that outlive the process, one file per image.
//!
//! Implements [`suimon_ports::RedoRecords`] with files of a directory. One `write` stores a change;
//! when it returns, the change is in the kernel and survives the end of the process. Nothing is
//! flushed: after a crash of the host the records are void, which is detected by the boot id in
//! their header. The directory should be in memory (`/run`).
//!
//! A file has a header and a ring of entries of equal length. Integers are little-endian:
//! ```text
//! 0       8         12         16        32         48            64      80         88    128
//! magic │ version │ capacity │ boot id │ write id │ replayed id │ first │ file_len │ CRC │ entries
//! ```
//! Each entry contains its number and a CRC-32C, so that the end of the ring needs no field: it
//! precedes the first entry that is damaged or has an unexpected number. If valid entries follow
//! it, the record is damaged.
//!
//! Invariants
//! - Changes for which [`append`](suimon_ports::RedoRecord::append) returned `true` are loaded
//!   until they are truncated, even if the process is killed at once.
//! - The size of a record is bounded: its header, and 1024 entries of 64 bytes.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod entry;
mod header;
mod record;
mod records;

pub use records::FileRecords;
