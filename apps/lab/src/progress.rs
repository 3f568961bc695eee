//! How far a run is: `progress.json` in its folder, for those who watch from outside.

use suimon_lab_run::folder::Progress;

use crate::record::{Case, Run};

/// A case begins; `repetition` is from 0.
pub(crate) fn progress(run: &Run, case: &Case, repetition: u32, seconds_left: f64) -> Progress {
    Progress {
        pid: std::process::id(),
        case: case.words.clone(),
        repetition: repetition + 1,
        parts_done: run.parts.len() as u64,
        seconds_left: seconds_left.round() as u64,
    }
}
