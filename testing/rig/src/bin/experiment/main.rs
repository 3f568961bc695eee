//! `make experiment`: runs plans of `lab/` on a real suimond and records what happens.
//!
//! Each argument is a plan. For every combination of team mode and algorithm it sets up
//! guests, a team of uplinks and Open vSwitch behind it, runs the plan's phases, and
//! records every second what was carried and which processor works off which queue.
//! The record is written as JSON, a summary is printed.
#![forbid(unsafe_code)]

mod load;
mod plan;
mod record;
mod scene;

use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use suimon_rig::{Rig, StopSignal};

use crate::load::Load;
use crate::plan::{Combination, Plan};
use crate::record::{Record, Run};
use crate::scene::Scene;

/// How long everything may take to be ready before the first phase.
const READY_LIMIT: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let files: Vec<String> = env::args().skip(1).collect();
    if files.is_empty() {
        bail!("name plans, like lab/vmq-teaming.toml");
    }
    let folder = PathBuf::from(
        env::var("SUIMON_EXPERIMENT_FOLDER").unwrap_or_else(|_| "target/experiments".to_owned()),
    );
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let stop = StopSignal::new()?;
    let mut failures = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).with_context(|| file.clone())?;
        let plan = Plan::parse(&text).with_context(|| file.clone())?;
        let path = folder.join(format!("{}.json", plan.name));
        let mut record = Record::new(&plan);
        for combination in plan.combinations() {
            eprintln!("{}: {combination}", plan.name);
            let mut run = Run::new(combination);
            if let Err(error) = run_phases(&plan, combination, &stop, &mut run) {
                if stop.is_asked() {
                    return Err(error);
                }
                eprintln!("{}: {combination}: {error:#}", plan.name);
                run.failure = Some(format!("{error:#}"));
                failures += 1;
            }
            record.runs.push(run);
            // After each, so that who stops it keeps those before.
            std::fs::write(&path, serde_json::to_string_pretty(&record)?)?;
        }
        println!("{}", record.summary());
        println!("{}", path.display());
    }
    ensure!(failures == 0, "{failures} combinations were not run to their end");
    Ok(())
}

/// One combination from the first phase to the last.
fn run_phases(
    plan: &Plan,
    combination: Combination,
    stop: &StopSignal,
    run: &mut Run,
) -> Result<()> {
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
        let ends = Instant::now() + Duration::from_secs(phase.seconds);
        let mut next = Instant::now() + Duration::from_secs(1);
        while Instant::now() < ends {
            if stop.is_asked() {
                bail!("asked to stop");
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
            next += Duration::from_secs(1);
            let now = scene.carried()?;
            run.seconds.push(scene.second(number, began, &last, &now)?);
            last = now;
        }
        run.sessions_lost.push(load.lost());
    }
    drop(load);
    run.checks = scene.checks()?;
    Ok(())
}
