//! Runs of the lab: the format of `run.json`, what repeated measurements say, and whether two
//! runs differ.
//!
//! - [`Run`] is everything of a run, real or simulated; [`Part`] one repetition of one case.
//! - [`Estimate`] is a mean with its confidence interval; [`mann_whitney`] tells two sets of samples
//!   apart.
//! - [`folder`] says where runs are, and what programs tell each other there.
//! - [`compare`] holds two runs against each other, measure by measure.
//!
//! What it does not do: no file is read or written here, and nothing is measured.
//!
//! Invariants: a run that was written is read by every program of the same [`FORMAT`]; the
//! statistics of the same samples are the same everywhere.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod compare;
pub mod folder;
mod machine;
mod run;
mod stats;
mod words;

pub use compare::{Compared, Finding, compare};
pub use machine::{Machine, Noise};
pub use run::{
    Better, Case, FORMAT, Mark, Measure, Module, Origin, Part, Profile, Run, Series,
    SimulatedFigure,
};
pub use stats::{Estimate, Test, mann_whitney};
pub use words::{Language, Words};
