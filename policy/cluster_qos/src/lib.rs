//! Placeholder.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod account;
mod allocator;
mod clock;
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
pub use grant::{Cap, Grant, PolicyShare, Share};
pub use id::{DiskKey, GrantId, NodeId, PolicyKey, ReportId, Term};
pub use load::{DiskLoad, NAMED_MAX, NamedDisk, NodeLoad, PolicyLoad, Report, UNBOUNDED, VERSION};
pub use member::{Kept, KeptShare, Member, MemberAction, MemberEvent, MemberNotice, PolicyCap};
pub use notice::{AGGRESSORS_MAX, Aggressor, Cause, Notice, Stranger, Unmet};
pub use promises::{Capability, PROMISED_PERCENT_MAX, Promises};
pub use terms::{Terms, TermsError};
pub use watch::TOLD_AFTER;
