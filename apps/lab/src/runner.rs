//! Execution of a plan: one repetition of all cases after another, until the confidence intervals
//! are narrow enough.
//!
//! Every second repetition has the cases in reverse order, so that a drift of the machine favours
//! no case.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use suimon_lab_experiments::{CpuProfiler, Environment, Experiment};
use suimon_lab_run::{Case, LocalizedText, Repetition, Run, Statistics};
use suimon_rig::StopSignal;

use crate::machine;
use crate::plan::RepetitionPolicy;
use crate::profile::Profiler;
use crate::progress::progress;
use crate::results::RunFolder;

/// Largest number of failures of a case before it is abandoned.
const FAILURES_MOST: usize = 2;

/// Run that is in progress in this process.
pub(crate) struct Runner<'a> {
    pub(crate) experiment: Box<dyn Experiment>,
    pub(crate) repetition_policy: RepetitionPolicy,
    pub(crate) folder: &'a RunFolder,
    pub(crate) work_folder: &'a Path,
    pub(crate) stop: &'a StopSignal,
}

impl Runner<'_> {
    /// Measures the repetitions that `run` lacks. They are in the folder even after a failure.
    /// After a stop request, `run.aborted_reason` is set.
    pub(crate) fn run(&mut self, run: &mut Run) -> Result<()> {
        let bar = Bar::new(&run.id);
        run.aborted_reason = None;
        for repetition in 0..self.repetition_policy.max {
            if repetition >= self.repetition_policy.min && self.is_precise(run) {
                break;
            }
            for case in alternating(&run.cases, repetition) {
                let is_completed = |part: &Repetition| {
                    part.case_id == case.id
                        && part.repetition == repetition
                        && part.failure.is_none()
                };
                if run.repetitions.iter().any(is_completed) || is_abandoned(run, &case.id) {
                    continue;
                }
                let remaining = self.remaining_s(run, repetition);
                bar.begin(&case, repetition, remaining);
                self.folder.write_progress(&progress(run, &case, repetition, remaining))?;
                let part = self.part(&case, repetition, run.profiles, &bar);
                if self.stop.is_asked() {
                    run.aborted_reason = Some("stopped on request".to_owned());
                    return Ok(());
                }
                if let Some(failure) = &part.failure {
                    bar.progress(&format!("{}: {failure}", case.description.en));
                }
                self.folder.add(&part)?;
                run.duration_s += part.duration_s;
                run.repetitions.push(part);
            }
        }
        bar.end();
        if run.repetitions.iter().all(|part| part.failure.is_some()) {
            let failures = run.repetitions.iter().find_map(|part| part.failure.clone());
            bail!("no measurement completed: {}", failures.unwrap_or_default());
        }
        Ok(())
    }

    fn part(&mut self, case: &Case, repetition: u32, profiles: bool, bar: &Bar) -> Repetition {
        let print_progress = |text: &str| bar.progress(text);
        let profiler = profiles.then(|| Profiler::new(self.work_folder));
        let environment = Environment::new(
            self.stop,
            self.work_folder,
            profiler.as_ref().map(|profiler| profiler as &dyn CpuProfiler),
            &print_progress,
        );
        let (started, load_before) = (Instant::now(), machine::load_average());
        let began_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_millis() as u64);
        let mut part = self.experiment.run(case, &environment).unwrap_or_else(|error| Repetition {
            failure: Some(format!("{error:#}")),
            ..Repetition::default()
        });
        match profiler.map(Profiler::end) {
            Some(Ok(Some(profile))) => part.profile = Some(profile),
            Some(Ok(None)) if part.failure.is_none() => part.notes.push(without_profile()),
            Some(Err(error)) => part.notes.push(failed_profile(&error)),
            _ => {}
        }
        part.case_id.clone_from(&case.id);
        part.repetition = repetition;
        part.started_unix_ms = began_ms;
        part.load_before = load_before;
        part.duration_s = started.elapsed().as_secs_f64();
        part
    }

    /// Returns true if the confidence interval of every deciding measure of every case is narrow
    /// enough.
    fn is_precise(&self, run: &Run) -> bool {
        let deciding: Vec<&str> = run
            .measures
            .iter()
            .filter(|measure| measure.determines_repetition_count)
            .map(|measure| measure.id.as_str())
            .collect();
        run.cases.iter().all(|case| {
            deciding.iter().all(|measure| {
                let values = run.values(&case.id, measure);
                // A case that lacks a measure does not require further repetitions.
                let Some(estimate) = Statistics::from_samples(&values) else { return true };
                let half = estimate.relative_interval_half_width().unwrap_or(f64::INFINITY);
                half * 100.0 <= self.repetition_policy.precision_percent
            })
        })
    }

    /// Returns the estimated time in seconds to the end of the run, assuming the smallest number of
    /// repetitions.
    fn remaining_s(&self, run: &Run, repetition: u32) -> f64 {
        let min_repetitions = self.repetition_policy.min.max(repetition + 1);
        let mut durations: BTreeMap<&str, f64> = BTreeMap::new();
        for part in &run.repetitions {
            durations.insert(&part.case_id, part.duration_s);
        }
        let case_duration =
            |case: &Case| durations.get(case.id.as_str()).copied().unwrap_or(case.seconds);
        let total_s: f64 = run.cases.iter().map(case_duration).sum();
        let completed = run.repetitions.iter().filter(|part| part.repetition == repetition);
        let completed_s: f64 = completed.map(|part| part.duration_s).sum();
        (total_s * f64::from(min_repetitions - repetition) - completed_s).max(0.0)
    }
}

fn without_profile() -> LocalizedText {
    LocalizedText::new(
        "No profile: the experiment runs inside a virtual machine.",
        "プロファイルはありません: 実験は仮想マシンの中で動きます。",
    )
}

fn failed_profile(error: &anyhow::Error) -> LocalizedText {
    LocalizedText::new(
        format!("The profile of some parts is missing: {error:#}"),
        format!("一部のプロファイルは取れませんでした: {error:#}"),
    )
}

/// Returns the cases in the order in which the repetition with this number measures them: reversed
/// for every second one.
fn alternating(cases: &[Case], repetition: u32) -> Vec<Case> {
    let mut cases = cases.to_vec();
    if repetition % 2 == 1 {
        cases.reverse();
    }
    cases
}

fn is_abandoned(run: &Run, case: &str) -> bool {
    let failed =
        run.repetitions.iter().filter(|part| part.case_id == case && part.failure.is_some());
    failed.count() >= FAILURES_MOST
}

/// Display of the progress on standard error: a bar on a terminal, otherwise lines.
struct Bar {
    bar: ProgressBar,
    is_terminal: bool,
}

impl Bar {
    fn new(name: &str) -> Self {
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let bar = if is_terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} {prefix}: {msg} ({elapsed} so far)")
        {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, is_terminal }
    }

    fn begin(&self, case: &Case, repetition: u32, seconds_left: f64) {
        let remaining =
            humantime::format_duration(Duration::from_secs(seconds_left.round() as u64));
        let text = format!(
            "{}, repetition {}, about {remaining} left",
            case.description.en,
            repetition + 1
        );
        if self.is_terminal {
            self.bar.set_message(text);
        } else {
            eprintln!("{}: {text}", self.bar.prefix());
        }
    }

    fn progress(&self, text: &str) {
        if self.is_terminal {
            self.bar.println(text);
        } else {
            eprintln!("{text}");
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests;
