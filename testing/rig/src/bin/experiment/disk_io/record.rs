//! What was measured, and how it compares.

use std::fmt::Write as _;

use serde::Serialize;

use super::plan::{Plan, Subject};
use crate::circumstances::Circumstances;

/// What a disk should do of what its native reference does, by depth.
const GOALS: [(u64, f64); 2] = [(4, 0.97), (1, 0.90)];

/// A plan's run.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    plan: Plan,
    pub(crate) circumstances: Circumstances,
    pub(crate) samples: Vec<Sample>,
    pub(crate) comparisons: Vec<Comparison>,
    /// Why it ended before its last round did.
    pub(crate) failure: Option<String>,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) round: usize,
    pub(crate) pattern: String,
    pub(crate) depth: u64,
    pub(crate) subject: String,
    /// Reads and writes per second.
    pub(crate) iops: f64,
}

/// A disk beside its native reference, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) pattern: String,
    pub(crate) depth: u64,
    pub(crate) subject: String,
    pub(crate) iops: Spread,
    /// Of rounds: what it did for what its reference did in the same round. None for
    /// references.
    pub(crate) ratio: Option<Spread>,
    /// Whether the median of ratios is what it should be.
    pub(crate) is_goal_met: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) lowest: f64,
    pub(crate) median: f64,
    pub(crate) highest: f64,
}

impl Spread {
    /// None of nothing. Of an even number the median is the lower of the two in the middle.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Self {
            lowest: *values.first()?,
            median: *values.get((values.len() - 1) / 2)?,
            highest: *values.last()?,
        })
    }
}

/// What is asked for at a depth.
fn goal(depth: u64) -> f64 {
    GOALS.iter().find(|(from, _)| depth >= *from).map_or(0.0, |(_, goal)| *goal)
}

impl Record {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            circumstances: Circumstances::now(),
            samples: Vec::new(),
            comparisons: Vec::new(),
            failure: None,
        }
    }

    /// Compares what was measured so far.
    pub(crate) fn compare(&mut self) {
        let mut comparisons = Vec::new();
        for pattern in &self.plan.patterns {
            for subject in self.plan.subjects() {
                for depth in &self.plan.depths {
                    comparisons.extend(self.comparison(&pattern.name, subject, *depth));
                }
            }
        }
        self.comparisons = comparisons;
    }

    fn comparison(&self, pattern: &str, subject: Subject, depth: u64) -> Option<Comparison> {
        let own = self.by_round(pattern, subject, depth);
        let ratio = subject.reference().and_then(|reference| {
            let reference = self.by_round(pattern, reference, depth);
            let pairs = own.iter().filter_map(|(round, iops)| {
                let (_, beside) = reference.iter().find(|(of, _)| of == round)?;
                Some(iops / beside)
            });
            Spread::of(pairs.collect())
        });
        Some(Comparison {
            pattern: pattern.to_owned(),
            depth,
            subject: subject.text(),
            iops: Spread::of(own.iter().map(|(_, iops)| *iops).collect())?,
            ratio,
            is_goal_met: ratio.map(|ratio| ratio.median >= goal(depth)),
        })
    }

    fn by_round(&self, pattern: &str, subject: Subject, depth: u64) -> Vec<(usize, f64)> {
        let subject = subject.text();
        let of = self.samples.iter().filter(|sample| {
            sample.pattern == pattern && sample.depth == depth && sample.subject == subject
        });
        of.map(|sample| (sample.round, sample.iops)).collect()
    }

    /// For each pattern a table: what native ones do, and what disks do of that.
    pub(crate) fn summary(&self) -> String {
        let plan = &self.plan;
        let mut text = format!(
            "{}: {}\n{} rounds of {} s; native: MB/s; disks: percent of native in the same round; \
             median (lowest–highest)",
            plan.name,
            self.circumstances.text(),
            plan.rounds,
            plan.seconds
        );
        for pattern in &plan.patterns {
            let name = &pattern.name;
            let _ = write!(text, "\n\n{name}, {} KiB, depth:\n\n| |", pattern.block_kib);
            for depth in &plan.depths {
                let _ = write!(text, " {depth} |");
            }
            text += "\n|---|";
            text += &"---|".repeat(plan.depths.len());
            for subject in plan.subjects() {
                let subject = subject.text();
                let _ = write!(text, "\n| {subject} |");
                for of in self
                    .comparisons
                    .iter()
                    .filter(|of| of.pattern == *name && of.subject == subject)
                {
                    let _ = write!(text, " {} |", of.text(pattern.block_kib));
                }
            }
        }
        let judged = self.comparisons.iter().filter_map(|of| of.is_goal_met);
        let (met, all) = judged.fold((0, 0), |(met, all), is| (met + u32::from(is), all + 1));
        let _ = write!(text, "\n\n97 % from depth 4 and 90 % below: in {met} of {all} medians.");
        if let Some(failure) = &self.failure {
            let _ = write!(text, "\n\nNot run to its end: {failure}");
        }
        text
    }
}

impl Comparison {
    fn text(&self, block_kib: u64) -> String {
        #[allow(clippy::cast_precision_loss, reason = "at most 1024")]
        let megabytes = block_kib as f64 * 1024.0 / 1e6;
        let (of, factor) = match self.ratio {
            Some(ratio) => (ratio, 100.0),
            None => (self.iops, megabytes),
        };
        let [lowest, median, highest] = [of.lowest, of.median, of.highest].map(|of| of * factor);
        format!("{median:.0} ({lowest:.0}–{highest:.0})")
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
