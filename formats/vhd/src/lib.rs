//! Virtual hard disks (VHD): fixed, dynamic and differencing images, as values.
//!
//! The specification is Microsoft's "Virtual Hard Disk Image Format Specification",
//! version 1.0 of October 2006; its names are used for structures and fields.
//!
//! - [`NewVhd`] makes an image, [`Vhd::open`] opens one, [`check`] lists what is wrong with
//!   one, [`resize`] gives its disk another size.
//! - [`Vhd`] is an [`Image`](suimon_image::Image): it says where a disk's bytes are, finds
//!   room for blocks, and says what is to be written so that changes are durable.
//!
//! What it does not do: it opens no file, follows no path to a parent, and does not join
//! images that were split into several files.
//!
//! Life of a block of a dynamic disk
//! ```text
//! unused ─ place_write ─► placed ─ handle_written ─► reads see it ─ commit ─► durable
//!    ▲                                                                          │
//!    └── zeros, room for another ◄── commit ◄── reads see zeros ◄── discard ────┘
//! ```
//!
//! Invariants
//! - The file ends with a footer at every moment, and never with what a guest wrote. A file
//!   grows by a footer further out; only when that is durable is there room before it.
//! - The table names only blocks whose payload and bitmap are durable; no two of them
//!   overlap, nor anything else of the file.
//! - Bits of a block's bitmap are set only for sectors that are in the file. Blocks of
//!   dynamic disks have all bits set, and zeros where nothing was written.
//! - Offsets, lengths and counts of a hostile file are checked before they are used or
//!   anything is allocated for them.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod bitmap;
mod bitmap_cache;
mod blocks;
mod changes;
mod check;
mod commit;
mod create;
mod fields;
mod find;
mod footer;
mod geometry;
mod header;
mod layout;
mod locator;
mod open;
mod repair;
mod resize;
mod space;
mod sparse;
mod table;
mod vhd;

pub use check::{FINDINGS_MAX, Finding, Report, Severity, check};
pub use create::{BLOCK_SIZE_DEFAULT, NewDisk, NewSize, NewVhd};
pub use footer::{DiskType, Footer, SIZE_MAX, SizeRule};
pub use geometry::Geometry;
pub use header::{DynamicHeader, TABLE_ENTRIES_MAX};
pub use locator::{LOCATOR_BYTES_MAX, LocatorEntry, Parent, ParentLocator, ParentMismatch};
pub use open::{Access, OpenOptions};
pub use repair::{Repair, payload_ranges, relink, repair};
pub use resize::resize;
pub use vhd::Vhd;
