//! Execution and summary of a network scenario.

use anyhow::{Result, bail};
use serde::Serialize;
use suimon_quantity::Time;

use crate::figure::Figure;
use crate::kernel::{Dice, SECOND, Trace, Witness};
use crate::network::checks::{Frames, Processors};
use crate::network::spec::{Combination, Expect, FigureSpec, NetworkScenario, SwarmSpec, named};
use crate::network::world::{Deed, Sum, World};
use crate::outcome::{Options, Outcome};

/// Report about a step of a combination.
#[derive(Clone, Debug, Serialize)]
struct StepReport {
    combination: String,
    name: String,
    /// Throughput of TCP payload in Mbit/s.
    mbit_s: f64,
    /// Workers with queues at the end of the step.
    processors: Vec<u16>,
    /// Utilisation of each of these in percent.
    busy_percent: Vec<f64>,
}

/// Runs each combination of the scenario, or a swarm run with one of them.
///
/// # Errors
/// A policy rejects the configuration.
pub(crate) fn run(scenario: &NetworkScenario, options: Options) -> Result<Outcome> {
    let Options { seed, is_swarm, keeps_lines } = options;
    let mut combinations = scenario.combinations();
    let mut dice = Dice::new(seed, "swarm");
    let (deeds, seconds) = match &scenario.swarm {
        Some(spec) if is_swarm => {
            combinations = vec![combinations[dice.below(combinations.len() as u64) as usize]];
            (chance(scenario, spec, &mut dice), spec.seconds)
        }
        None if is_swarm => bail!("swarm: the scenario has no [swarm] settings"),
        _ => (steps(scenario), scenario.step.iter().map(|step| step.seconds).sum()),
    };
    let mut outcome =
        Outcome { virtual_s: seconds * combinations.len() as u64, ..Outcome::default() };
    let mut trace = Trace::new(keeps_lines);
    let mut reports = Vec::new();
    for combination in &combinations {
        let witness =
            Witness::new(trace, vec![Box::new(Frames::default()), Box::new(Processors::default())]);
        let mut world = World::new(scenario, *combination, seed, deeds.clone(), witness)?;
        world.run(Time::from_ns(seconds * SECOND))?;
        outcome.events += world.happened();
        outcome.complaints_count += world.witness.complaints.count;
        outcome.judged += world.witness.complaints.judged;
        outcome.complaints.append(&mut world.witness.complaints.kept);
        for (number, sum) in world.sums.iter().enumerate().filter(|_| !is_swarm) {
            reports.push(report(scenario, *combination, number, sum));
        }
        trace = world.witness.trace;
    }
    outcome.facts = trace.facts();
    outcome.trace = trace.to_string();
    outcome.lines = trace.lines().to_owned();
    outcome.table = table(&reports);
    if !is_swarm {
        outcome.figures = figures(scenario, &reports);
    }
    outcome.steps = serde_json::to_value(&reports)?;
    Ok(outcome)
}

fn steps(scenario: &NetworkScenario) -> Vec<(u64, Deed)> {
    let mut at = 0;
    let mut deeds = Vec::new();
    for (number, step) in scenario.step.iter().enumerate() {
        let (sessions, max_processors) = (step.sessions, step.max_processors);
        deeds.push((at, Deed::Step { number, sessions, max_processors }));
        at += step.seconds * SECOND;
    }
    deeds
}

/// Draws the events of a swarm run: changes of sessions and limits, and link failures that leave at
/// least one link up.
fn chance(scenario: &NetworkScenario, spec: &SwarmSpec, dice: &mut Dice) -> Vec<(u64, Deed)> {
    let end = spec.seconds * SECOND;
    let mut deeds: Vec<(u64, Deed)> = Vec::new();
    for vm in 0..scenario.vms.count {
        deeds.push((0, Deed::Sessions { vm, count: dice.within(1, spec.sessions.into()) as u32 }));
    }
    for _ in 0..dice.below(spec.changes + 1) {
        let deed = if dice.percent(40) {
            let most = u64::from(scenario.host.logical_cpus / scenario.host.threads_per_core);
            Deed::Limit { max_processors: dice.within(1, most.max(1)) as u16 }
        } else {
            let vm = dice.below(scenario.vms.count.into()) as u32;
            Deed::Sessions { vm, count: dice.within(0, spec.sessions.into()) as u32 }
        };
        deeds.push((dice.below(end), deed));
    }
    let mut at = 0;
    for _ in 0..dice.below(spec.faults + 1) {
        let member = dice.below(scenario.team.members.into()) as u32;
        let down = at + dice.within(SECOND, 3 * SECOND);
        at = down + dice.within(SECOND / 10, 3 * SECOND);
        if scenario.team.members > 1 {
            deeds.push((down, Deed::Link { member, is_up: false }));
            deeds.push((at, Deed::Link { member, is_up: true }));
        }
    }
    deeds.sort_by_key(|(at, _)| *at);
    deeds
}

