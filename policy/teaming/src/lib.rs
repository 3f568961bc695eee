//! Teams: several uplinks that a switch uses as one.
//!
//! - [`lacp`]: which members a partner agrees to use (IEEE 802.1AX).
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

pub mod lacp;
mod member;

pub use member::MemberId;
