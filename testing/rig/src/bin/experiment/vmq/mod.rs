//! Plans of kind `vmq`: guests, a team of uplinks and a switch behind it. Every second is
//! recorded what was carried, and which processor works off which queue.

mod load;
mod plan;
mod record;
mod scene;

use std::time::{Duration, Instant};

use anyhow::Result;
use suimon_rig::Rig;

use crate::lab::{Lab, Outcome};
use load::Load;
use plan::Combination;
pub(crate) use plan::Plan;
use record::{Record, Run};
use scene::Scene;

/// How long everything may take to be ready before the first phase.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Each combination of team mode and algorithm, one after another.
pub(crate) fn run(plan: &Plan, lab: &Lab) -> Result<Outcome> {
    let mut record = Record::new(plan);
    let mut failures = 0;
    for combination in plan.combinations() {
        eprintln!("{}: {combination}", plan.name);
        let mut run = Run::new(combination);
        if let Err(error) = run_phases(plan, combination, lab, &mut run) {
            if lab.is_stopping() {
                return Err(error);
            }
            eprintln!("{}: {combination}: {error:#}", plan.name);
            run.failure = Some(format!("{error:#}"));
            failures += 1;
        }
        record.runs.push(run);
        // After each, so that who stops it keeps those before.
        lab.keep(&plan.name, &record)?;
    }
    Ok(Outcome { summary: record.summary(), failures })
}

/// One combination from the first phase to the last.
fn run_phases(plan: &Plan, combination: Combination<'_>, lab: &Lab, run: &mut Run) -> Result<()> {
    let rig = Rig::new()?;
    let scene = Scene::set(&rig, plan, combination, READY_LIMIT)?;
    let mut load = Load::default();
    let began = Instant::now();
    let mut last = scene.carried()?;
    for (number, phase) in plan.phases.iter().enumerate() {
        if let Some(max_processors) = phase.max_processors {
            scene.set_max_processors(max_processors)?;
        }
        load.set(&rig, &scene, phase.sessions, plan.session_bps)?;
        lab.each_second(phase.seconds, || {
            let now = scene.carried()?;
            run.seconds.push(scene.second(number, began, &last, &now)?);
            last = now;
            Ok(())
        })?;
        run.sessions_lost.push(load.lost());
    }
    drop(load);
    run.checks = scene.checks()?;
    Ok(())
}
