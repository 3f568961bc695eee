//! Execution and summary of a network scenario.

use anyhow::{Result, bail};
use serde::Serialize;
use suimon_quantity::Time;
use suimon_sim_kernel::{
    Figure, InvalidKeys, Observer, Options, RandomStream, SECOND_NS, Scenario, ScenarioResult,
    Trace,
};

use crate::network::checkers::{FrameOrderChecker, WorkerLimitChecker};
use crate::network::spec::{
    Combination, Expectation, FigureSpec, NetworkScenario, SwarmSpec, parse_combinations,
};
use crate::network::world::{Intervention, StepTotals, World};

/// Results of one step with one combination of team mode and algorithm.
#[derive(Clone, Debug, Serialize)]
struct StepReport {
    combination: String,
    name: String,
    /// Throughput of TCP payload in Mbit/s.
    mbit_s: f64,
    /// Numbers of the workers that own queues at the end of the step.
    processors: Vec<u16>,
    /// Utilisation of each of these workers in percent.
    busy_percent: Vec<f64>,
}

impl Scenario for NetworkScenario {
    fn name(&self) -> &str {
        &self.name
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn has_swarm(&self) -> bool {
        self.swarm.is_some()
    }

    fn check(&self, invalid: &mut InvalidKeys) {
        self.check_keys(invalid);
    }

    fn run(&self, options: Options) -> Result<ScenarioResult> {
        run(self, options)
    }
}

/// Runs each combination of the scenario, or a swarm run with one of them.
///
/// # Errors
/// A policy rejects the configuration.
pub(crate) fn run(scenario: &NetworkScenario, options: Options) -> Result<ScenarioResult> {
    let Options { seed, is_swarm, records_lines: keeps_lines } = options;
    let mut combinations = scenario.combinations();
    let mut random = RandomStream::new(seed, "swarm");
    let (interventions, seconds) = match &scenario.swarm {
        Some(spec) if is_swarm => {
            combinations =
                vec![combinations[random.draw_below(combinations.len() as u64) as usize]];
            (random_interventions(scenario, spec, &mut random), spec.seconds)
        }
        None if is_swarm => {
            bail!("the scenario has no table `[swarm]`; add one, or run it without random changes")
        }
        _ => (steps(scenario), scenario.step.iter().map(|step| step.seconds).sum()),
    };
    let mut outcome = ScenarioResult {
        virtual_s: seconds * combinations.len() as u64,
        ..ScenarioResult::default()
    };
    let mut trace = Trace::new(keeps_lines);
    let mut reports = Vec::new();
    for combination in &combinations {
        let observer = Observer::new(
            trace,
            vec![Box::new(FrameOrderChecker::default()), Box::new(WorkerLimitChecker::default())],
        );
        let mut world = World::new(scenario, *combination, seed, interventions.clone(), observer)?;
        world.run(Time::from_ns(seconds * SECOND_NS))?;
        outcome.events += world.processed_events();
        outcome.add_violations(world.observer.violations);
        for (number, sum) in world.step_totals.iter().enumerate().filter(|_| !is_swarm) {
            reports.push(report(scenario, *combination, number, sum));
        }
        trace = world.observer.trace;
    }
    outcome.set_trace(&trace);
    outcome.table = table(&reports);
    if !is_swarm {
        outcome.figures = figures(scenario, &reports);
    }
    outcome.steps = serde_json::to_value(&reports)?;
    Ok(outcome)
}

fn steps(scenario: &NetworkScenario) -> Vec<(u64, Intervention)> {
    let mut at_ns = 0;
    let mut interventions = Vec::new();
    for (number, step) in scenario.step.iter().enumerate() {
        let (sessions, max_processors) = (step.sessions, step.max_workers);
        interventions.push((at_ns, Intervention::Step { number, sessions, max_processors }));
        at_ns += step.seconds * SECOND_NS;
    }
    interventions
}

/// Returns random events of a swarm run: changes of sessions and limits, and link failures that
/// leave at least one link up. Each is a pair of time in ns and event.
fn random_interventions(
    scenario: &NetworkScenario,
    spec: &SwarmSpec,
    random: &mut RandomStream,
) -> Vec<(u64, Intervention)> {
    let end = spec.seconds * SECOND_NS;
    let mut interventions: Vec<(u64, Intervention)> = Vec::new();
    for vm in 0..scenario.vms.count {
        interventions.push((
            0,
            Intervention::Sessions {
                vm,
                count: random.draw_in_range(1, spec.sessions.into()) as u32,
            },
        ));
    }
    for _ in 0..random.draw_below(spec.changes + 1) {
        let intervention = if random.draw_chance(40) {
            let max_processors =
                u64::from(scenario.host.logical_cpus / scenario.host.threads_per_core);
            Intervention::Limit {
                max_processors: random.draw_in_range(1, max_processors.max(1)) as u16,
            }
        } else {
            let vm = random.draw_below(scenario.vms.count.into()) as u32;
            Intervention::Sessions {
                vm,
                count: random.draw_in_range(0, spec.sessions.into()) as u32,
            }
        };
        interventions.push((random.draw_below(end), intervention));
    }
    let mut at_ns = 0;
    for _ in 0..random.draw_below(spec.faults + 1) {
        let member = random.draw_below(scenario.team.members.into()) as u32;
        let down = at_ns + random.draw_in_range(SECOND_NS, 3 * SECOND_NS);
        at_ns = down + random.draw_in_range(SECOND_NS / 10, 3 * SECOND_NS);
        if scenario.team.members > 1 {
            interventions.push((down, Intervention::Link { member, is_up: false }));
            interventions.push((at_ns, Intervention::Link { member, is_up: true }));
        }
    }
    interventions.sort_by_key(|(at_ns, _)| *at_ns);
    interventions
}

fn report(
    scenario: &NetworkScenario,
    combination: Combination,
    number: usize,
    sum: &StepTotals,
) -> StepReport {
    let step = &scenario.step[number];
    let seconds = (step.seconds - scenario.settle_s) as f64;
    // The first measuring period after the settling time is excluded from the means.
    let measured_ns = seconds * SECOND_NS as f64;
    let busy = |cpu: &u16| {
        let ns = sum.busy_ns.get(usize::from(*cpu)).copied().unwrap_or_default();
        ns as f64 * 100.0 / measured_ns
    };
    StepReport {
        combination: combination.name(),
        name: step.name.clone(),
        mbit_s: sum.bytes as f64 * 8.0 / 1e6 / seconds,
        processors: sum.workers_in_use.clone(),
        busy_percent: sum.workers_in_use.iter().map(busy).collect(),
    }
}

fn table(reports: &[StepReport]) -> Vec<Vec<String>> {
    let head = ["COMBINATION", "STEP", "GBIT/S", "PROCESSORS", "BUSY %"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(reports.iter().map(|report| {
        let busy = report.busy_percent.iter().map(|percent| format!("{percent:.0}"));
        vec![
            report.combination.clone(),
            report.name.clone(),
            format!("{:.2}", report.mbit_s / 1000.0),
            report.processors.len().to_string(),
            busy.collect::<Vec<_>>().join(" "),
        ]
    }));
    rows
}

fn figures(scenario: &NetworkScenario, reports: &[StepReport]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for step in &scenario.step {
        for figure in &step.figure {
            let names: Vec<String> = parse_combinations(&figure.combinations)
                .iter()
                .map(|combination| combination.name())
                .collect();
            let is_selected = |report: &&StepReport| {
                report.name == step.name
                    && (names.is_empty() || names.contains(&report.combination))
            };
            let matching: Vec<&StepReport> = reports.iter().filter(is_selected).collect();
            let (text, agrees) = evaluate(&matching, figure);
            figures.push(Figure {
                step: step.name.clone(),
                quantity: match &matching[..] {
                    [single] => single.combination.clone(),
                    several => format!("{} combinations", several.len()),
                },
                published: figure.published.clone(),
                simulated_value: text,
                agrees,
                purpose: figure.purpose,
            });
        }
    }
    figures
}

/// Returns the result of the matching steps as text, and true if it meets the expectation.
fn evaluate(matching: &[&StepReport], figure: &FigureSpec) -> (String, bool) {
    let range = |values: Vec<f64>, digits: usize| {
        let lowest = values.iter().copied().fold(f64::MAX, f64::min);
        let highest = values.iter().copied().fold(0.0, f64::max);
        let (low, high) = (format!("{lowest:.digits$}"), format!("{highest:.digits$}"));
        (if low == high { low } else { format!("{low} to {high}") }, lowest, highest)
    };
    match figure.expectation {
        Expectation::Throughput { mbit_s, within_percent } => {
            let (text, ..) =
                range(matching.iter().map(|report| report.mbit_s / 1000.0).collect(), 2);
            let tolerance = within_percent as f64 / 100.0;
            let agrees =
                |report: &&StepReport| (report.mbit_s / mbit_s as f64 - 1.0).abs() <= tolerance;
            (format!("{text} Gbit/s"), matching.iter().all(agrees))
        }
        Expectation::WorkersInUse { count } => {
            let (text, ..) =
                range(matching.iter().map(|report| report.processors.len() as f64).collect(), 0);
            (text, matching.iter().all(|report| report.processors.len() == count))
        }
        Expectation::WorkerUtilisation { from_percent, to_percent } => {
            let busy_percents =
                matching.iter().flat_map(|report| report.busy_percent.iter().copied()).collect();
            let (text, lowest, highest) = range(busy_percents, 0);
            let agrees = lowest >= from_percent as f64 && highest <= to_percent as f64 + 0.5;
            (format!("{text} %"), agrees)
        }
    }
}