fn report(
    scenario: &NetworkScenario,
    combination: Combination,
    number: usize,
    sum: &Sum,
) -> StepReport {
    let step = &scenario.step[number];
    let seconds = (step.seconds - scenario.settle_s) as f64;
    // The first measuring period after the settling time is excluded.
    let measured_ns = seconds * SECOND as f64;
    let busy = |at: &u16| {
        let ns = sum.busy_ns.get(usize::from(*at)).copied().unwrap_or_default();
        ns as f64 * 100.0 / measured_ns
    };
    StepReport {
        combination: combination.name(),
        name: step.name.clone(),
        mbit_s: sum.bytes as f64 * 8.0 / 1e6 / seconds,
        processors: sum.used.clone(),
        busy_percent: sum.used.iter().map(busy).collect(),
    }
}

fn table(reports: &[StepReport]) -> Vec<Vec<String>> {
    let head = ["COMBINATION", "STEP", "GBIT/S", "PROCESSORS", "BUSY %"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(reports.iter().map(|of| {
        let busy = of.busy_percent.iter().map(|percent| format!("{percent:.0}"));
        vec![
            of.combination.clone(),
            of.name.clone(),
            format!("{:.2}", of.mbit_s / 1000.0),
            of.processors.len().to_string(),
            busy.collect::<Vec<_>>().join(" "),
        ]
    }));
    rows
}

fn figures(scenario: &NetworkScenario, reports: &[StepReport]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for step in &scenario.step {
        for figure in &step.figure {
            let names: Vec<String> =
                named(&figure.combinations).iter().map(|of| of.name()).collect();
            let is_it = |of: &&StepReport| {
                of.name == step.name && (names.is_empty() || names.contains(&of.combination))
            };
            let of: Vec<&StepReport> = reports.iter().filter(is_it).collect();
            let (ours, agrees) = hold(&of, figure);
            figures.push(Figure {
                step: step.name.clone(),
                of: match &of[..] {
                    [one] => one.combination.clone(),
                    all => format!("{} combinations", all.len()),
                },
                published: figure.published.clone(),
                ours,
                agrees,
                used: figure.used,
            });
        }
    }
    figures
}

/// Returns the result in words, and whether it meets the expectation.
fn hold(of: &[&StepReport], figure: &FigureSpec) -> (String, bool) {
    let range = |values: Vec<f64>, digits: usize| {
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let (low, high) = (format!("{least:.digits$}"), format!("{most:.digits$}"));
        (if low == high { low } else { format!("{low} to {high}") }, least, most)
    };
    match figure.expect {
        Expect::Received { mbit_s, within_percent } => {
            let (text, ..) = range(of.iter().map(|of| of.mbit_s / 1000.0).collect(), 2);
            let within = within_percent as f64 / 100.0;
            let agrees = |of: &&StepReport| (of.mbit_s / mbit_s as f64 - 1.0).abs() <= within;
            (format!("{text} Gbit/s"), of.iter().all(agrees))
        }
        Expect::Processors { count } => {
            let (text, ..) = range(of.iter().map(|of| of.processors.len() as f64).collect(), 0);
            (text, of.iter().all(|of| of.processors.len() == count))
        }
        Expect::Busy { from_percent, to_percent } => {
            let all = of.iter().flat_map(|of| of.busy_percent.iter().copied()).collect();
            let (text, least, most) = range(all, 0);
            let agrees = least >= from_percent as f64 && most <= to_percent as f64 + 0.5;
            (format!("{text} %"), agrees)
        }
    }
}
