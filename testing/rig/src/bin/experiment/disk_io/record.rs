//! What was measured, and how it compares.

use std::fmt::Write as _;

use serde::Serialize;

use super::plan::{Pattern, Plan, Published, Subject, Way};
use crate::circumstances::Circumstances;
use crate::spread::Spread;

/// What a disk should do of what its native reference does, by depth.
const GOALS: [(u64, f64); 2] = [(4, 0.97), (1, 0.90)];

/// A plan's run.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) plan: Plan,
    pub(crate) circumstances: Circumstances,
    pub(crate) samples: Vec<Sample>,
    pub(crate) comparisons: Vec<Comparison>,
    /// Why it ended before its last round did.
    pub(crate) failure: Option<String>,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// When it began, in seconds after the first one did.
    pub(crate) at_s: f64,
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
    /// How a disk was reached; none for references.
    pub(crate) way: Option<Way>,
    pub(crate) iops: Spread,
    /// Of rounds: what it did for what its reference did in the same round. None for
    /// references.
    pub(crate) ratio: Option<Spread>,
    /// What the published experiment saw at least, as a ratio.
    pub(crate) published: Option<f64>,
    /// Whether the median of ratios is what it should be.
    pub(crate) is_goal_met: Option<bool>,
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
                    comparisons.extend(self.comparison(pattern, subject, *depth));
                }
            }
        }
        self.comparisons = comparisons;
    }

    fn comparison(&self, pattern: &Pattern, subject: Subject, depth: u64) -> Option<Comparison> {
        let own = self.by_round(&pattern.name, subject, depth);
        let ratio = subject.reference().and_then(|reference| {
            let reference = self.by_round(&pattern.name, reference, depth);
            let pairs = own.iter().filter_map(|(round, iops)| {
                let (_, beside) = reference.iter().find(|(of, _)| of == round)?;
                Some(iops / beside)
            });
            Spread::of(pairs.collect())
        });
        let (way, published) = match subject {
            Subject::Disk(target, way) => {
                let least = |of: &Published| of.least_percent(target, depth) as f64 / 100.0;
                (Some(way), pattern.published.as_ref().map(least))
            }
            Subject::NativeFile | Subject::NativeLoop => (None, None),
        };
        Some(Comparison {
            pattern: pattern.name.clone(),
            depth,
            subject: subject.text(),
            way,
            published,
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

    /// What was measured, one after the other, as CSV.
    pub(crate) fn series(&self) -> String {
        let mut lines = "at_s,round,pattern,depth,subject,iops\n".to_owned();
        for Sample { at_s, round, pattern, depth, subject, iops } in &self.samples {
            // Names have commas.
            let _ = writeln!(
                lines,
                "{at_s:.3},{round},\"{}\",{depth},\"{subject}\",{iops:.1}",
                pattern.replace('"', "\"\"")
            );
        }
        lines
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
