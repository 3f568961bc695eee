//! Interface between the lab and each kind of experiment.

use anyhow::Result;
use suimon_lab_run::{Case, LocalizedText, Measure, Repetition};

use crate::environment::Environment;
use crate::requirement::Requirement;

/// Kind of experiment with the settings of a plan.
pub trait Experiment {
    /// Returns the requirements on the machine.
    fn requirements(&self) -> Vec<Requirement>;

    /// Returns a description of the setup in sentences, for the report.
    fn setup(&self) -> Vec<LocalizedText>;

    /// Returns the cases to compare in order of display; at least one.
    fn cases(&self) -> Vec<Case>;

    /// Returns the measures of which repetitions contain values.
    fn measures(&self) -> Vec<Measure>;

    /// Measures a case once: sets it up, measures and takes it down. An implementation may keep the
    /// setup for the next call; dropping the experiment takes it down.
    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition>;
}
