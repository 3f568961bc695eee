//! What is known of a run: `formats/lab`.

pub(crate) use suimon_lab_run::{
    Better, Case, FORMAT, Mark, Measure, Origin, Part, Run, Series, SimulatedFigure,
};
