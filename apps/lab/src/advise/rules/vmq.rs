//! Rules about teams and VMQ.

use suimon_lab_run::{LocalizedText, Run, Statistics};

use super::estimates::{EQUIVALENT_RATIO, estimate, is_significantly_higher, mean};
use crate::advise::advice::{Advice, RecommendedSetting, Value};
use crate::number::format_number;

/// Recommends for each team mode the algorithm with the highest throughput at the highest load,
/// among those that use one worker at low load. Recommends nothing if the worst one may carry as
/// much.
pub(super) fn algorithms(run: &Run) -> Vec<Advice> {
    let busiest = busiest_phase(run);
    let mut modes: Vec<&str> =
        run.cases.iter().filter_map(|case| Some(case.id.split_once('+')?.0)).collect();
    modes.dedup();
    modes.into_iter().filter_map(|mode| best_algorithm(run, mode, &busiest)).collect()
}

/// Returns the id of the throughput measure of the phase with the highest throughput.
fn busiest_phase(run: &Run) -> String {
    let carried_measures = run.measures.iter().filter(|measure| measure.id.starts_with("carried-"));
    let total_of =
        |id: &str| run.cases.iter().filter_map(|case| mean(run, &case.id, id)).sum::<f64>();
    carried_measures
        .max_by(|a, b| total_of(&a.id).total_cmp(&total_of(&b.id)))
        .map(|measure| measure.id.clone())
        .unwrap_or_default()
}

fn best_algorithm(run: &Run, mode: &str, busiest: &str) -> Option<Advice> {
    let of_mode = run.cases.iter().filter_map(|case| {
        let algorithm = case.id.strip_prefix(mode)?.strip_prefix('+')?;
        let is_packed = mean(run, &case.id, "processors-1")? <= 1.0;
        is_packed.then_some((algorithm, estimate(run, &case.id, busiest)?))
    });
    let mut estimates: Vec<(&str, Statistics)> = of_mode.collect();
    estimates.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
    let ((best, highest), (_, lowest)) = (estimates.first()?, estimates.last()?);
    // The algorithms differ too little to recommend a change.
    if lowest.mean >= highest.mean * EQUIVALENT_RATIO || !is_significantly_higher(highest, lowest) {
        return None;
    }
    let (highest, lowest) = (format_number(highest.mean, None), format_number(lowest.mean, None));
    Some(Advice {
        reason: LocalizedText::new(
            format!(
                "With {mode} teams, {best} carried {highest} Mbit/s under the highest load, the \
                 worst algorithm {lowest} Mbit/s; at low load one worker is used."
            ),
            format!(
                "{mode} のチームでは、最大負荷時に {best} が {highest} Mbit/s、最も遅いアルゴリズムが {lowest} Mbit/s \
                 を運びました。低負荷時はワーカー 1 個だけを使います。"
            ),
        ),
        run_id: run.id.clone(),
        target: Some(RecommendedSetting {
            table: "team",
            table_filter: Some(("mode", mode.to_owned())),
            key: "algorithm",
            value: Value::Text((*best).to_owned()),
        }),
    })
}

/// Recommends the smallest number of workers that carries as much as the best, provided that
/// smaller numbers carry significantly less.
pub(super) fn max_workers(run: &Run) -> Option<Advice> {
    let plan: toml::Table = run.plan_text.parse().ok()?;
    let settings = plan.get("settings")?.as_table()?;
    let first = settings.get("max_processors")?.as_integer()?;
    let phases = settings.get("phase")?.as_array()?;
    let case = &run.cases.first()?.id;
    let mut now = first;
    let mut estimates: Vec<(i64, Statistics)> = Vec::new();
    for (phase_number, phase) in (1..).zip(phases) {
        now = phase.get("max_processors").and_then(toml::Value::as_integer).unwrap_or(now);
        estimates.push((now, estimate(run, case, &format!("carried-{phase_number}"))?));
    }
    let max_mean = estimates.iter().map(|(_, estimate)| estimate.mean).fold(0.0, f64::max);
    let as_good =
        estimates.iter().filter(|(_, estimate)| estimate.mean >= max_mean * EQUIVALENT_RATIO);
    let (processors, estimate) = as_good.min_by_key(|(processors, _)| *processors)?;
    let mut fewer =
        estimates.iter().filter(|(processor_count, _)| processor_count < processors).peekable();
    fewer.peek()?;
    if !fewer.all(|(_, other)| is_significantly_higher(estimate, other)) {
        return None;
    }
    let (rate, max_rate) = (format_number(estimate.mean, None), format_number(max_mean, None));
    Some(Advice {
        reason: LocalizedText::new(
            format!(
                "With {processors} worker(s) for VMQ the team carried {rate} Mbit/s; the \
                 maximum over all numbers of workers is {max_rate} Mbit/s."
            ),
            format!(
                "VMQ に {processors} ワーカーを与えるとチームは {rate} Mbit/s を運びました。すべてのワーカー数での最大は {max_rate} \
                 Mbit/s です。"
            ),
        ),
        run_id: run.id.clone(),
        target: Some(RecommendedSetting {
            table: "team",
            table_filter: None,
            key: "vmq.max_workers",
            value: Value::Number(*processors),
        }),
    })
}
