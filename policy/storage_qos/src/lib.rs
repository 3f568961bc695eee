//! Storage QoS of a backing store: which disk's request goes to the device next, and
//! when, so that minimums, maximums and weights hold; and what may be promised.
//!
//! - [`Store`] is the control side: disks, policies, what the store can do. It accepts or
//!   refuses [`Proposal`]s, with the arithmetic, and turns them into [`Change`]s.
//! - [`StoreScheduler`] is the hot side, one logical queue: [`StoreScheduler::submit`]
//!   and [`StoreScheduler::poll`] say what goes to the device now,
//!   [`StoreScheduler::handle_complete`] hears what came back.
//! - Where other nodes use the store, [`Change::Cap`] says what all its disks here may do together, as a
//!   function of time; and [`Change::Part`] what the disks of a policy may, of one that spans nodes.
//! - [`StoreScheduler::observe`] reads what was delivered and tells of minimums that are
//!   not met, and why; and of a store that does less than its minimums need, by what it did
//!   while requests waited for it ([`StoreScheduler::estimate`]).
//! - Where several processors use a store, [`StoreBudget`] has the one scheduler and each
//!   processor a [`Borrower`]: they exchange [`Report`]s and [`Grant`]s.
//!
//! The algorithm is mClock (Gulati, Merchant, Varman: mClock: Handling Throughput
//! Variability for Hypervisor IO Scheduling, OSDI 2010) with these differences, each for
//! a reason:
//! - A tag belongs to the oldest request only, so changes are in effect at once.
//! - What is done by weight counts for the minimum too; what was done early puts the
//!   minimum off by one request at most.
//! - A disk that comes back from idleness or from its maximum starts where the others
//!   are, whatever it had or had not before. What its minimum brought it in excess of its
//!   weight is held against it for some requests only.
//! - A minimum whose requests are in the device for too long, because others' are there
//!   too, holds the others back. mClock cannot help a disk at depth 1. Where that does not
//!   help within a second it is tried again after 2 s, then later and later, up to 30 s.
//! - The device gets so many requests that it stays quick, for the sake of who is next; a disk
//!   that has the store for itself may fill it.
//! - Where a store can do less than all minimums together, all are served in proportion.
//!
//! What it does not do: it moves no data, reads no clock, and keeps no latency
//! percentiles. It trusts the engine that what it dispatched completes.
//!
//! Invariants
//! - Over any window what a disk has dispatched counts as at most
//!   [`Limits::operations_max`] and one request.
//! - While fewer requests are in the device than [`StoreScheduler::depth`], no request
//!   waits that is below its maximum, except for the sake of a minimum that is behind, or where the
//!   store's cap lets nothing go.
//! - A disk's requests stay in order. Nothing allocates per request; memory grows with
//!   disks and is bounded.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod accounting;
mod admission;
mod apply;
mod borrower;
mod budget;
mod change;
mod clocks;
mod cost;
mod depth;
mod disk;
mod estimate;
mod event;
mod exchange;
mod flow;
mod gate;
mod heap;
mod history;
mod limiting;
mod limits;
mod members;
mod meter;
mod minimum;
mod observe;
mod operation;
mod order;
mod own_latency;
mod pace;
mod phase;
mod policy;
mod ranking;
mod records;
mod request_time;
mod scheduler;
mod shares;
mod shortage;
mod spare;
mod spec;
mod store;
mod together;
mod verdict;
mod wait;
mod watch;
mod worker_time;

pub use admission::{Capability, PROMISED_PERCENT_MAX, Promises, Refusal};
pub use borrower::{Borrower, HELD_MAX};
pub use budget::StoreBudget;
pub use change::{Change, DiskSlot, FlowSlot, Holder, MeasuredLatency};
pub use cost::Normalization;
pub use estimate::CapabilityEstimate;
pub use event::{CapabilityLow, DISPLACERS_MAX, Displacer, Event, Shortfall, TOLD_AFTER, Unmet};
pub use exchange::{Completion, Grant, Lent, Report, Return, Unscheduled, Want};
pub use history::{Delivery, Done, Rates, SAMPLE, Window};
pub use limiting::{ALL_PPM, LimitingFactor, TimeShare};
pub use limits::{BURST_SECONDS_MAX, Burst, IOPS_MAX, Limits, LimitsError, Weight};
pub use meter::{CATCH_UP, CATCH_UP_WITH_MINIMUM};
pub use observe::DiskFlow;
pub use operation::Operation;
pub use phase::Phase;
pub use policy::{Assignment, PolicyId, PolicyKind, PolicyPart, PolicySpec};
pub use request_time::RequestTime;
pub use scheduler::StoreScheduler;
pub use spec::{DISKS_MAX, StoreSpec};
pub use store::{Effective, Proposal, Store};
pub use together::{Completed, Together};
pub use verdict::{Next, SubmitError, Submitted};
pub use wait::{WaitCause, Waits};
pub use worker_time::WorkerTime;
