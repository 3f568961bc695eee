//! Command `sim run`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use suimon_sim_kernel::Options;

use crate::failure::{COMMIT, failure_report};
use crate::output::print;
use crate::scenario::AnyScenario;

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunFlags {
    /// Scenario file (TOML).
    scenario: PathBuf,
    /// Seed of the random numbers; the seed in the scenario if absent.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Make random changes and faults instead of the steps of the scenario, as `sim swarm` does.
    #[arg(long)]
    swarm: bool,
    /// File to write the trace to, one simulated event per line: time in ns, keyword, values.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl RunFlags {
    pub(crate) fn run(self) -> Result<bool> {
        let scenario_file = AnyScenario::open(&self.scenario)?;
        let scenario = scenario_file.model();
        let seed = self.seed.unwrap_or(scenario.seed());
        let keeps_lines = self.trace.is_some();
        let options = Options { seed, is_swarm: self.swarm, records_lines: keeps_lines };
        let outcome = scenario.run(options)?;
        if let Some(path) = &self.trace {
            fs::write(path, &outcome.lines).with_context(|| format!("{}", path.display()))?;
        }
        if self.json {
            let mut value = serde_json::to_value(&outcome)?;
            value["scenario"] = scenario.name().into();
            value["seed"] = seed.into();
            value["commit"] = COMMIT.into();
            print(&format!("{value:#}\n"))?;
        } else {
            print(&outcome.text())?;
        }
        if outcome.violation_count > 0 {
            eprint!("{}", failure_report(&self.scenario, seed, self.swarm, &outcome));
        }
        Ok(outcome.violation_count == 0)
    }
}
