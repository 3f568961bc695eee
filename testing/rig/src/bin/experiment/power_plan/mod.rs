//! Plans of kind `power-plan`: transactions under each of the plans of `suimon power`.
//!
//! Plans take turns within each round, and which of them begins moves on from round to
//! round, so that a machine that is busy at times is so to all.

mod plan;
mod record;
mod scene;
mod sessions;

use std::time::Instant;

use anyhow::Result;
use suimon_rig::Rig;

use crate::lab::{Lab, Outcome};
pub(crate) use plan::Plan;
use record::{Load, Record, Sample};
use scene::Scene;

/// All rounds.
pub(crate) fn run(plan: &Plan, lab: &Lab) -> Result<Outcome> {
    let mut record = Record::new(plan);
    let ended = run_rounds(plan, lab, &mut record);
    record.circumstances.end();
    if let Err(error) = &ended {
        record.failure = Some(format!("{error:#}"));
    }
    record.compare();
    lab.keep(&plan.name, &record)?;
    if lab.is_stopping() {
        ended?;
    }
    let failures = u32::from(record.failure.is_some());
    Ok(Outcome { summary: record.summary(), failures })
}

fn run_rounds(plan: &Plan, lab: &Lab, record: &mut Record) -> Result<()> {
    let rig = Rig::new()?;
    let scene = Scene::set(&rig, plan)?;
    let began = Instant::now();
    for round in 0..plan.rounds {
        let mut names: Vec<&String> = plan.plans.iter().collect();
        let first = round % names.len();
        names.rotate_left(first);
        for name in names {
            eprintln!("{}: round {} of {}: {name}", plan.name, round + 1, plan.rounds);
            let missing = scene.set_plan(name)?;
            record.missing.insert(name.clone(), missing);
            for load in Load::ALL {
                lab.check()?;
                let at_s = began.elapsed().as_secs_f64();
                let seen = scene.measure(load)?;
                record.samples.push(Sample { at_s, round, plan: name.clone(), load, seen });
            }
        }
        record.compare();
        lab.keep(&plan.name, record)?;
    }
    Ok(())
}
