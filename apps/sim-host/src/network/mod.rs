//! Workers, a team of NICs, and receiving VMs.
//!
//! - [`world`] is the model and documents its equations and sources of parameters. It calls the
//!   production policies for placement of queues (`policy/vmq`) and for the team (`policy/teaming`)
//!   like `plane/node` and `plane/switch`.
//! - [`checkers`] compares facts with guarantees.
//! - [`run`] runs scenarios and summarises them.

mod checkers;
mod facts;
mod hosts;
mod run;
mod spec;
mod upstream;
mod world;

#[cfg(test)]
mod run_tests;

pub use spec::NetworkScenario;
