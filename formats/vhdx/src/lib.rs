//! VHDX image format, version 1: fixed, dynamic and differencing images ([MS-VHDX]).
//!
//! [`Vhdx`] implements [`suimon_image::Image`]: it maps disk ranges to file ranges, allocates
//! blocks, and returns the steps that keep the image consistent across crashes.
//!
//! This crate opens no files, reads no payload, generates no GUIDs and does not resolve parents.
//! The caller decides whether to trust a [`ParentLocator`].
//!
//! Life cycle
//! - [`NewVhdx::create`] creates an image in an empty file.
//! - [`Vhdx::open`] replays the log and opens the image for writing; [`Vhdx::open_read_only`]
//!   replays in memory and writes nothing.
//! - The open image is then used through the `Image` interface, and finally closed with
//!   [`Vhdx::close`]. Dropping it instead is equivalent to a crash.
//! - [`check`] and [`resize`] require a file that is not in use.
//!
//! Invariants
//! - While an image is open for writing, its log always contains a valid entry.
//! - Metadata is changed through the log. Each entry can be replayed on its own and results in a
//!   consistent image.
//! - After a successful open, blocks, sector bitmaps and regions do not overlap and lie within the
//!   file.
//! - Memory for untrusted files is bounded: 256 MB for the BAT of 64 TB with blocks of 1 MB; during
//!   opening 128 MB for a log of 64 MB, and as much again for the occupancy map of 512 TB.
//!
//! In this crate, as in the specification, MB, GB and TB are 2^20, 2^30 and 2^40 bytes.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod bat;
mod check;
mod commit;
mod commit_in_progress;
mod create;
mod discard;
mod fields;
mod geometry;
mod guid;
mod header;
mod links;
mod locator;
mod log;
mod metadata;
mod open;
mod region;
mod repair;
mod replayed_view;
mod resize;
mod sector_bitmap;
mod space;
mod translate;
mod vhdx;
mod write_completion;

pub use check::{CheckReport, check};
pub use create::NewVhdx;
pub use guid::{Guid, GuidError};
pub use links::Links;
pub use locator::ParentLocator;
pub use metadata::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, DISK_BYTES_MAX};
pub use open::{WriteGuids, ranges_changed_by_opening};
pub use repair::{RepairAction, RepairResult, repair, set_parent_path};
pub use resize::resize;
pub use vhdx::{ImageType, Vhdx};
