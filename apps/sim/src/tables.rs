//! Command `sim tables`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use suimon_sim_kernel::Options;
use suimon_sim_storage::calibrate;

use crate::output::print;
use crate::scenario::AnyScenario;

/// Arguments of `tables`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TablesFlags {
    /// Scenario files (TOML).
    #[arg(required = true)]
    scenarios: Vec<PathBuf>,
}

impl TablesFlags {
    pub(crate) fn run(self) -> Result<bool> {
        let mut all_held = true;
        for path in &self.scenarios {
            let scenario_file = AnyScenario::open(path)?;
            // Fleet scenarios have no published figures.
            if matches!(scenario_file, AnyScenario::Fleet(_)) {
                continue;
            }
            let scenario = scenario_file.model();
            let seed = scenario.seed();
            let options = Options { seed, is_swarm: false, records_lines: false };
            let outcome = scenario.run(options)?;
            let agree = outcome.figures.iter().filter(|figure| figure.agrees).count();
            let (name, figure_count) = (scenario.name(), outcome.figures.len());
            let table = outcome.markdown();
            print(&format!(
                "### `{name}`, seed {seed}: {agree} of {figure_count} agree\n\n{table}\n"
            ))?;
            match &scenario_file {
                AnyScenario::Storage(storage) if storage.has_calibration() => {
                    print(&format!("{}.\n\n", calibrate(storage, seed)?))?;
                }
                _ => {}
            }
            all_held &= outcome.violation_count == 0;
        }
        Ok(all_held)
    }
}
