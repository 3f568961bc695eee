//! Runs of plans in the simulator. Their records have the format of measured runs.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use suimon_lab_run::{
    Case, FORMAT_VERSION, LocalizedText, MachineInfo, Measure, MeasureDirection, Repetition, Run,
    RunOrigin, SimulatedFigure,
};

use crate::plan::Plan;

/// Names and contents of the scenarios that are included in the program.
const SCENARIOS: &[(&str, &str)] = &[
    ("vmq-teaming", include_str!("../../sim/scenarios/vmq-teaming.toml")),
    ("vmq-max-processors", include_str!("../../sim/scenarios/vmq-max-processors.toml")),
    ("offload-ftp", include_str!("../../sim/scenarios/offload-ftp.toml")),
    ("sriov-host-cpu", include_str!("../../sim/scenarios/sriov-host-cpu.toml")),
    ("qos-host", include_str!("../../sim/scenarios/qos-host.toml")),
    ("qos-cluster-min", include_str!("../../sim/scenarios/qos-cluster-min.toml")),
    ("qos-cluster-max", include_str!("../../sim/scenarios/qos-cluster-max.toml")),
    ("net-vm-to-vm", include_str!("../../sim/scenarios/net-vm-to-vm.toml")),
    ("web", include_str!("../../sim/scenarios/web.toml")),
    ("tiles", include_str!("../../sim/scenarios/tiles.toml")),
    ("power-plan", include_str!("../../sim/scenarios/power-plan.toml")),
];

/// Returns the figures of a plan's scenario; empty if there is none, or if the simulator is not
/// installed.
pub(crate) fn figures(plan: &Plan) -> Vec<SimulatedFigure> {
    if plan.header.simulation.is_none() {
        return Vec::new();
    }
    match outcome(plan).and_then(|outcome| parse_figures(&outcome)) {
        Ok(figures) => figures,
        Err(error) => {
            eprintln!("{}: no simulated figures: {error:#}", plan.header.id);
            Vec::new()
        }
    }
}

/// Runs the plan's scenario and returns its record.
pub(crate) fn run(plan: &Plan, id: String, started: String) -> Result<Run> {
    let Some(scenario) = plan.header.simulation.clone() else {
        bail!("{}: the simulator has no scenario for this plan", plan.header.id);
    };
    let outcome = outcome(plan)?;
    let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
    let steps = outcome["steps"].as_array().cloned().unwrap_or_default();
    let parts: Vec<Repetition> =
        steps.iter().enumerate().map(|(index, step)| part(index, step)).collect();
    let mut run = Run {
        format_version: FORMAT_VERSION,
        id,
        plan_text: plan.text.clone(),
        origin: RunOrigin::Simulated {
            scenario,
            seed: outcome["seed"].as_u64().unwrap_or(0),
            commit: text("commit"),
        },
        scale: "full".to_owned(),
        started_at: started,
        duration_s: outcome["virtual_s"].as_f64().unwrap_or(0.0),
        profiles: false,
        command: format!("suimon lab run {} --simulated", plan.header.id),
        machine: MachineInfo { suimon_commit: text("commit"), ..MachineInfo::default() },
        setup: outcome["about"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(LocalizedText::untranslated)
            .collect(),
        cases: Vec::new(),
        measures: Vec::new(),
        repetitions: parts,
        skipped_work: Vec::new(),
        aborted_reason: None,
        simulated_figures: parse_figures(&outcome)?,
    };
    for (part, step) in run.repetitions.iter().zip(&steps) {
        run.cases.push(Case::new(
            part.case_id.clone(),
            LocalizedText::untranslated(step_name(step)),
            0.0,
        ));
        for measure in part.values.keys() {
            if !run.measures.iter().any(|known_measure| known_measure.id == *measure) {
                run.measures.push(Measure::new(
                    measure,
                    LocalizedText::untranslated(measure.replace('.', " ")),
                    "",
                    MeasureDirection::None,
                ));
            }
        }
    }
    Ok(run)
}

fn outcome(plan: &Plan) -> Result<Value> {
    let name = plan.header.simulation.as_deref().unwrap_or_default();
    let scenario = SCENARIOS.iter().find(|(scenario_name, _)| *scenario_name == name);
    let (_, text) =
        scenario.with_context(|| format!("simulation: there is no scenario `{name}`"))?;
    let file = tempfile::Builder::new().prefix("suimon-lab-").suffix(".toml").tempfile()?;
    std::fs::write(file.path(), text)?;
    let output = Command::new(suimon_rig::program("sim")?)
        .args(["run", "--json"])
        .arg(file.path())
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "sim: {}", stderr.trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn parse_figures(outcome: &Value) -> Result<Vec<SimulatedFigure>> {
    Ok(serde_json::from_value(outcome["figures"].clone())?)
}

/// Converts a step of a scenario to one repetition of the case `step-N`, N being `index` + 1. Each
/// number in its output becomes a value.
fn part(index: usize, step: &Value) -> Repetition {
    let mut part = Repetition { case_id: format!("step-{}", index + 1), ..Repetition::default() };
    let mut add = |name: String, value: f64| {
        part.values.insert(name, value);
    };
    numbers("", step, &mut add);
    part
}

fn step_name(step: &Value) -> String {
    let text = |key: &str| step[key].as_str().map(ToOwned::to_owned);
    let name = text("case").or_else(|| text("name")).or_else(|| text("step")).unwrap_or_default();
    text("combination").map_or(name.clone(), |combination| format!("{combination}: {name}"))
}

/// Calls `add` for every number in `value`, with its path below `path`. Elements of a list that
/// have a name are identified by it, others by their position.
fn numbers(path: &str, value: &Value, add: &mut impl FnMut(String, f64)) {
    let join =
        |key: &str| if path.is_empty() { plain(key) } else { format!("{path}.{}", plain(key)) };
    match value {
        Value::Number(number) => add(path.to_owned(), number.as_f64().unwrap_or(0.0)),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| numbers(&join(key), value, add));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let name = item["disk"].as_str().or_else(|| item["name"].as_str());
                numbers(&join(name.unwrap_or(&(index + 1).to_string())), item, add);
            }
        }
        _ => {}
    }
}

/// Replaces characters that ids cannot contain.
fn plain(key: &str) -> String {
    key.chars()
        .map(
            |character| {
                if character.is_ascii_alphanumeric() || character == '+' { character } else { '-' }
            },
        )
        .collect()
}
