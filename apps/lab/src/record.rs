//! Types of a run's record, defined in `formats/lab`.

pub(crate) use suimon_lab_run::{
    Better, Case, FORMAT, Mark, Measure, Module, Origin, Part, Profile, Run, Series,
    SimulatedFigure,
};
