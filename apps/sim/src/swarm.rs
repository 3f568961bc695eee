//! Swarms: many runs of a scenario, each with its own random changes and faults.
//!
//! Each run is executed by one thread and shares no state with others, so it has the same result as
//! a single run with its seed. Only the total time depends on the number of parallel runs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, ensure};
use clap::Args;
use suimon_sim_kernel::{Options, ScenarioResult};

use crate::failure::{COMMIT, failure_report};
use crate::output::print;
use crate::scenario::AnyScenario;

/// Largest number of failures shown.
const SHOWN_MAX: usize = 5;

/// Arguments of `swarm`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SwarmFlags {
    /// Scenario file (TOML) with a table `[swarm]`, which defines the possible changes and faults.
    scenario: PathBuf,
    /// Number of runs, each with its own seed.
    #[arg(long, value_name = "N", default_value_t = 500)]
    seeds: u64,
    /// First seed; the following runs have the next higher seeds.
    #[arg(long, value_name = "N", default_value_t = 1)]
    first: u64,
    /// Number of runs at the same time; one per CPU if absent.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl SwarmFlags {
    pub(crate) fn run(self) -> Result<bool> {
        let scenario_file = AnyScenario::open(&self.scenario)?;
        let scenario = scenario_file.model();
        ensure!(
            scenario.has_swarm(),
            "the scenario has no table `[swarm]`; add one, or run it without random changes"
        );
        let available = || thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.unwrap_or_else(available).max(1);
        let next = AtomicU64::new(self.first);
        let end = self.first.saturating_add(self.seeds);
        let work = || {
            let mut outcomes = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    return outcomes;
                }
                let options = Options { seed, is_swarm: true, records_lines: false };
                outcomes.push((seed, scenario.run(options)));
            }
        };
        let mut outcomes: Vec<(u64, Result<ScenarioResult>)> = thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            let results = threads.into_iter().map(|thread| thread.join());
            results
                .flat_map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        outcomes.sort_by_key(|(seed, _)| *seed);
        self.report(outcomes)
    }

    fn report(&self, outcomes: Vec<(u64, Result<ScenarioResult>)>) -> Result<bool> {
        let (mut events, mut seconds, mut judged, mut failed) = (0, 0, 0, Vec::new());
        for (seed, outcome) in outcomes {
            let outcome = outcome?;
            events += outcome.events;
            seconds += outcome.virtual_s;
            judged += outcome.checks;
            if outcome.violation_count > 0 {
                failed.push((seed, outcome));
            }
        }
        for (seed, outcome) in failed.iter().take(SHOWN_MAX) {
            eprint!("{}", failure_report(&self.scenario, *seed, true, outcome));
        }
        let (runs, count) = (self.seeds, failed.len());
        if self.json {
            let seeds: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
            let value = serde_json::json!({
                "runs": runs, "failed": seeds, "virtual_s": seconds, "events": events,
                "judged": judged,
                "commit": COMMIT,
            });
            print(&format!("{value:#}\n"))?;
        } else {
            print(&format!(
                "{runs} runs of {seconds} s in total, {events} events, {judged} promises checked: \
                 {count} violated\n"
            ))?;
        }
        Ok(failed.is_empty())
    }
}
