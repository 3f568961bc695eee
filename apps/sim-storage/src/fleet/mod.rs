//! Fleets: the cluster policy at its largest scale, on a coarse model of disks.
//!
//! - [`node_store_disks`] is the model of disks: fluid, without requests. It documents the
//!   equations.
//! - [`world`] combines it with the cluster ([`cluster`](crate::cluster)), whose messages, state
//!   machines and etcd are those of small runs.
//! - [`random_interventions`] draws demands, minimums and faults; [`run`] runs scenarios and
//!   summarises them.

mod facts;
mod node_store_disks;
mod random_interventions;
mod run;
mod spec;
mod world;

#[cfg(test)]
mod run_tests;

pub use spec::FleetScenario;
