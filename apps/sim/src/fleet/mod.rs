//! Many nodes and many stores: the cluster's policy at its largest, on a coarse model of disks.
//!
//! - [`pool`] is the model of disks: fluid, without requests. Its equations are told there.
//! - [`world`] puts it together with the cluster ([`cluster`](crate::cluster)), whose messages, machines and
//!   etcd are those of small runs.
//! - [`chance`] draws what disks want, what they are promised and what goes wrong; [`run`] runs and sums up.

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
