//! Experiments of the lab: kinds of experiments, their testbeds and their load generators.
//!
//! `kinds` has one module per kind, which a plan selects; [`make`] creates an experiment from a
//! plan's settings. `loads` are load generators and namespace guests that several kinds use, and
//! `sampling` measures CPU time and power during a load. An experiment has no access to plans or
//! results: it measures one case at a time in an [`Environment`] and returns a
//! [`Repetition`](suimon_lab_run::Repetition).
//!
//! Invariant: dropping an experiment removes all processes and devices that it created.
#![forbid(unsafe_code)]

mod bounds;
mod environment;
mod experiment;
mod kinds;
mod loads;
mod measure;
mod requirement;
mod sampling;

pub use environment::{CpuProfiler, Environment};
pub use experiment::Experiment;
pub use kinds::make;
pub use loads::vcpus::available_cpus;
pub use requirement::{Requirement, free_mib};
