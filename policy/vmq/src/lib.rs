//! Which processor works off which queue of a team or uplink, and why.
//!
//! [`Vmq`] is a state machine: it is told what queues and processors there are and
//! what they cost, and it answers with moves. It moves nothing itself, reads no clock
//! and measures nothing; whoever drives it does, and says what came of each move.
//!
//! Lifecycle
//! - [`Vmq::new`] from a [`VmqSpec`] and the host's [`Processor`]s; [`Vmq::set_nic`] and
//!   [`Vmq::add_queue`] as NICs attach.
//! - [`Vmq::observe`] with [`Measurements`] some four times a second. It returns
//!   [`Move`]s to carry out, and [`Effect`]s of earlier ones.
//! - [`Vmq::handle_moved`] when a move was carried out, or was not; [`Vmq::handle_found`]
//!   when somebody else has moved a queue.
//!
//! Beside it, [`own_queues`] says which receive queue of an uplink's device a NIC has to
//! itself, where the device can choose.
//!
//! What dynamic placement does, by the marks of [`marks`]
//! - A processor above the high mark sheds one queue after another, the smallest that
//!   solves it, to where it fits best. A saturated processor hides what its queues
//!   want; they are taken to want twice what they got.
//! - That is done at once after a step of load, for as long as spreading takes. What is
//!   still too busy then is so because there is too much load, or because somebody else has
//!   the CPU now and then: from then on one queue is shed at a time, ever more rarely, by what
//!   is usual, until the load is another one.
//! - An under-used processor is emptied, so that it can park, if all it has fits
//!   elsewhere and did so all the time for some seconds; for longer if another is hot.
//! - A move whose only effect would be another hot processor is not made. A queue that
//!   alone is above the mark stays. Where a queue came to get more and got less, no other
//!   goes to get more.
//!
//! Invariants
//! - A queue is on a permitted processor, or on its way to one; never are more than
//!   `max_processors` in use.
//! - Moves that load causes are at most as many as the allowance has ([`marks`]): one a
//!   minute, and a store of some for each queue. Whatever packing has moved may be
//!   moved back, because its way back was paid for; at once, if nothing was hot when it was
//!   packed.
//! - Memory and time grow with queues and processors and with nothing else.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod alert;
mod allowance;
mod balance;
mod draft;
mod effect;
mod error;
mod explain;
mod found;
mod load;
pub mod marks;
mod measure;
mod moves;
mod observe;
mod order;
mod own_queue;
mod pack;
mod patience;
mod queue;
mod seat;
mod seat_view;
mod shed;
mod spec;
mod vacate;
mod vmq;

pub use effect::Effect;
pub use error::{QueueError, SpecError};
pub use explain::{Explanation, QueueExplanation, Stays, Why};
pub use load::Load;
pub use measure::{Measurements, ProcessorBusy, QueueBusy};
pub use moves::{Figures, Move, Reason};
pub use observe::Observed;
pub use own_queue::{DEFAULT_QUEUE, own_queues};
pub use seat_view::ProcessorView;
pub use spec::{NicSpec, Processor, VmqMode, VmqSpec, WaterMarks};
pub use vmq::{Added, Vmq};
