//! Estimates of measures in a run, and their comparison.

use suimon_lab_run::{Run, Statistics};

/// Smallest ratio to the best value that counts as equally good.
pub(super) const EQUIVALENT_RATIO: f64 = 0.95;

/// Returns true if `a` is significantly more than `b`: false if one has a single sample, or if the
/// 95 % confidence intervals overlap.
pub(super) fn is_significantly_higher(a: &Statistics, b: &Statistics) -> bool {
    a.confidence_interval.zip(b.confidence_interval).is_some_and(|((low, _), (_, high))| low > high)
}

pub(super) fn estimate(run: &Run, case: &str, measure: &str) -> Option<Statistics> {
    Statistics::from_samples(&run.values(case, measure))
}

pub(super) fn mean(run: &Run, case: &str, measure: &str) -> Option<f64> {
    estimate(run, case, measure).map(|statistics| statistics.mean)
}
