//! Records of image metadata that outlive the process, one file per image.
//!
//! Implements [`suimon_ports::RedoRecords`] with files of a directory. A change is kept by one
//! `write`, which the kernel has executed when it returns, even if the process dies afterwards.
//! Nothing is flushed: after a crash of the host the records are void, which is detected by the id
//! of the boot that they belong to. A directory in memory (`/run`) is best.
//!
//! A file has a header and a ring of entries of equal length:
//! ```text
//! 0      8        12    16       32        48         64      80        88       128
//! magic │ version │ room │ boot id │ write id │ redone as │ first │ file_len │ CRC ... │ entries
//! ```
//! An entry has its number and a CRC-32C, so that the end of the ring needs no field: it is before
//! the first entry that is damaged or has an unexpected number. If valid entries follow it, the
//! record is damaged.
//!
//! Invariants
//! - Changes for which [`keep`](suimon_ports::RedoRecord::keep) returned `true` are loaded until
//!   they are forgotten, even if the process is killed at once.
//! - The size of a record is bounded: 1024 entries of 64 bytes, and its header.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod entry;
mod header;
mod record;
mod records;

pub use records::FileRecords;
