//! What happened in each second, and in short.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::plan::{Combination, Plan};

/// All runs of a plan.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    plan: Plan,
    pub(crate) runs: Vec<Run>,
}

/// One combination.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    mode: String,
    algorithm: String,
    pub(crate) seconds: Vec<Second>,
    /// At the end of each phase.
    pub(crate) sessions_lost: Vec<u32>,
    /// How the team was at the end, and the last events.
    pub(crate) checks: Value,
    /// Why it ended before its last phase did.
    pub(crate) failure: Option<String>,
}

/// About one second.
#[derive(Debug, Serialize)]
pub(crate) struct Second {
    /// Seconds since the first phase began.
    pub(crate) at_s: f64,
    pub(crate) phase: usize,
    /// What the NICs carried, both ways.
    pub(crate) bits_per_second: f64,
    pub(crate) processors: Vec<Processor>,
    pub(crate) queues: Vec<Queue>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Processor {
    pub(crate) processor: u64,
    pub(crate) queues: u64,
    pub(crate) load_ppm: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Queue {
    pub(crate) queue: String,
    pub(crate) processor: u64,
    pub(crate) load_ppm: u64,
}

impl Second {
    fn used(&self) -> usize {
        self.processors.iter().filter(|of| of.queues > 0).count()
    }
}

impl Run {
    pub(crate) fn new(combination: Combination<'_>) -> Self {
        Self {
            mode: combination.mode.to_owned(),
            algorithm: combination.algorithm.to_owned(),
            seconds: Vec::new(),
            sessions_lost: Vec::new(),
            checks: Value::Null,
            failure: None,
        }
    }

    /// A phase in short: processors used and the median of what was carried in its second
    /// half, and sessions lost.
    fn in_short(&self, phase: usize) -> String {
        let of_phase: Vec<&Second> = self.seconds.iter().filter(|of| of.phase == phase).collect();
        let half = of_phase.get(of_phase.len() / 2..).unwrap_or_default();
        let used = || half.iter().map(|second| second.used());
        let (least, most) = (used().min().unwrap_or(0), used().max().unwrap_or(0));
        let mut rates: Vec<f64> = half.iter().map(|second| second.bits_per_second).collect();
        rates.sort_by(f64::total_cmp);
        let rate = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
        let mut text = if least == most { format!("{most}") } else { format!("{least}–{most}") };
        let settled = settled_after(&of_phase).filter(|_| least == most);
        if let Some(seconds) = settled {
            let _ = write!(text, " after {seconds} s");
        }
        let _ = write!(text, " · {:.0} Mbit/s", rate / 1e6);
        if let Some(lost) = self.sessions_lost.get(phase).filter(|lost| **lost > 0) {
            let _ = write!(text, " · {lost} lost");
        }
        text
    }
}

/// After how many seconds as many processors were used as in the last one; `None` if they
/// were from the first one on.
fn settled_after(phase: &[&Second]) -> Option<usize> {
    let last = phase.last()?.used();
    phase.iter().rposition(|second| second.used() != last).map(|at| at + 1)
}

impl Record {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { plan: plan.clone(), runs: Vec::new() }
    }

    /// A table: a row for each combination, a column for each phase.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!(
            "{}: processors used · carried, in the second half of each phase\n\n| mode | algorithm |",
            self.plan.name
        );
        for phase in &self.plan.phases {
            let _ = write!(text, " {} sessions", phase.sessions);
            if let Some(most) = phase.max_processors {
                let _ = write!(text, ", at most {most}");
            }
            text += " |";
        }
        text += "\n|---|---|";
        text += &"---|".repeat(self.plan.phases.len());
        for run in &self.runs {
            let _ = write!(text, "\n| {} | {} |", run.mode, run.algorithm);
            for phase in 0..self.plan.phases.len() {
                let _ = write!(text, " {} |", run.in_short(phase));
            }
            if let Some(failure) = &run.failure {
                let _ = write!(text, " {failure} |");
            }
        }
        text
    }
}
