//! Ethernet frames: the buffers they live in, views of their headers, the
//! Internet checksum and segmentation.
//!
//! A frame inside the switch is untagged bytes plus [`FrameMeta`]: the VLAN tag
//! it came with, what is known of its checksum, and whether it still has to be
//! segmented. Between ports that accept them, large frames and partial checksums
//! travel as they are; [`segment`] and [`complete_checksum`] do in software what
//! an egress lacks.
//!
//! What it does not do: it never talks to a device, never decides where a frame
//! goes, never reads a clock.
//!
//! Invariants
//! - `FrameMeta` is always true of the bytes: offsets lie inside the frame.
//!   Whoever takes frames from outside validates before a `Frame` exists.
//! - Parsers take any bytes; they return an error or a view, never panic.
//! - No function here allocates per frame; buffers are made once and reused.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod batch;
mod buffer;
mod mac;
mod meta;
mod vlan;

pub use batch::{BATCH_BYTES_MAX, BATCH_FRAMES_MAX, FrameBatch};
pub use buffer::{FRAME_BYTES_MAX, Frame, HEADROOM_MIN};
pub use mac::{MacAddr, MacAddrError};
pub use meta::{Checksum, FrameMeta, Gso, GsoKind, Offloads};
pub use vlan::{VlanId, VlanTag};
