//! Progress of a run, written to `progress.json` in its folder for observers.

use suimon_lab_run::folder::RunProgress;
use suimon_lab_run::{Case, Run};

/// Returns the progress at the start of a repetition of a case. `repetition` is counted from 0,
/// unlike the number in the result.
pub(crate) fn progress(run: &Run, case: &Case, repetition: u32, seconds_left: f64) -> RunProgress {
    RunProgress {
        pid: std::process::id(),
        case: case.description.clone(),
        repetition: repetition + 1,
        repetitions_done: run.repetitions.len() as u64,
        seconds_left: seconds_left.round() as u64,
    }
}
