//! VHDX images, version 1: fixed, dynamic and differencing ([MS-VHDX]).
//!
//! [`Vhdx`] is a [`suimon_image::Image`]: it says where the bytes of a disk are in the
//! file and where they go, and which steps keep that true whenever the power fails.
//!
//! What it does not do: it opens no file and reads no payload, draws no GUID, follows no
//! parent. Who does decides whether a [`ParentLocator`] is believed.
//!
//! Lifecycle
//! - [`NewImage::create`] makes an image in an empty file.
//! - [`Vhdx::open`] replays the log and puts the image to use; [`Vhdx::open_read_only`]
//!   replays in memory and writes nothing.
//! - Then it is driven as every image, and [`Vhdx::close`]d; or not, as after a crash.
//! - [`check`] and [`resize`] work on a file that nobody has open.
//!
//! Invariants
//! - While an image is open for writing, its log has an entry that counts, at any time.
//! - Metadata is changed by way of the log; each entry is replayed alone, and leaves
//!   an image.
//! - After a successful open, blocks, sector bitmaps and regions are apart from one
//!   another and in the file.
//! - Memory for what a file says is bounded: 256 MB for the BAT of 64 TB in blocks of
//!   1 MB; and while it is opened 128 MB for a log of 64 MB, and as much again for which
//!   megabytes of 512 TB are in use.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod bat;
mod check;
mod commit;
mod create;
mod fields;
mod geometry;
mod guid;
mod header;
mod locator;
mod log;
mod metadata;
mod open;
mod region;
mod repair;
mod resize;
mod sector_bitmap;
mod space;
mod translate;
mod vhdx;
mod view;

pub use check::{Report, check};
pub use create::NewImage;
pub use guid::{Guid, NoGuid};
pub use locator::ParentLocator;
pub use metadata::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, DISK_BYTES_MAX};
pub use open::WriteGuids;
pub use repair::{Repair, Repaired, relink, repair};
pub use resize::resize;
pub use vhdx::{Kind, Vhdx};
