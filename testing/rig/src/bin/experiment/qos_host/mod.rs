//! Plans of kind `qos-host`: disks of one store that all want more than it can do, and
//! minimums and maximums that change meanwhile.
//!
//! Limits are the document's times what the store does here for what the document's did:
//! that is measured first, while nothing is set.

mod plan;
mod record;
mod scene;
mod summary;
mod verdict;

use std::time::Instant;

use anyhow::Result;
use suimon_rig::Rig;

use crate::lab::{Lab, Outcome};
pub(crate) use plan::Plan;
use plan::{Limits, Step};
use record::{Calibration, Record, StepBegun};
use scene::Scene;

/// Seconds before it is measured what the store does.
const WARM_UP_S: u64 = 3;

/// Calibrates, and runs all steps.
pub(crate) fn run(plan: &Plan, lab: &Lab) -> Result<Outcome> {
    let mut record = Record::new(plan);
    let ended = run_steps(plan, lab, &mut record);
    record.circumstances.end();
    record.verdicts = verdict::verdicts(&record);
    if let Err(error) = &ended {
        record.failure = Some(format!("{error:#}"));
    }
    lab.keep(&plan.name, &record)?;
    if lab.is_stopping() {
        ended?;
    }
    let failures = u32::from(record.failure.is_some());
    Ok(Outcome { summary: summary::summary(&record), failures })
}

fn run_steps(plan: &Plan, lab: &Lab, record: &mut Record) -> Result<()> {
    let rig = Rig::new()?;
    eprintln!("{}: makes and fills disks", plan.name);
    let mut scene = Scene::set(&rig, plan)?;
    let calibration = calibrate(plan, lab, &mut scene, record)?;
    for (number, step) in plan.steps.iter().enumerate() {
        eprintln!("{}: {}", plan.name, step.name);
        run_step(step, number, lab, &mut scene, calibration, record)?;
        lab.keep(&plan.name, record)?;
    }
    record.events = scene.events()?;
    for (at, log) in scene.end_load()?.iter().enumerate() {
        record.add_fio(at, log);
    }
    Ok(())
}

fn calibrate(
    plan: &Plan,
    lab: &Lab,
    scene: &mut Scene<'_>,
    record: &mut Record,
) -> Result<Calibration> {
    eprintln!("{}: measures what the store does", plan.name);
    lab.each_second(WARM_UP_S, || scene.second(None, true).map(|of| record.seconds.push(of)))?;
    let (mut got, mut long) = (0.0, 0.0);
    lab.each_second(plan.calibration_s, || {
        let second = scene.second(None, false)?;
        got += second.disks.iter().map(|disk| disk.got_iops).sum::<f64>() * second.span_s;
        long += second.span_s;
        record.seconds.push(second);
        Ok(())
    })?;
    let calibration = Calibration::new(got / long, plan.document_iops);
    record.calibration = Some(calibration);
    Ok(calibration)
}

fn run_step(
    step: &Step,
    number: usize,
    lab: &Lab,
    scene: &mut Scene<'_>,
    calibration: Calibration,
    record: &mut Record,
) -> Result<()> {
    let limits: Vec<Limits> = step.limits.iter().map(|of| of.scaled(calibration.scale)).collect();
    let began = Instant::now();
    scene.set_limits(calibration.measured_iops, &limits)?;
    let change_s = began.elapsed().as_secs_f64();
    record.seconds.push(scene.second(Some(number), true)?);
    record.steps.push(StepBegun { limits, at_s: scene.at_s(), change_s });
    lab.each_second(step.seconds, || {
        record.seconds.push(scene.second(Some(number), false)?);
        Ok(())
    })
}
