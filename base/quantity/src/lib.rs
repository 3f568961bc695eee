//! Quantities, identifiers and virtual time, shared by all layers.
//!
//! This crate contains plain values only. It reads no clock and allocates no identifiers; the owner
//! of an object assigns its identifier.
//!
//! Invariant: arithmetic saturates and never wraps, so that an absurd time passed to a policy does
//! not become a plausible one.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod counted_noun;
mod id;
mod pci;
mod rate;
mod time;
mod timed_rate_limit;

pub use counted_noun::CountedNoun;
pub use id::{Direction, DiskId, PortId, QueueId, StoreId, SwitchId, WorkerId};
pub use pci::{PciAddress, PciAddressError};
pub use rate::{BitRate, ByteRate, Iops};
pub use time::Time;
pub use timed_rate_limit::TimedRateLimit;
