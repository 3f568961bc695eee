//! Rules about teams and VMQ.

use suimon_lab_run::{Run, Statistics, Words};

use super::estimates::{AS_GOOD, estimate, is_surely_more, mean};
use crate::advise::advice::{Advice, Target, Value};
use crate::number::number;

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

/// Returns the phase with the highest throughput, by its measure.
fn busiest_phase(run: &Run) -> String {
    let carried = run.measures.iter().filter(|of| of.id.starts_with("carried-"));
    let all = |id: &str| run.cases.iter().filter_map(|case| mean(run, &case.id, id)).sum::<f64>();
    carried
        .max_by(|a, b| all(&a.id).total_cmp(&all(&b.id)))
        .map(|of| of.id.clone())
        .unwrap_or_default()
}

fn best_algorithm(run: &Run, mode: &str, busiest: &str) -> Option<Advice> {
    let of_mode = run.cases.iter().filter_map(|case| {
        let algorithm = case.id.strip_prefix(mode)?.strip_prefix('+')?;
        let is_packed = mean(run, &case.id, "processors-1")? <= 1.0;
        is_packed.then_some((algorithm, estimate(run, &case.id, busiest)?))
    });
    let mut all: Vec<(&str, Statistics)> = of_mode.collect();
    all.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
    let ((best, most), (_, least)) = (all.first()?, all.last()?);
    // With similar results, the current setting is as good.
    if least.mean >= most.mean * AS_GOOD || !is_surely_more(most, least) {
        return None;
    }
    let (most, least) = (number(most.mean, None), number(least.mean, None));
    Some(Advice {
        reason: Words::new(
            format!(
                "With {mode} teams, {best} carried {most} Mbit/s under the highest load, the \
                 worst algorithm {least} Mbit/s; at low load one worker is used."
            ),
            format!(
                "{mode} のチームでは、最大負荷時に {best} が {most} Mbit/s、最も遅いアルゴリズムが {least} Mbit/s \
                 を運びました。低負荷時はワーカー 1 個だけを使います。"
            ),
        ),
        run: run.id.clone(),
        target: Some(Target {
            table: "team",
            only: Some(("mode", mode.to_owned())),
            key: "algorithm",
            value: Value::Text((*best).to_owned()),
        }),
    })
}

/// Recommends the smallest number of workers that carries as much as the best, provided that
/// smaller numbers carry significantly less.
pub(super) fn max_workers(run: &Run) -> Option<Advice> {
    let plan: toml::Table = run.plan.parse().ok()?;
    let settings = plan.get("settings")?.as_table()?;
    let first = settings.get("max_processors")?.as_integer()?;
    let phases = settings.get("phase")?.as_array()?;
    let case = &run.cases.first()?.id;
    let mut now = first;
    let mut all: Vec<(i64, Statistics)> = Vec::new();
    for (at, phase) in (1..).zip(phases) {
        now = phase.get("max_processors").and_then(toml::Value::as_integer).unwrap_or(now);
        all.push((now, estimate(run, case, &format!("carried-{at}"))?));
    }
    let most = all.iter().map(|(_, carried)| carried.mean).fold(0.0, f64::max);
    let as_good = all.iter().filter(|(_, carried)| carried.mean >= most * AS_GOOD);
    let (processors, carried) = as_good.min_by_key(|(processors, _)| *processors)?;
    let mut fewer = all.iter().filter(|(of, _)| of < processors).peekable();
    fewer.peek()?;
    if !fewer.all(|(_, less)| is_surely_more(carried, less)) {
        return None;
    }
    let (carried, most) = (number(carried.mean, None), number(most, None));
    Some(Advice {
        reason: Words::new(
            format!(
                "With {processors} worker(s) for VMQ the team carried {carried} Mbit/s; the \
                 maximum over all numbers of workers is {most} Mbit/s."
            ),
            format!(
                "VMQ に {processors} ワーカーを与えるとチームは {carried} Mbit/s を運びました。すべてのワーカー数での最大は {most} \
                 Mbit/s です。"
            ),
        ),
        run: run.id.clone(),
        target: Some(Target {
            table: "team",
            only: None,
            key: "vmq.max_workers",
            value: Value::Number(*processors),
        }),
    })
}
