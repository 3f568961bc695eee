//! Transactions: a change is made completely or not at all.
//!
//! - [`order`]: global order of the steps.
//! - [`run`]: execution, commit and rollback, without knowledge of resource kinds.
//! - [`claims`]: host resources that only one port or disk can hold, and that a change acquires.
//!
//! `change.rs` lists the resource kinds that take part in a change of the desired state.

mod claims;
mod order;
mod run;

pub(crate) use self::claims::{Acquired, Claim, Tap, claim, clean, socket_of, tap_of};
pub(crate) use self::order::Phase;
pub(crate) use self::run::{Participants, run};
