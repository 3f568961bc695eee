//! CPUs, VMs and NICs of a host, and the resources that requests of VMs use.
//!
//! - [`spec`] defines scenarios, [`validation`] validates them; [`resolved_case`] is one case with
//!   the results of policies that decide once: checksums and segmentation ([`offload`]), and
//!   assignment of virtual functions ([`vf_assignment`]).
//! - [`route`] is the path of a request by stages. It documents its equation, as do [`cpus`]
//!   (scheduling and duration), [`power`] (clocks, idle states, power), and [`nic`]. [`switch`] is
//!   the production switch.
//! - [`world`] combines them; [`checkers`] compares facts with guarantees.
//! - [`run`] runs a scenario's cases, [`totals`] and [`report`] summarise them and compare them
//!   with published values.

mod checkers;
mod cpus;
mod facts;
mod nic;
mod offload;
mod power;
mod report;
mod resolved_case;
mod route;
mod run;
mod spec;
mod switch;
mod totals;
mod validation;
mod vf_assignment;
mod world;

#[cfg(test)]
mod run_tests;

pub use spec::HostScenario;
