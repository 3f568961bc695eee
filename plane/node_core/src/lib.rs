//! Core of the control plane of one host: transactions, stored state, events, operations and retry.
//!
//! The core does not know resource kinds (ports, disks, VMs, …). `suimon-node` contains them and
//! executes changes of the desired state through this crate.
//!
//! - [`transaction`]: order of the steps of a change, their execution, commit and rollback.
//! - [`state`]: desired state and intents in the state store.
//! - [`events`]: bounded, durable event log. [`operations`]: changes and jobs in progress.
//! - [`retry`]: delays between the retries of a failed object.
#![forbid(unsafe_code)]

mod environment;
pub mod errors;
pub mod events;
pub mod operations;
pub mod retry;
pub mod state;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod texts;
pub mod transaction;

pub use environment::{NoListener, NodeListener, RandomSource, UnixClock};
