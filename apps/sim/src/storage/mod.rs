//! Disks of VMs on an array, and the scheduler between them.
//!
//! - [`array`] and [`drive`] are the model of the array: the state it is in and what a request
//!   takes. Their equations and where the parameters come from are told there.
//! - [`client`] is what VMs do: loads that keep so many requests outstanding.
//! - [`node`] does with requests what `plane/storage` does with them, and drives the
//!   scheduler that production uses by the same calls.
//! - [`shared`] is a node's side of a store that other nodes use too; the cluster is
//!   [`cluster`](crate::cluster).
//! - [`world`] puts them together; [`checks`] holds what happens against what was promised;
//!   [`chance`] draws the faults and changes of a swarm.
//! - [`run`] runs a scenario and sums up.

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
