//! NIC teaming: selection of the member by which a frame leaves, admission of frames received on a
//! member, and failover between members.
//!
//! - [`Team`] is the control side. It processes link changes, the ports of the switch, new
//!   [`TeamSpec`]s and loads, and returns a [`TeamChange`]: a new [`Distribution`] if it differs,
//!   addresses to announce, and events with their reasons.
//! - [`Distribution`] is the data-path side: immutable, shared by all workers.
//!   [`Distribution::choose`] and [`Distribution::choose_flowlet`] select the member of an outgoing
//!   frame, [`Distribution::check_incoming`] and [`Distribution::forwards_to_port`] the receivers
//!   of an incoming one.
//! - [`lacp`] implements link aggregation control (IEEE 802.1AX).
//!
//! This crate moves no frames, reads no clock, keeps no traffic counters and stores no flowlet
//! state, which is one number that the data plane keeps in an atomic ([`FlowletState`]). It does
//! not build the frames that announce an address.
//!
//! Invariants
//! - No frame is sent on a member that is down, on an idle standby, or by a team with fewer usable
//!   members than it requires.
//! - The same events produce the same distribution. Without changes a flow keeps its member; a
//!   change of one member moves only flows that must leave it or move to it.
//! - In switch-independent mode an upstream switch sees each source address on one of its ports
//!   until an event moves it, and the move is announced.
//! - A frame that this host sent is not accepted when it is reflected. Of a group frame received by
//!   several members each port gets one copy.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod accept;
mod addresses;
mod build;
mod change;
#[cfg(test)]
mod combinations_tests;
mod distribution;
mod flowlet;
mod item_assignment;
pub mod lacp;
mod member;
mod member_roles;
mod member_table;
mod mode;
#[cfg(test)]
mod properties_tests;
mod rebalance;
mod slot_map;
mod slots;
mod spec;
mod spec_error;
mod team;
#[cfg(test)]
mod test_teams;
#[cfg(test)]
mod upstream_tests;

pub use accept::{Acceptance, IncomingDropReason, IncomingFrame};
pub use change::{AnnounceRequest, MemberFault, TeamChange, TeamEvent};
pub use distribution::{BUCKETS, Distribution, IngressContext, MemberChoice, OutgoingKey};
pub use flowlet::{Bucket, FlowletState};
pub use member::{MemberId, MemberLink, MemberSpec};
pub use mode::{Algorithm, TeamId, TeamMode};
pub use rebalance::{BucketLoad, REBALANCE_PERIOD};
pub use slots::{MEMBERS_MAX, MemberSlot};
pub use spec::TeamSpec;
pub use spec_error::{TeamSpecError, UnknownMember};
pub use team::{MemberStatus, Team, TeamPort};
