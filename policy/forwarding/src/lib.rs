//! What a switch does with a frame: pure functions over immutable tables and a
//! replica of what was learned.
//!
//! What it does not do: it moves no frame, reads no clock, counts nothing and
//! keeps no limit's state. The switching plane asks [`Forwarder::decide`] for a
//! batch's verdicts, carries them out, and counts.
//!
//! Lifecycle
//! - [`Tables::build`] turns the switches and ports of the host into one
//!   immutable value, shared by all processors. Every change makes a new one.
//! - Each processor has a [`Forwarder`]: its replica of the learned addresses.
//!   It adopts new tables without forgetting what the change did not touch.
//!   What one processor learns reaches the others as [`Learned`].
//! - [`Limit`] is a port's or storm's limit; its state is one number that the
//!   plane keeps in an atomic shared by all queues of the port.
//!
//! Invariants
//! - A frame never reaches a port of another switch or one that does not carry
//!   its VLAN.
//! - A configured address belongs to its port: it is never learned elsewhere.
//! - Two isolated ports never reach each other.
//! - Memory is fixed when a `Forwarder` is made, but for what grows with the
//!   number of ports; nothing allocates per frame.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod addresses;
mod build;
mod decide;
mod egress;
mod forwarder;
mod hash;
mod learned;
mod limit;
mod spec;
mod statics;
mod tables;
mod verdict;
mod vlan_set;

pub use build::TablesError;
pub use egress::{Flood, FloodMember, TagRule};
pub use forwarder::Forwarder;
pub use learned::{Entry, Learned};
pub use limit::{Limit, LimitState};
pub use spec::{
    AGEING_DEFAULT, AGEING_MAX, AGEING_MIN, LEARNED_MAX_DEFAULT, MTU_MAX, MTU_MIN, PortRole,
    PortSpec, SwitchSpec, VlanMode,
};
pub use tables::{PortSlot, Tables};
pub use verdict::{DropReason, FloodKind, Verdict};
pub use vlan_set::VlanSet;
