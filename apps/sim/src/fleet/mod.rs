//! Fleets: the cluster policy at its largest scale, on a coarse model of disks.
//!
//! - [`pool`] is the model of disks: fluid, without requests. It documents the equations.
//! - [`world`] combines it with the cluster ([`cluster`](crate::cluster)), whose messages, state
//!   machines and etcd are those of small runs.
//! - [`chance`] draws demands, minimums and faults; [`run`] runs scenarios and summarises them.

mod chance;
mod facts;
mod pool;
mod run;
mod spec;
mod world;

#[cfg(test)]
mod run_tests;

pub(crate) use run::run;
pub(crate) use spec::FleetScenario;
