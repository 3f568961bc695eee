//! Virtual Hard Disk (VHD) format: fixed, dynamic and differencing images.
//!
//! Specification: Microsoft, "Virtual Hard Disk Image Format Specification", version 1.0, October
//! 2006. Structures and fields have its names.
//!
//! - [`NewVhd`] creates an image, [`Vhd::open`] opens one, [`check`] reports inconsistencies,
//!   [`resize`] changes the size of the disk.
//! - [`Vhd`] implements [`Image`](suimon_image::Image): it maps disk ranges to file ranges,
//!   allocates blocks, and produces the writes that make changes durable.
//!
//! This crate opens no files, does not resolve parent paths, and does not support images split into
//! several files.
//!
//! Life cycle of a block of a dynamic disk
//! ```text
//! unused ─ translate_write ─► placed ─ handle_written ─► visible to reads ─ commit ─► durable
//!    ▲                                                                              │
//!    └── zeroed, free ◄── commit ◄── reads as zeros ◄── discard ────────────────────┘
//! ```
//!
//! Invariants
//! - The file always ends with a footer, never with guest data. To grow, the footer is written at a
//!   higher offset first; only when it is durable, the space before it is used.
//! - The table refers only to blocks with durable payload and bitmap. Blocks overlap neither each
//!   other nor other structures.
//! - A bit of a block's bitmap is set only if its sector is in the file. Blocks of dynamic disks
//!   have full bitmaps, and zeros in unwritten sectors.
//! - Offsets, lengths and counts of untrusted files are validated before they are used or memory is
//!   allocated for them.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod bitmap;
mod bitmap_cache;
mod block_set;
mod changes;
mod check;
mod commit;
mod create;
mod disk_geometry;
mod fields;
mod find_footers;
mod footer;
mod gap;
mod geometry;
mod header;
mod image;
mod layout;
mod links;
mod locator;
mod locator_entry;
mod open;
mod repair;
mod resize;
mod space;
mod sparse;
mod table;

pub use check::{CheckFinding, CheckReport, FINDINGS_MAX, FindingSeverity, check};
pub use create::{BLOCK_SIZE_DEFAULT, CreateParameters, NewVhd, SizeEncoding};
pub use footer::{DISK_BYTES_MAX, DiskType, Footer, SizeSource};
pub use geometry::Geometry;
pub use header::{DynamicHeader, TABLE_ENTRIES_MAX};
pub use image::Vhd;
pub use links::Links;
pub use locator::{LOCATOR_BYTES_MAX, Parent, ParentLocator, ParentMismatch};
pub use locator_entry::LocatorEntry;
pub use open::{Access, OpenOptions};
pub use repair::{RepairAction, payload_ranges, repair, set_parent_path};
pub use resize::resize;
