//! Storage QoS of a store shared by several nodes: the rate each node may use, such that minimums
//! hold despite the load of other nodes and spare capacity is used. All rates are in normalised
//! operations per second.
//!
//! - [`Member`] is a node's side of one store. It processes disk loads and grants, produces reports
//!   and determines the rates to enforce ([`TimedRateLimit`]).
//! - [`Allocator`] is the side of the store's leader. It processes reports and issues
//!   [`NodeGrant`]s.
//! - [`Candidacy`] determines when a node stands for election while a store has no leader.
//! - [`ReservationCoverage`] determines which minimums of a node are in effect while its
//!   reservation does not cover them.
//!
//! The first two are state machines: `handle` takes events, `poll_action` returns actions, and the
//! owner calls `handle_deadline` at `next_deadline`. They read no clock and send nothing.
//!
//! Rate of a node ([`TimedRateLimit::iops_at`])
//! - With a lease: the larger of the leased and the reserved rate. The reserved rate is the sum of
//!   the node's minimums, its parts of policy minimums and [`Parameters::base_reservation_iops`];
//!   the leased rate adds a share of the spare capacity by weight and demand.
//! - Without a lease: the reserved rate. It holds indefinitely and without any contact.
//! - After [`Parameters::fallback_after`] without a grant, if all its disks have a
//!   [`DiskLoad::fallback_iops`]: their sum.
//! - Before the first grant: zero. No state permits an unlimited rate.
//!
//! Unused minimums are lent to other disks of the same node, not to other nodes: a node may use its
//! reservation at any time without a request, so the reservation cannot be used elsewhere at the
//! same time.
//!
//! # Why the sum of all caps never exceeds the capacity
//!
//! Let C be [`SharedStoreCapacity::Declared`], or for [`SharedStoreCapacity::Measured`] the larger
//! of that and the recently observed throughput. The leader keeps an account for each node of all
//! grants the node may still apply, and counts their maximum.
//!
//! - *A grant leaves an account* only when the node has acknowledged a later one (nodes never go
//!   back) or, for its lease, when the lease has ended on the node. Reservations do not end, so
//!   only an acknowledgement frees them.
//! - *Leases end in time.* A lease is a time span. The node counts it on its own clock from the
//!   time it *made* the report that the grant answers. The leader counts it on its own clock from
//!   the time it *gave* the grant, which is later, and adds [`Parameters::drift_ppm`]. Times of
//!   different clocks are never compared, so neither the setting of clocks nor network delay
//!   matters: a grant that arrives late has already expired. A clock slower than assumed is
//!   detected by the node (two grants of one leader prove it), which then uses no lease. The clock
//!   must count while the machine is suspended (`CLOCK_BOOTTIME`).
//! - *Every grant fits when it is given*: together with the upper bounds of all other accounts it
//!   is at most C. So an increase for one node requires that another has acknowledged a decrease or
//!   its lease has ended. If the accounts exceed C, because they include outdated grants, a node
//!   may be granted again only what it certainly has.
//! - *It still fits later.* Accounts only shrink, except for nodes that change to their fallback
//!   rates. Each grant must also fit at the first time at which a node may do that during the
//!   grant's lease, and the indefinite part must fit when all leases have ended and all nodes use
//!   their fallback rates.
//! - *A new leader* reads the last grant of each node after its election. Grants are written by
//!   transactions that fail once the term is over, so it reads every grant ever written; each
//!   contains the totals of the earlier ones. It counts leases from its election. A leader that
//!   does not know the outcome of a write resigns, so writes are ordered. Two simultaneous leaders
//!   are harmless: one of them cannot write.
//! - *A cap is a function of time* that is evaluated at the admission of each request. A node that
//!   was stopped does not continue with outdated rates.
//! - *A restarted node* applies the shares it persisted, accepts no grant that answers an earlier
//!   report, and is distinguished by its incarnation.
//!
//! Assumptions: clocks stay within the bound until detected; the cluster store is linearizable;
//! [`MemberAction`]s are carried out in order and are durable before the report; a node reported as
//! gone ([`AllocatorEvent::NodeGone`]) has stopped. Requests in flight in the device when a cap is
//! lowered are not recalled. A new maximum of a policy applies on a node once the node receives it.
//!
//! # Write load
//!
//! A node writes at most one report per store in [`Parameters::report_interval_min`], and one in
//! [`Parameters::active_report_interval`] while nothing changes. It writes only one in
//! [`Parameters::idle_report_interval`] while it has no disks with shared policies, holds no lease
//! above its reservation, and neither its demand nor the sum of its minimums exceeds the
//! reservation. The leader writes one grant per report, and an additional one if a share changed by
//! more than an eighth; at most one per node in [`Parameters::round_interval_min`], all nodes in
//! one write. The size of a report is independent of the number of disks.
//!
//! # Notices
//!
//! [`Notice::MinimumUnmet`] names the disks that got more than guaranteed, with nodes and IOPS;
//! [`Allocator::unmet`] returns the same at any time. [`Notice::ExternalLoad`] reports a store
//! below its capacity: spare capacity shrinks, reservations do not.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod account;
mod admission;
mod allocator;
mod candidacy;
mod clock;
mod coverage;
mod divide;
mod estimate;
mod external_users;
mod grant;
mod id;
mod ledger;
mod load;
mod member;
mod node_state;
mod notice;
mod parameters;
mod policy_shares;
mod round;
mod unmet_minimums;
mod watch;

pub use admission::{AdmissionCheck, GUARANTEED_PERCENT_MAX, SharedStoreCapacity};
pub use allocator::{Allocator, AllocatorAction, AllocatorEvent, PolicyLimits};
pub use candidacy::Candidacy;
pub use coverage::ReservationCoverage;
pub use divide::WeightedDemand;
pub use grant::{NodeGrant, NodeShare, PolicyShare};
pub use id::{DiskKey, GrantId, NodeId, PolicyKey, ReportId, Term};
pub use load::{
    Demand, DiskLoad, LoadReport, NodeLoad, POLICIES_MAX, PROTOCOL_VERSION, PolicyLoad,
    REPORTED_DISKS_MAX, ReportedDisk, UNLIMITED_DEMAND_IOPS, WEIGHTED_DEMANDS_MAX,
};
pub use member::{
    DurableShare, DurableState, Member, MemberAction, MemberEvent, MemberNotice, PolicyCap,
};
pub use notice::{
    DISKS_OVER_GUARANTEE_MAX, DiskBelowMinimum, ExternalUser, Notice, OverGuaranteeDisk,
    UnmetMinimumCause,
};
pub use parameters::{Parameters, ParametersError};
pub use suimon_quantity::TimedRateLimit;
pub use watch::UNMET_REPORT_DELAY;
