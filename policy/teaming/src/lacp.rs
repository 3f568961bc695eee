//! Link Aggregation Control Protocol (LACP), version 1, and Marker Responder.
//!
//! This module sends no frame, reads no clock and distributes no traffic. [`Lacp`] receives link
//! changes and frames and returns the frames to send and the members that collect and distribute.
//!
//! Lifecycle
//! - [`Lacp::new`] creates the aggregation of one team, [`Lacp::add_member`] its ports.
//! - After every `handle_*`, `set_*`, `add_*` and `remove_*`, and at [`Lacp::next_deadline`], the
//!   caller calls [`Lacp::poll`] and carries out the returned actions.
//!
//! Invariants
//! - A member distributes only while its Partner is in sync and it is selected for the one
//!   Aggregator that the team uses.
//! - A member never aggregates with its own System.
//! - A member sends at most three LACPDUs and three Marker Responses in any second, independent of
//!   the received frames.
//! - A received frame costs a bounded amount of work and no allocation.
//!
//! Clauses are those of IEEE Std 802.1AX-2014, whose numbering most implementations cite. The 2020
//! edition keeps the protocol on the wire; its Mux machine is 6.4.13 and its Transmit machine
//! 6.4.14. It permits up to ten frames a second; the limit of three of 2014 satisfies both. It
//! describes coupled control as a case of one Mux machine; Figure 6-22 of 2014 is that case.

mod action;
mod churn;
mod constants;
mod counters;
mod engine;
mod error;
mod frame;
mod frame_reader;
mod info;
mod key;
mod lacpdu;
mod lag;
mod marker;
mod mux;
mod parse;
mod periodic;
mod port;
mod port_view;
mod rate_limiter;
mod reason;
mod receive;
mod record;
mod responder;
mod selection;
mod spec;
mod state_bits;
mod status;
#[cfg(test)]
mod test_bench;
mod transmit;
mod variables;

pub use action::{ChurnSide, LacpAction, ReceivedPdu};
pub use churn::ChurnState;
pub use counters::Counters;
pub use engine::Lacp;
pub use error::PduError;
pub use frame::{SLOW_FRAME_BYTES, SlowFrame};
pub use info::PortInfo;
pub use lacpdu::Lacpdu;
pub use lag::{LagClass, LagId};
pub use marker::{Marker, MarkerKind};
pub use mux::MuxState;
pub use parse::{SlowPdu, parse, parse_exact};
pub use periodic::PeriodicState;
pub use reason::LacpReason;
pub use receive::ReceiveState;
pub use spec::{Activity, LacpPortSpec, LacpSpec, LacpSpecError, Link, Timer};
pub use state_bits::PortState;
pub use status::{MemberState, TeamState};
pub use variables::Selected;
