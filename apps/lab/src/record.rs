//! What is known of a run: `formats/lab`.

pub(crate) use suimon_lab_run::{
    Better, Case, FORMAT, Mark, Measure, Module, Origin, Part, Profile, Run, Series,
    SimulatedFigure,
};
