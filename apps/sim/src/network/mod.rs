//! Processors, NICs, a team of them, and VMs that receive.
//!
//! - [`world`] is the model: its equations and where parameters come from are told there. It drives
//!   the placement of queues (`policy/vmq`) and the team (`policy/teaming`) of production by the
//!   calls of `plane/node` and `plane/switch`.
//! - [`checks`] holds what happens against what was promised.
//! - [`run`] runs a scenario and sums up.

mod checks;
mod facts;
mod hosts;
mod run;
mod spec;
mod upstream;
mod world;

#[cfg(test)]
mod run_tests;

pub(crate) use run::run;
pub(crate) use spec::NetworkScenario;
