//! Which path a NIC's frames take: that of a virtual function (VF) of an adapter with
//! SR-IOV, or the synthetic one, through the switch.
//!
//! [`Failover`] is a state machine: it is told what happened to NICs, adapters and VFs, and
//! answers with what is to be done. It plugs nothing and unplugs nothing itself, and reads no
//! clock.
//!
//! Lifecycle
//! - [`Failover::new`] from a [`FailoverSpec`]. All that is known is told as [`Event`]s, which
//!   are facts, with [`Failover::handle`]; [`Failover::poll_action`] is asked after each until
//!   nothing is left to do.
//! - At [`Failover::next_deadline`] the owner calls [`Failover::handle_deadline`].
//! - A NIC gets a VF by [`Action::GiveVf`], and its frames take it by [`Action::UseVf`] once
//!   [`Event::VfPathReady`] says that the guest has it. They leave it by
//!   [`Action::UseSynthetic`], at once; [`Action::TakeVf`] follows, and the VF is nobody
//!   else's before [`Event::VfReleased`].
//!
//! Who gets a VF
//! - NICs with an `iov_weight` above 0, the highest first, among equals the lower identifier.
//!   A NIC that has a VF keeps it, whatever others weigh, unless its own weight becomes 0.
//! - A NIC is given a VF of an adapter that it can be reached by, the one of those that has
//!   given the fewest away.
//! - What failed is left alone for [`FailoverSpec::hold_down`]: a VF that was lost or whose
//!   adapter was reset, and a NIC that had to leave its VF. Migration and wishes are no
//!   failures.
//!
//! Invariants
//! - A NIC has exactly one path at any time. The synthetic one is always there.
//! - No VF is given to two NICs, and no NIC is given two VFs.
//! - What is not known, or comes too late, changes nothing; time does not run backwards.
//! - The same events at the same times lead to the same actions; events and actions can be
//!   written down and read again (serde).
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod action;
mod assign;
mod event;
mod failover;
mod id;
mod state;

pub use action::{Action, Why};
pub use event::Event;
pub use failover::{Failover, FailoverSpec};
pub use id::{AdapterId, VfId};
pub use state::Path;
