//! Disk images: translation of disk ranges to file ranges, and changes of the mapping.
//!
//! A format ([`Image`]) only translates and never blocks. The caller performs payload I/O and
//! executes the writes that the format requires. Creation, opening, checks and resizing use
//! blocking file access ([`ImageFile`]), while the disk is not in service.
//!
//! This crate contains no format except the trivial one ([`LinearImage`]). It opens no files and
//! buffers no payload.
//!
//! Life cycle of a write
//! ```text
//! Image::translate_write ──► extents of the file ──► payload is written there
//!                                                     │
//!   metadata in memory is updated ◄── handle_written ◄─┘──► completion to the guest
//!
//! guest flush, or many uncommitted changes
//!   begin_commit ──► steps: flush, log, flush, [durable], apply ──► handle_commit
//!                                               │
//!                                               └──► completion of the flush
//! space that the commit has freed
//!   poll_zeroing ──► the range is zeroed ──► handle_zeroed ──► the space is used again
//! ```
//!
//! Invariants
//! - Metadata that refers to payload is written only after that payload is durable. A crash between
//!   any two steps leaves an image that opens and contains everything reported as durable.
//! - Freed space is reused only after the deallocation is durable and the space was zeroed, and
//!   reads as zeros until it is written. Zeroing is not part of a commit, so that no flush waits
//!   for it.
//! - Offsets and lengths are in bytes; sums never wrap.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod commit;
mod error;
mod extent;
mod file;
mod image;
mod linear;
mod range;
mod range_set;
mod redo;
#[cfg(feature = "testing")]
pub mod testing;

pub use commit::{Commit, CommitOutcome, FailedStep, Step};
pub use error::{ImageError, ImageFault};
pub use extent::{ImageExtent, Location, push_extent};
pub use file::{FileError, ImageFile};
pub use image::{DiskGeometry, Image, Translation, zero_freed};
pub use linear::LinearImage;
pub use range::ByteRange;
pub use range_set::RangeSet;
pub use redo::{ImageIdentity, MetadataChange, NewContent, RedoChanges};
