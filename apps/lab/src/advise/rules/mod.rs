//! Rules that derive recommendations from the runs of each plan.

mod disks;
mod host;
mod vmq;

use suimon_lab_run::Estimate;

use super::Advice;
use crate::plan::Plan;
use crate::record::Run;

/// Smallest ratio to the best value that counts as equally good.
const AS_GOOD: f64 = 0.95;

/// Returns all recommendations derived from a run.
pub(super) fn of_run(run: &Run) -> Vec<Advice> {
    let Ok(plan) = Plan::parse(&run.plan) else { return Vec::new() };
    match plan.head.id.as_str() {
        "vmq-teaming" => vmq::algorithms(run),
        "vmq-max-processors" => vmq::max_processors(run).into_iter().collect(),
        "offload-ftp" => host::driver(run).into_iter().collect(),
        "power-plan" => host::power_plan(run).into_iter().collect(),
        "tiles" => host::tiles(run).into_iter().collect(),
        "disk-io" => disks::formats(run).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns true if `a` is significantly more than `b`: false if one has a single sample, or if the
/// 95 % confidence intervals overlap.
fn is_surely_more(a: &Estimate, b: &Estimate) -> bool {
    a.interval.zip(b.interval).is_some_and(|((low, _), (_, high))| low > high)
}

fn estimate(run: &Run, case: &str, measure: &str) -> Option<Estimate> {
    Estimate::of(&run.values(case, measure))
}

fn mean(run: &Run, case: &str, measure: &str) -> Option<f64> {
    estimate(run, case, measure).map(|of| of.mean)
}
