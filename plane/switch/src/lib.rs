//! Switching plane: workers, the queues that they own, and the engine that moves frames from
//! ingress to egress queues.
//!
//! ```text
//! ingress queue ─batch─► forwarding::decide ─► egress step ─► egress queue
//!   (owner: worker 0)                           │ (owner: worker 0)
//!                                               └─message─► mailbox of worker 1 ─► egress queue
//! ```
//!
//! Outside of the scope: devices and configuration. Queues are attached through
//! [`QueueHost`](suimon_ports::QueueHost); switches and ports are given as a [`Topology`].
//!
//! Life cycle: [`DataPlane::start`], then topologies are published, queues attached, moved and
//! detached, and workers added and removed in any order, then [`DataPlane::stop`].
//!
//! Invariants
//! - A queue is used by one thread only: its owner.
//! - Workers receive their tables as one immutable value and send each other messages. Workers take
//!   no lock and allocate no memory per frame.
//! - Moving a queue neither loses nor reorders frames; see `handover.rs`.
//! - A fault ends one queue. The others continue.
//! - Each nanosecond of a worker's time is attributed to exactly one stage. Time spent on queues is
//!   attributed to at most one queue.
#![forbid(unsafe_code)]

mod accepted_offloads;
mod attachment;
mod capture;
mod coalescing;
mod counters;
mod detaching;
mod engine;
mod frame_sender;
mod handover;
mod latch;
mod notice;
mod outbox;
mod owned;
mod plane;
mod polling_time;
mod port_record;
mod published;
mod published_stage_times;
mod queue_accounting;
mod queue_record;
mod registry;
mod round_progress;
mod routes;
mod shared_team_state;
mod sources;
mod stage;
mod stage_clock;
mod stall_detector;
mod topology;
mod view;
mod worker;
mod worker_mailbox;

pub use capture::{CaptureBufferLimits, CaptureReader, CapturedFrame};
pub use notice::{NOTICE_INTERVAL, SwitchNotice};
pub use plane::DataPlane;
pub use round_progress::STALLED_AFTER;
pub use stage::Stage;
pub use topology::{MoveError, PortTopology, TeamMember, TeamTopology, Topology, TopologyError};
pub use view::{AddressView, PortCountersView, QueueView, StageTimes, WorkerStatus};
