//! Storage QoS of a backing store: request scheduling by minimums, maximums and weights, and
//! admission control for minimums.
//!
//! - [`Store`] is the control side: disks, policies and the capacity of the store. It accepts or
//!   refuses [`Proposal`]s with the arithmetic of the decision, and converts accepted ones to
//!   [`ConfigStep`]s.
//! - [`StoreScheduler`] is the data path with one logical queue. [`StoreScheduler::submit`] and
//!   [`StoreScheduler::poll`] return the requests to dispatch;
//!   [`StoreScheduler::handle_completion`] accounts for completions.
//! - For a store that other nodes use, [`ConfigStep::SetCap`] limits all disks of this node
//!   together, as a function of time. [`ConfigStep::SetPolicyShare`] limits the disks of a policy
//!   that spans nodes.
//! - [`StoreScheduler::observe`] samples delivered operations. It returns events for unmet
//!   minimums with their cause, and for a store whose capacity is below its minimums. The capacity
//!   is estimated from periods with queued requests ([`StoreScheduler::estimate`]).
//! - For a store that several workers use, [`StoreBudget`] holds the only scheduler and each
//!   worker a [`Borrower`]. They exchange [`WorkerReport`]s and [`WorkerGrant`]s. Requests of a
//!   worker that has stopped reporting do not occupy the device depth
//!   ([`StoreBudget::handle_worker_absent`]).
//!
//! The algorithm is mClock (Gulati, Merchant, Varman: mClock: Handling Throughput Variability for
//! Hypervisor IO Scheduling, OSDI 2010) with these differences:
//! - Only the oldest request of a disk has a tag, so changes of limits take effect at once.
//! - Operations dispatched by weight also count towards the minimum. Operations dispatched early
//!   delay the minimum by one request at most.
//! - A disk that becomes active after an idle time, or after a delay by its maximum, starts at
//!   the virtual time of the other disks. Credit and debt are not carried over. Service beyond the
//!   weight that was caused by the minimum is charged only for a bounded number of requests.
//! - If requests of other disks delay a disk's requests in the device, the scheduler holds the
//!   other disks back until the disk's minimum is met. mClock cannot guarantee the minimum of a
//!   disk at queue depth 1. If holding back has no effect within one second, it is retried after 2
//!   s, and then at doubling intervals of up to 30 s.
//! - The queue depth of the device is limited such that its latency stays low. A disk that is the
//!   only user of the store may exceed this depth.
//! - If the capacity of the store is below the sum of the minimums, all minimums are reduced in
//!   proportion.
//!
//! The crate moves no data, reads no clock and keeps no latency percentiles. It relies on the
//! engine to report the completion of every dispatched request.
//!
//! Invariants
//! - Over any time window, a disk dispatches at most [`Limits::operations_max`] operations plus
//!   one request.
//! - While fewer requests than [`StoreScheduler::depth`] are in the device, no request below its
//!   maximum is queued, except while disks are held back for an unmet minimum, or while the node's
//!   share of the store is used up.
//! - Requests of a disk are dispatched in order. No request allocates memory. Memory grows with
//!   the number of disks and is bounded.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod accounting;
mod admission;
mod apply;
mod best_effort_depth;
mod borrower;
mod budget;
mod cap_meter;
mod change;
mod clocks;
mod completed;
mod cost;
mod depth;
mod disk;
mod estimate;
mod event;
mod exchange;
mod flow;
mod heap;
mod history;
mod limiting_factor;
mod limits;
mod member_order;
mod members;
mod meter;
mod minimum;
mod minimum_monitor;
mod observe;
mod operation;
mod order;
mod own_latency;
mod phase;
mod policy;
mod queue_cause;
mod queued_requests;
mod ranking;
mod request_time;
mod run;
mod scheduler;
mod shortage;
mod spec;
mod store;
mod submit_batch;
mod submit_outcome;
mod unit_time;
mod unscheduled;
mod weight_order;
mod worker_in_flight;
mod worker_time;

pub use admission::{AdmissionError, Capacity, MINIMUMS_PERCENT_MAX, MinimumsCheck};
pub use borrower::{Borrower, GRANT_AGE_MAX, LOAN_IDLE_MAX};
pub use budget::StoreBudget;
pub use change::{ConfigStep, DiskSlot, FlowSlot, LimitsOwner, MeasuredLatency};
pub use completed::CompletedRequests;
pub use cost::Normalization;
pub use estimate::CapacityEstimate;
pub use event::{
    CapacityLow, DISPLACED_BY_MAX, ServedDisk, StoreEvent, UNMET_REPORT_DELAY, UnmetMinimum,
    UnmetReason,
};
pub use exchange::{
    Completion, GrantKind, RequestedGrant, ReturnedGrant, WorkerGrant, WorkerReport,
};
pub use history::{DeliveryStats, DiskQosCounters, DiskRates, SAMPLE_INTERVAL, Window};
pub use limiting_factor::{LimitingFactor, TimeShare, WHOLE_WINDOW_PPM};
pub use limits::{BURST_SECONDS_MAX, Burst, IOPS_MAX, Limits, LimitsError, Weight};
pub use meter::{CATCH_UP_WINDOW, CATCH_UP_WINDOW_WITH_MINIMUM};
pub use observe::DiskQosStatus;
pub use operation::IoKind;
pub use phase::RequestPhase;
pub use policy::{LimitsSource, PolicyId, PolicyKind, PolicyShare, PolicySpec};
pub use queue_cause::{QueueCause, QueueTime};
pub use request_time::RequestTime;
pub use scheduler::StoreScheduler;
pub use spec::{DISKS_MAX, StoreSpec};
pub use store::{EffectiveLimits, Proposal, Store};
pub use submit_batch::BatchSubmitOutcome;
pub use submit_outcome::{NextAction, SubmitError, SubmitOutcome};
pub use unscheduled::DiskUnscheduledTime;
pub use worker_time::WorkerTime;
