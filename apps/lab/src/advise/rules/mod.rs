//! Rules that derive recommendations from the runs of each plan.

mod disks;
mod estimates;
mod host;
mod vmq;

use suimon_lab_run::Run;

use super::advice::Advice;
use crate::plan::Plan;

/// Returns all recommendations derived from a run.
pub(super) fn recommendations(run: &Run) -> Vec<Advice> {
    let Ok(plan) = Plan::parse(&run.plan_text) else { return Vec::new() };
    match plan.header.id.as_str() {
        "vmq-teaming" => vmq::algorithms(run),
        "vmq-max-processors" => vmq::max_workers(run).into_iter().collect(),
        "offload-ftp" => host::driver(run).into_iter().collect(),
        "power-plan" => host::power_plan(run).into_iter().collect(),
        "tiles" => host::tiles(run).into_iter().collect(),
        "disk-io" => disks::formats(run).into_iter().collect(),
        _ => Vec::new(),
    }
}
