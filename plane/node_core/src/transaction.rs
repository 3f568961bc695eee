//! Transactions: a change is made completely or not at all.
//!
//! - [`order`]: global order of the steps.
//! - [`run`]: execution, commit and rollback, without knowledge of resource kinds.
//! - [`acquired_resources`]: host resources that only one port or disk can hold, and that a change
//!   acquires.
//!
//! `suimon-node` lists the resource kinds that take part in a change (`change.rs`).

mod acquired_resources;
mod order;
mod run;

pub use self::acquired_resources::{
    AcquiredResources, ExclusiveResource, NetworkDeviceId, normalize_path,
};
pub use self::order::ChangePhase;
pub use self::run::{Participants, run};
