//! Execution and summary of a host scenario.

use anyhow::{Result, bail};
use suimon_quantity::Time;
use suimon_sim_kernel::{InvalidKeys, Observer, Options, Scenario, ScenarioResult, Trace};

use crate::host::checkers::checkers;
use crate::host::report::{Report, figures, report};
use crate::host::resolved_case::ResolvedCase;
use crate::host::spec::HostScenario;
use crate::host::world::World;

impl Scenario for HostScenario {
    fn name(&self) -> &str {
        &self.name
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn has_swarm(&self) -> bool {
        false
    }

    fn check(&self, invalid: &mut InvalidKeys) {
        self.check_keys(invalid);
    }

    fn run(&self, options: Options) -> Result<ScenarioResult> {
        run(self, options)
    }
}

/// Runs each case of the scenario, and compares the results with published figures.
///
/// # Errors
/// A policy rejects the configuration of a case.
pub(crate) fn run(scenario: &HostScenario, options: Options) -> Result<ScenarioResult> {
    let Options { seed, is_swarm, records_lines: keeps_lines } = options;
    if is_swarm {
        bail!("the scenario has no table `[swarm]`; add one, or run it without random changes");
    }
    let mut outcome = ScenarioResult::default();
    let mut trace = Trace::new(keeps_lines);
    let mut reports: Vec<Report> = Vec::new();
    let mut virtual_ms = 0;
    for case in &scenario.case {
        let plan = ResolvedCase::new(scenario, case);
        let observer = Observer::new(trace, checkers(&plan));
        let mut world = World::new(&plan, seed, observer)?;
        let ms = scenario.settle_ms + scenario.measure_ms;
        world.run(Time::from_ns(ms * 1_000_000));
        virtual_ms += ms;
        outcome.events += world.processed_events();
        outcome.add_violations(world.observer.violations);
        reports.push(report(&plan, &world.totals));
        trace = world.observer.trace;
    }
    outcome.virtual_s = virtual_ms / 1000;
    outcome.set_trace(&trace);
    outcome.table = table(&reports);
    outcome.figures = figures(scenario, &reports);
    outcome.steps = serde_json::to_value(&reports)?;
    Ok(outcome)
}

fn table(reports: &[Report]) -> Vec<Vec<String>> {
    let has_any =
        |value_of: fn(&Report) -> f64| reports.iter().any(|report| value_of(report) > 0.0);
    let (has_watts, has_score) = (has_any(|report| report.watts), has_any(|report| report.score));
    let mut head = vec!["CASE", "VMS", "REQUESTS/S", "MBIT/S", "CPU %", "µS VM", "µS HOST"];
    head.extend(has_watts.then_some("WATTS"));
    head.extend(has_score.then_some("SCORE"));
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for report in reports {
        for (number, vms_report) in report.vms.iter().enumerate() {
            let first = |text: String| if number == 0 { text } else { String::new() };
            let mut row = vec![
                first(report.case.clone()),
                format!("{} {}", vms_report.count, vms_report.name),
                format!("{:.0}", vms_report.requests_per_s),
                format!("{:.0}", vms_report.mbit_s),
                first(format!("{:.1}", report.cpu_percent)),
                format!("{:.2}", vms_report.vm_us_per_request),
                format!("{:.2}", vms_report.host_us_per_request),
            ];
            row.extend(has_watts.then(|| first(format!("{:.1}", report.watts))));
            row.extend(has_score.then(|| first(format!("{:.2}", report.score))));
            rows.push(row);
        }
    }
    rows
}
