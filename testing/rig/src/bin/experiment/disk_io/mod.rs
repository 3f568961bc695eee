//! Plans of kind `disk-io`: what disks do for what a file does natively.
//!
//! Each measurement of a disk stands beside a native one on the same blocks. Which of both
//! comes first changes from round to round, and so does the disk that begins, so that a
//! machine that is busy at times is so to all.

mod engine;
mod payload;
mod plan;
mod record;
mod scene;
mod table;

use std::time::Instant;

use anyhow::Result;
use suimon_rig::Rig;

use crate::lab::{Lab, Outcome};
pub(crate) use plan::Plan;
use record::{Record, Sample};
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
    lab.keep_series(&plan.name, &record.series())?;
    if lab.is_stopping() {
        ended?;
    }
    let failures = u32::from(record.failure.is_some());
    Ok(Outcome { summary: table::summary(&record), failures })
}

fn run_rounds(plan: &Plan, lab: &Lab, record: &mut Record) -> Result<()> {
    let rig = Rig::new()?;
    eprintln!("{}: makes and fills files and disks", plan.name);
    let mut scene = Scene::set(&rig, plan)?;
    let began = Instant::now();
    for round in 0..plan.rounds {
        for pattern in &plan.patterns {
            eprintln!("{}: round {} of {}: {}", plan.name, round + 1, plan.rounds, pattern.name);
            for depth in &plan.depths {
                let mut subjects = plan.subjects();
                let first = round % subjects.len();
                subjects.rotate_left(first);
                for subject in subjects {
                    lab.check()?;
                    let at_s = began.elapsed().as_secs_f64();
                    let is_native_first = round % 2 == 0;
                    let (iops, native_iops) =
                        scene.measure_beside(subject, pattern, *depth, is_native_first)?;
                    record.samples.push(Sample {
                        at_s,
                        round,
                        pattern: pattern.name.clone(),
                        depth: *depth,
                        subject: subject.text(),
                        iops,
                        native_iops,
                    });
                }
            }
        }
        record.compare();
        lab.keep(&plan.name, record)?;
    }
    Ok(())
}
