//! The switching plane: processors, the queues they own, and the engine that
//! takes frames from ingress to egress queues.
//!
//! ```text
//! ingress queue ─batch─► forwarding::decide ─► egress step ─► egress queue
//!   (owner: P0)                                 │ (owner: P0)
//!                                               └─parcel─► P1's mailbox ─► egress queue
//! ```
//!
//! What it does not do: it knows no device and no configuration; queues come in
//! through [`QueueHost`](suimon_ports::QueueHost), switches and ports as a
//! [`Topology`].
//!
//! Lifecycle: [`DataPlane::start`], then any order of publishing topologies,
//! attaching, moving and detaching queues, and changing the processors, then
//! [`DataPlane::stop`].
//!
//! Invariants
//! - A queue is touched by one thread only: its owner.
//! - What processors know is published to them as one immutable value; they send
//!   each other mail; nobody locks and nobody allocates per frame.
//! - Moving a queue loses and reorders nothing; see `handover.rs`.
//! - A fault ends one queue. The others go on.
//! - All of a processor's time is accounted for by stage, each nanosecond once; and what it
//!   did for queues by queue, none twice.
#![forbid(unsafe_code)]

mod capture;
mod coalescing;
mod engine;
mod handover;
mod ledger;
mod link;
mod notice;
mod owned;
mod patience;
mod plane;
mod port_record;
mod post;
mod processor;
mod published;
mod registry;
mod sources;
mod stage_tally;
mod stages;
mod tally;
mod team_shared;
mod topology;
mod view;
mod ways;

pub use capture::{CaptureOptions, CaptureReader, CapturedFrame};
pub use notice::{NOTICE_EVERY, PlaneNotice};
pub use plane::DataPlane;
pub use stages::Stage;
pub use topology::{MoveError, PortTopology, TeamMember, TeamTopology, Topology, TopologyError};
pub use view::{AddressView, PortCountersView, ProcessorView, QueueView, StageTimes};
