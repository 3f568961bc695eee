//! Lab runs: format of `run.json`, statistics of repeated measurements, and comparison of runs.
//!
//! - [`Run`] contains all data of a run, real or simulated; [`Repetition`] is one repetition of one
//!   case.
//! - [`Statistics`] is a mean with its confidence interval; [`mann_whitney`] tests whether two sets
//!   of samples differ.
//! - [`folder`] defines the results folder and the files by which programs communicate.
//! - [`compare`] compares two runs, measure by measure.
//!
//! This crate performs no I/O and no measurements.
//!
//! Invariants: a run is readable by every program with the same [`FORMAT_VERSION`]; the statistics
//! are deterministic.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod compare;
pub mod folder;
mod localized_text;
mod machine;
mod run;
mod stats;

pub use compare::{Comparison, ComparisonResult, compare};
pub use localized_text::{Language, LocalizedText};
pub use machine::{BackgroundLoad, MachineInfo};
pub use run::{
    Case, FORMAT_VERSION, Mark, Measure, MeasureDirection, Profile, ProfiledModule, Repetition,
    Run, RunOrigin, Series, SimulatedFigure,
};
pub use stats::{MannWhitneyResult, Statistics, mann_whitney};
