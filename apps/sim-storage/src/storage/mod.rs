//! Disks of VMs on an array, and the scheduler between them.
//!
//! - [`array`] and [`drive`] are the model of the array. They document equations and sources of
//!   parameters.
//! - [`client`] is the load of VMs with a constant number of outstanding requests.
//! - [`node_store`] processes requests like `plane/storage_engine` and calls the production
//!   scheduler in the same way.
//! - [`shared_store_state`] is a node's participation in a store shared with other nodes,
//!   [`disk_model`] the interface to the cluster; the cluster is [`cluster`](crate::cluster).
//! - [`world`] combines them; [`intervention`] defines changes and faults from outside,
//!   [`execution`] executes them, [`random_interventions`] draws those of swarm runs.
//! - [`checkers`] compares facts with guarantees.
//! - [`run`] runs scenarios and summarises them.

mod array;
mod calibrate;
mod capacity;
mod checkers;
mod client;
mod disk_model;
mod drive;
mod execution;
mod facts;
mod intervention;
mod ledger;
mod node_store;
mod random_interventions;
mod run;
mod shared_store_state;
mod spec;
mod world;

#[cfg(test)]
mod array_tests;
#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod run_tests;

pub use calibrate::{CalibrationResult, calibrate};
pub use spec::StorageScenario;
