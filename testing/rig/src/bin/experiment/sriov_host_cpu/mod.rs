//! Plans of kind `sriov-host-cpu`: the same bytes between a guest and a peer behind the adapter,
//! once through the switch and once by a virtual function.

mod plan;
mod record;
mod scene;

use anyhow::Result;
use suimon_rig::Rig;

use crate::lab::{Lab, Outcome};
pub(crate) use plan::Plan;
use record::{Direction, Path, Record};
use scene::Scene;

/// All ways, in the order in which the first round takes them.
const WAYS: [(Path, Direction); 4] = [
    (Path::Switch, Direction::Sends),
    (Path::Vf, Direction::Sends),
    (Path::Switch, Direction::Receives),
    (Path::Vf, Direction::Receives),
];

/// Measures all ways, round by round.
pub(crate) fn run(plan: &Plan, lab: &Lab) -> Result<Outcome> {
    let mut record = Record::new(plan);
    let ended = run_rounds(plan, lab, &mut record);
    record.circumstances.end();
    if let Err(error) = &ended {
        record.failure = Some(format!("{error:#}"));
    }
    lab.keep(&plan.name, &record)?;
    if lab.is_stopping() {
        ended?;
    }
    let failures = u32::from(record.failure.is_some());
    Ok(Outcome { summary: record.summary(), failures })
}

fn run_rounds(plan: &Plan, lab: &Lab, record: &mut Record) -> Result<()> {
    let rig = Rig::new()?;
    eprintln!("{}: boots a machine with an adapter", plan.name);
    let mut scene = Scene::set(&rig)?;
    for round in 0..plan.rounds {
        eprintln!("{}: round {} of {}", plan.name, round + 1, plan.rounds);
        let mut ways = WAYS;
        ways.rotate_left(usize::try_from(round).unwrap_or(0) % WAYS.len());
        for (path, direction) in ways {
            lab.check()?;
            record.samples.push(scene.measure(round, path, direction, plan.mib)?);
            lab.keep(&plan.name, record)?;
        }
    }
    Ok(())
}
