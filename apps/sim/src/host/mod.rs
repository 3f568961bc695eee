//! A host's processors, VMs and NICs, and what requests of VMs take of them.
//!
//! - [`spec`] is what a scenario says, [`check`] what makes no sense in it; [`plan`] is one of its cases with
//!   all policies asked that decide once: who checks and cuts ([`offload`]), and who has a virtual function
//!   ([`paths`]).
//! - [`route`] is the way of a request, stage by stage: its equation is told there, as are those of
//!   [`cpus`] (who works where and how quickly), [`power`] (clocks, idle states, watts), and [`nic`].
//!   [`switch`] is the switch of production.
//! - [`world`] puts them together; [`checks`] holds what happens against what was promised.
//! - [`run`] runs a scenario's cases, [`sum`] and [`report`] sum up and compare with what was published.

mod check;
mod checks;
mod cpus;
mod facts;
mod nic;
mod offload;
mod paths;
mod plan;
mod power;
mod report;
mod route;
mod run;
mod spec;
mod sum;
mod switch;
mod world;

#[cfg(test)]
mod run_tests;

pub(crate) use run::run;
pub(crate) use spec::HostScenario;
