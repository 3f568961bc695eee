//! Storage QoS of a store that nodes share: what each node may ask of it, so that minimums hold
//! although other nodes load the same store, and what is spare is used. All rates are in normalised
//! operations per second.
//!
//! - [`Member`] is a node's side of one store. It is told what its disks did, reports that, hears
//!   grants, and says what the node is to be held to ([`Cap`]).
//! - [`Allocator`] is the side of the store's leader. It hears reports and gives [`Grant`]s.
//!
//! - [`Candidacy`] tells a node when to try to lead a store that nobody leads.
//! - [`Coverage`] says which of a node's minimums are in effect while less is reserved than they need.
//!
//! The first two are state machines: facts go in by `handle`, imperatives come out of `poll_action`, and at
//! `next_deadline` the owner calls `handle_deadline`. They read no clock and send nothing.
//!
//! What a node may do ([`Cap::iops_at`])
//! - With a lease: the larger of what is leased and what is reserved. What is reserved is the sum of the
//!   node's minimums, its parts of policies' minimums and [`Terms::floor_iops`]; what is leased is that and
//!   a share of the spare, by weight and demand.
//! - When the lease has ended: what is reserved. It holds without end and without anybody.
//! - When the node has heard nothing for [`Terms::fallback_after`], and all its disks have a
//!   [`DiskLoad::fallback_iops`]: their sum.
//! - A node that was never told anything may do nothing. There is no state in which it may do
//!   what it likes.
//!
//! A minimum that idles is lent to other disks of its node, not to other nodes: a node may use what
//! is reserved for it at once, without asking, so it cannot be elsewhere at the same time.
//!
//! # Why the sum of all caps never exceeds the capability
//!
//! Let C be [`Capability::Declared`], or for [`Capability::Measured`] that and what the store was seen to do
//! lately. The leader keeps an account for each node of all grants that the node may still adhere to,
//! and counts the worst of them.
//!
//! 1. *A grant leaves an account* only when the node has said that it heard a later one (it never goes
//!    back), or, as far as its lease goes, when the lease has ended wherever it was heard. What is
//!    reserved has no end, so only the node's word frees it.
//! 2. *Leases end in time.* A lease is a span. The node counts it on its own clock from when it *made*
//!    the report that the grant answers, the leader on its own from when it *gave* the grant, which is later,
//!    and longer by [`Terms::drift_ppm`]. No time is compared with another clock's, so how clocks are set
//!    does not matter, and neither does any delay: a grant that comes late is dead when it comes. A clock
//!    that is slower than assumed is found out by the node (two grants of one leader prove it) and
//!    uses no lease. The clock has to count while the machine is suspended (`CLOCK_BOOTTIME`).
//! 3. *Every grant fits when it is given*: with the worst of all other accounts it is at most C. So what
//!    one node gets more, another has let go of before: it has said so, or its lease has ended. Where accounts
//!    come to more than C, because they count what is not so any more, a node may not even be given again what
//!    its account says, but for what it surely has.
//! 4. *It still fits later.* Accounts only shrink by themselves, but for nodes that go over to their
//!    fallbacks. Each grant also has to fit at the first time at which a node may do that while the grant's
//!    lease lasts, and what is without end has to fit when all leases have ended and all nodes fall back.
//! 5. *A new leader* reads the last grant of each node after its election. Grants are written by
//!    transactions that fail when the term is over, so it has all that were ever written; each says what
//!    else the node may adhere to. It counts leases as if they were given at its election. A leader that does
//!    not know whether it has written resigns, so writes are in order. Two that believe to lead at once do no
//!    harm: one of them cannot write.
//! 6. *A cap is a function of time* that whoever admits requests evaluates with each. A node that stood
//!    still does not go on by what was true before.
//! 7. *A restarted node* has what it was told to keep, takes no grant that answers a report of before, and is
//!    told apart by its incarnation.
//!
//! It rests on: clocks within the bound until they are found out; a store of the cluster's state that is
//! linearizable; [`MemberAction`]s that are carried out in order, durable before the report; that what is
//! said to be gone ([`AllocatorEvent::NodeGone`]) is gone. Requests that are in the device when a cap falls
//! are not called back. A policy that had no maximum and gets one holds on a node from when it hears of it.
//!
//! # What it writes
//!
//! At most one report per node and store in [`Terms::report_pause`], one in [`Terms::report_every`] while
//! nothing changes and one in [`Terms::idle_every`] while the node asks for no more than is reserved; and
//! for each report one grant, and another without one when a node's share has become another by an eighth; at
//! most one per node in a [`Terms::round_pause`], all nodes' at once. The size of a report does not grow with disks.
//!
//! # What is told
//!
//! [`Notice::MinimumUnmet`] names the disks that got more than they are entitled to, their nodes and their
//! IOPS; [`Allocator::unmet`] says the same at any moment. [`Notice::ForeignLoad`] tells of a store that
//! does less than it can: what is spare shrinks with it, what is reserved does not.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod account;
mod allocator;
mod candidacy;
mod clock;
mod coverage;
mod divide;
mod estimate;
mod grant;
mod id;
mod ledger;
mod load;
mod member;
mod notice;
mod promises;
mod round;
mod shared;
mod terms;
mod watch;

pub use allocator::{Allocator, AllocatorAction, AllocatorEvent, PolicyLimits};
pub use candidacy::Candidacy;
pub use coverage::Coverage;
pub use divide::Claim;
pub use grant::{Grant, PolicyShare, Share};
pub use id::{DiskKey, GrantId, NodeId, PolicyKey, ReportId, Term};
pub use load::{
    CLAIMS_MAX, DiskLoad, NAMED_MAX, NamedDisk, NodeLoad, PolicyLoad, Report, UNBOUNDED, VERSION,
    Wants,
};
pub use member::{Kept, KeptShare, Member, MemberAction, MemberEvent, MemberNotice, PolicyCap};
pub use notice::{AGGRESSORS_MAX, Aggressor, Cause, Notice, Stranger, Unmet};
pub use promises::{Capability, PROMISED_PERCENT_MAX, Promises};
pub use suimon_quantity::Cap;
pub use terms::{Terms, TermsError};
pub use watch::TOLD_AFTER;
