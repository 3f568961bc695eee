//! Records of image metadata that outlive the process, one file for each image.
//!
//! Implements [`suimon_ports::RedoRecords`] on files of a directory. A change is kept by one
//! `write`, which the kernel has done when it returns, whatever becomes of the process. Nothing is
//! flushed: after a crash of the host the records say nothing, and are told apart by the boot that
//! they are of. A directory in memory (`/run`) is best.
//!
//! A file has a header and a ring of entries of the same length:
//! ```text
//! 0      8        12    16       32        48         64      80        88       128
//! magic │ version │ room │ boot id │ write id │ redone as │ first │ file_len │ CRC ... │ entries ...
//! ```
//! An entry has its number and a CRC-32C, so that the end of the ring needs no place of its own: it is
//! before the first entry that is damaged or whose number is not the next. If there are later ones, the
//! record is damaged.
//!
//! Invariants
//! - What [`keep`](suimon_ports::RedoRecord::keep) has returned `true` for is loaded until it is
//!   forgotten, also if the process is killed in the next moment.
//! - A record has a bounded size: 1024 entries of 64 bytes, and its header.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod entry;
mod header;
mod record;
mod records;

pub use records::FileRecords;
