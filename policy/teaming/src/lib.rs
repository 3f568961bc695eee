//! NIC teaming: which member of a team a frame leaves by, which frames that arrive on
//! a member are taken, and what follows when a member fails or comes back.
//!
//! - [`Team`] is the control side: it hears of links, of the switch's ports, of a new
//!   [`TeamSpec`] and of loads, and answers with a [`Change`]: a new [`Distribution`]
//!   where there is one, addresses to announce, and events with their reasons.
//! - [`Distribution`] is the hot side: immutable, shared by all processors.
//!   [`Distribution::choose`] and [`Distribution::choose_flowlet`] say where a frame
//!   leaves, [`Distribution::accepts`] and [`Distribution::reaches`] who gets what
//!   arrives.
//! - [`lacp`] is the protocol by which a team's members and what is behind them agree
//!   who carries frames (IEEE 802.1AX).
//!
//! What it does not do: it moves no frame, reads no clock, counts nothing, and keeps
//! no flowlet's state, which is one number that the plane keeps in an atomic
//! ([`FlowletState`]). It does not write the frames that announce an address.
//!
//! Invariants
//! - Nothing is sent on a member that is down, on a standby that is not needed, or by
//!   a team with fewer usable members than it needs.
//! - The same events give the same distribution. While nothing changes, a flow keeps
//!   its member; a change of one member moves only what has to leave it or goes to it.
//! - In switch-independent mode an upstream switch sees each source address on one of
//!   its ports, until an event moves it, and the move is announced.
//! - A frame that this host sent is not taken back, and of a group frame that several
//!   members receive each port gets one copy.
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
pub mod lacp;
mod lookup;
mod member;
#[cfg(test)]
mod properties_tests;
mod rebalance;
mod roster;
mod shares;
mod slots;
mod spec;
mod spec_error;
mod standing;
mod team;
#[cfg(test)]
mod test_teams;
#[cfg(test)]
mod upstream_tests;

pub use accept::{Acceptance, Incoming, IncomingDrop};
pub use change::{Announcement, Change, MemberFault, TeamEvent};
pub use distribution::{BUCKETS, Choice, Distribution, Origin, OutgoingKey};
pub use flowlet::{Bucket, FlowletState};
pub use member::{MemberId, MemberLink, MemberSpec};
pub use rebalance::{BucketLoad, REBALANCE_PERIOD};
pub use slots::{MEMBERS_MAX, MemberSlot};
pub use spec::{Algorithm, TeamId, TeamMode, TeamSpec};
pub use spec_error::{SpecError, UnknownMember};
pub use team::{MemberStatus, Team, TeamPort};
