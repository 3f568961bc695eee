//! How far a run is: `progress.json` in its folder, for those who watch from outside.

use serde::Serialize;

use crate::record::{Case, Run};
use crate::words::Words;

/// What is done now, and what is left.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Progress {
    /// The process that works.
    pid: u32,
    case: Words,
    /// From 1.
    repetition: u32,
    parts_done: usize,
    /// About how long it takes, if no repetition is needed but the least.
    seconds_left: u64,
}

impl Progress {
    /// A case begins.
    pub(crate) fn of(run: &Run, case: &Case, repetition: u32, seconds_left: f64) -> Self {
        Self {
            pid: std::process::id(),
            case: case.words.clone(),
            repetition: repetition + 1,
            parts_done: run.parts.len(),
            seconds_left: seconds_left.round() as u64,
        }
    }
}
