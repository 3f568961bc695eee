//! What was measured, and how it compares.

use std::fmt::Write as _;

use serde::Serialize;

use super::plan::{Pattern, Plan, Published, Reference, Subject, Way};
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
    /// Natively on the same blocks, right before or after.
    pub(crate) native_iops: f64,
}

/// A disk beside its native reference, over all rounds; or references of all disks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) pattern: String,
    pub(crate) depth: u64,
    pub(crate) subject: String,
    /// How a disk was reached; none for references.
    pub(crate) way: Option<Way>,
    pub(crate) iops: Spread,
    /// Of rounds: what it did for what was done natively beside it. None for references.
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
            for reference in self.plan.references() {
                let of_depth = |depth: &u64| self.reference(pattern, reference, *depth);
                comparisons.extend(self.plan.depths.iter().filter_map(of_depth));
            }
            for subject in self.plan.subjects() {
                let of_depth = |depth: &u64| self.comparison(pattern, subject, *depth);
                comparisons.extend(self.plan.depths.iter().filter_map(of_depth));
            }
        }
        self.comparisons = comparisons;
    }

    /// What was done natively beside all disks of a kind.
    fn reference(&self, pattern: &Pattern, of: Reference, depth: u64) -> Option<Comparison> {
        let subjects = self.plan.subjects();
        let beside = subjects.into_iter().filter(|subject| subject.target.reference() == of);
        let samples = beside.flat_map(|subject| self.samples_of(pattern, subject, depth));
        Some(Comparison {
            pattern: pattern.name.clone(),
            depth,
            subject: of.text().to_owned(),
            way: None,
            published: None,
            iops: Spread::of(samples.map(|sample| sample.native_iops).collect())?,
            ratio: None,
            is_goal_met: None,
        })
    }

    fn comparison(&self, pattern: &Pattern, subject: Subject, depth: u64) -> Option<Comparison> {
        let samples: Vec<_> = self.samples_of(pattern, subject, depth).collect();
        let ratios = samples.iter().map(|sample| sample.iops / sample.native_iops);
        let ratio = Spread::of(ratios.collect());
        let least = |of: &Published| of.least_percent(subject.target, depth) as f64 / 100.0;
        Some(Comparison {
            pattern: pattern.name.clone(),
            depth,
            subject: subject.text(),
            way: Some(subject.way),
            published: pattern.published.as_ref().map(least),
            iops: Spread::of(samples.iter().map(|sample| sample.iops).collect())?,
            ratio,
            is_goal_met: ratio.map(|ratio| ratio.median >= goal(depth)),
        })
    }

    fn samples_of(
        &self,
        pattern: &Pattern,
        subject: Subject,
        depth: u64,
    ) -> impl Iterator<Item = &Sample> {
        let (pattern, subject) = (pattern.name.clone(), subject.text());
        self.samples.iter().filter(move |sample| {
            sample.pattern == pattern && sample.depth == depth && sample.subject == subject
        })
    }

    /// What was measured, one after the other, as CSV.
    pub(crate) fn series(&self) -> String {
        let mut lines = "at_s,round,pattern,depth,subject,iops,native_iops\n".to_owned();
        for Sample { at_s, round, pattern, depth, subject, iops, native_iops } in &self.samples {
            // Names have commas.
            let _ = writeln!(
                lines,
                "{at_s:.3},{round},\"{}\",{depth},\"{subject}\",{iops:.1},{native_iops:.1}",
                pattern.replace('"', "\"\"")
            );
        }
        lines
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
