//! Disk images: where a disk's bytes are in a file, and how that changes.
//!
//! A format ([`Image`]) translates; it never waits. Whoever drives it does the I/O on the
//! payload, and writes down what the format wants written. Creating, opening, checking
//! and resizing are done outside of a disk's service, on a file that can be waited for
//! ([`ImageFile`]).
//!
//! What it does not do: it knows no format but that which is none ([`Linear`]), opens no
//! file and holds no payload.
//!
//! Life of a write
//! ```text
//! Image::place_write ──► extents of the file ──► payload is written there
//!                                                     │
//!   metadata in memory says so  ◄── handle_written ◄──┘──► the guest is told: done
//!
//! the guest flushes, or much has changed
//!   begin_commit ──► steps: flush, log, flush, [durable], apply ──► handle_commit
//!                                               │
//!                                               └──► the guest is told: durable
//! ```
//!
//! Invariants
//! - Metadata that points to payload is written only after that payload is on the disk;
//!   a crash between any two steps leaves an image that opens and has everything that
//!   was told to be durable.
//! - Space that was freed is used again only after the freeing is durable, and reads as
//!   zeros until it is written.
//! - All offsets and lengths are bytes; sums never wrap.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod commit;
mod error;
mod extent;
mod file;
mod image;
mod linear;
mod range;
mod redo;
#[cfg(feature = "testing")]
pub mod testing;

pub use commit::{Commit, CommitOutcome, Step};
pub use error::{ImageError, ImageFault};
pub use extent::{Extent, Place, push_extent};
pub use file::{FileError, ImageFile};
pub use image::{Image, Located, Shape};
pub use linear::Linear;
pub use range::ByteRange;
pub use redo::{Changed, MetadataChange, OpenedImage, Redo};
