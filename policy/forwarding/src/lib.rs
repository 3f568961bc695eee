//! Forwarding of frames by a switch: pure functions over immutable tables and a replica of the
//! learned addresses.
//!
//! This crate moves no frames, reads no clock, keeps no traffic counters and stores no limiter
//! state. The switching plane calls [`Forwarder::decide`] for the verdicts on a batch, carries them
//! out, and counts.
//!
//! Lifecycle
//! - [`Tables::build`] converts the switches and ports of the host into one immutable value, shared
//!   by all workers. Every change creates a new one.
//! - Each worker has a [`Forwarder`]: its replica of the learned addresses. It adopts new tables
//!   and keeps addresses that the change does not affect. Addresses learned by one worker reach the
//!   others as [`LearnedAddress`].
//! - [`RateLimit`] limits a port's rate or flooded frames; its state is one number that the
//!   data plane keeps in an atomic shared by all queues of the port.
//!
//! Invariants
//! - A frame never reaches a port of another switch or one that does not carry its VLAN.
//! - A configured address belongs to its port: it is never learned elsewhere.
//! - Isolated ports never reach each other.
//! - The memory of a `Forwarder` is fixed on creation, except for a part proportional to the number
//!   of ports; no allocation per frame.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod addresses;
mod batch;
mod build;
mod configured_addresses;
mod decide;
mod egress;
mod forwarder;
mod hash;
mod key;
mod learned;
mod move_budget;
mod rate_limit;
mod slot;
mod spec;
mod tables;
mod verdict;
mod vlan_set;

pub use build::TablesError;
pub use egress::{FloodMember, FloodMembers, TagRule};
pub use forwarder::Forwarder;
pub use learned::{AddressSighting, LearnedAddress};
pub use rate_limit::{RateLimit, RateLimitState};
pub use slot::PortSlot;
pub use spec::{
    AGEING_DEFAULT, AGEING_MAX, AGEING_MIN, ForwardingPortSpec, LEARNED_ADDRESSES_MAX_DEFAULT,
    MTU_MAX, MTU_MIN, PortRole, SwitchSpec, VlanMode,
};
pub use tables::Tables;
pub use verdict::{DropReason, FloodKind, Verdict};
pub use vlan_set::VlanSet;
