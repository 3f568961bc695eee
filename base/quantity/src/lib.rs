//! Quantities, identifiers and virtual time: the words every floor shares.
//!
//! Everything here is a plain value. Nothing reads a clock, allocates an
//! identifier or knows what an identifier stands for; whoever owns the thing
//! hands the identifier out.
//!
//! Invariants: arithmetic never wraps. It saturates, because a policy that is
//! handed an absurd time must not turn it into a plausible one.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod cap;
mod count;
mod id;
mod pci;
mod rate;
mod time;

pub use cap::Cap;
pub use count::Count;
pub use id::{Direction, DiskId, PortId, ProcessorId, QueueId, StoreId, SwitchId};
pub use pci::{PciAddress, PciAddressError};
pub use rate::{BitRate, ByteRate, Iops};
pub use time::Time;
