//! VMQ placement: assignment of the queues of a team or uplink to workers.
//!
//! [`Vmq`] is a state machine. It processes changes of queues and workers and measurements of
//! their load, and returns moves. It moves nothing itself, reads no clock and measures nothing; its
//! owner does, and reports the outcome of each move.
//!
//! Lifecycle
//! - [`Vmq::new`] with a [`VmqSpec`] and the host's [`WorkerSpec`]s; [`Vmq::set_nic`] and
//!   [`Vmq::add_queue`] when NICs attach.
//! - [`Vmq::observe`] with [`Measurements`], about four times a second. It returns [`Move`]s to
//!   carry out and [`MoveEffect`]s of earlier ones.
//! - [`Vmq::handle_moved`] when a move was carried out or has failed;
//!   [`Vmq::handle_moved_externally`] when an external agent moved a queue.
//!
//! In addition, [`dedicated_queues`] assigns receive queues of an uplink's device to NICs, where
//! the device supports it.
//!
//! Dynamic placement, with the thresholds of [`thresholds`]
//! - A worker above the high mark sheds queues one after another, first the smallest that solves
//!   the overload, to the best-fitting worker. On a saturated worker the demand of queues
//!   cannot be measured; it is assumed to be twice their load.
//! - Shedding is immediate after a load step, for the time that spreading takes. A later overload
//!   is caused by too much load or by external load on the CPU: from then on one queue is shed at a
//!   time, at growing intervals and based on the usual load, until the load changes.
//! - An under-used worker is emptied, so that it can park, if its queues have fitted elsewhere
//!   continuously for some seconds, longer if another worker is hot.
//! - A move that would only make another worker hot is not made. A queue that alone exceeds the
//!   mark stays. A worker on which a queue got less than expected gets no further queues that
//!   seek a larger share.
//!
//! Invariants
//! - A queue is on a permitted worker or in transit to one; at most `max_workers` are in use.
//! - Load-induced moves are limited by a budget ([`thresholds`]): one a minute, and a burst per
//!   queue. A queue moved by packing may be moved back, because its return is prepaid; immediately,
//!   if no worker was hot when it was packed.
//! - Memory and time grow only with the numbers of queues and workers.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod balance;
mod dedicated_queues;
mod effect;
mod error;
mod explain;
mod external_move;
mod load;
mod measure;
mod move_budget;
mod moves;
mod observe;
mod pack;
mod pack_delay;
mod placement_reason;
mod queue;
mod shed;
mod shed_pacing;
mod spec;
pub mod thresholds;
mod trial_placement;
mod vacate;
mod vmq;
mod worker_order;
mod worker_state;
mod worker_view;

pub use dedicated_queues::{DEFAULT_QUEUE, dedicated_queues};
pub use effect::MoveEffect;
pub use error::{QueueError, VmqSpecError};
pub use explain::{Explanation, QueueExplanation, StayReason};
pub use load::Load;
pub use measure::{Measurements, QueueBusy, WorkerBusy};
pub use moves::{Move, MoveLoads, MoveReason};
pub use observe::ObserveResult;
pub use placement_reason::PlacementReason;
pub use spec::{NicSpec, VmqMode, VmqSpec, WaterMarks, WorkerSpec};
pub use vmq::{AddedQueue, Vmq};
pub use worker_view::WorkerPlacementView;
