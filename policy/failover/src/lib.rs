//! Failover of a NIC between the path through a virtual function (VF) of an SR-IOV adapter and the
//! paravirtual path through the switch.
//!
//! [`Failover`] is a state machine: it processes events about NICs, adapters and VFs and returns
//! actions. It performs no hot-plug operations itself and reads no clock.
//!
//! Lifecycle
//! - [`Failover::new`] with a [`FailoverSpec`]. The owner reports [`FailoverEvent`]s with
//!   [`Failover::handle`] and calls [`Failover::poll_action`] after each until no action is left.
//! - At [`Failover::next_deadline`] the owner calls [`Failover::handle_deadline`].
//! - A NIC gets a VF by [`FailoverAction::PlugVf`]; its frames use it from
//!   [`FailoverAction::UseVf`] on, once [`FailoverEvent::VfPathReady`] reports that the guest uses
//!   it. [`FailoverAction::UseParavirtual`] ends the use immediately; [`FailoverAction::UnplugVf`]
//!   follows, and the VF is not assigned again before [`FailoverEvent::VfReleased`].
//!
//! Assignment of VFs
//! - NICs with an `iov_weight` above 0 get VFs in descending order of weight, among equals in
//!   ascending order of identifiers. A NIC with a VF keeps it, whatever the weights of others,
//!   unless its own weight becomes 0.
//! - A NIC gets a VF of an adapter that connects its switch, the one with the fewest assigned VFs.
//! - After a failure, NIC and VF are held down for [`FailoverSpec::hold_down`]: a VF that was lost
//!   or whose adapter was reset, and the NIC that had to leave it. Migrations and configuration
//!   changes are not failures.
//!
//! Invariants
//! - A NIC has exactly one path at any time. The paravirtual path always exists.
//! - No VF is assigned to two NICs, and no NIC has two VFs.
//! - Events that are unknown or too late have no effect; time does not run backwards.
//! - The same events at the same times lead to the same actions; events and actions can be
//!   serialized (serde).
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod action;
mod assign;
mod event;
mod failover;
mod id;
mod state;

pub use action::{FailoverAction, FailoverReason};
pub use event::FailoverEvent;
pub use failover::{Failover, FailoverSpec};
pub use id::{AdapterId, VfId};
pub use state::DataPath;
