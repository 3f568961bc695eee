//! Disks of VMs on an array, and the scheduler between them.
//!
//! - [`array`] and [`drive`] are the model of the array. They document equations and sources of
//!   parameters.
//! - [`client`] is the load of VMs with a constant number of outstanding requests.
//! - [`node`] processes requests like `plane/storage` and calls the production scheduler in the
//!   same way.
//! - [`shared`] is a node's participation in a store shared with other nodes; the cluster is
//!   [`cluster`](crate::cluster).
//! - [`world`] combines them; [`checks`] compares facts with guarantees; [`chance`] draws faults
//!   and changes of swarm runs.
//! - [`run`] runs scenarios and summarises them.

mod array;
mod calibrate;
mod chance;
mod checks;
mod client;
mod deed;
mod drive;
mod facts;
mod ledger;
mod measure;
mod node;
mod run;
mod shared;
mod spec;
mod world;

#[cfg(test)]
mod array_tests;
#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod run_tests;

pub(crate) use calibrate::calibrate;
pub(crate) use run::run;
pub(crate) use spec::StorageScenario;
