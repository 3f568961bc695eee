//! Command `sim calibrate`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use suimon_sim_kernel::Scenario;
use suimon_sim_storage::calibrate;

use crate::output::print;
use crate::scenario::AnyScenario;

/// Arguments of `calibrate`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CalibrateFlags {
    /// Scenario file (TOML).
    scenario: PathBuf,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl CalibrateFlags {
    pub(crate) fn run(self) -> Result<bool> {
        let AnyScenario::Storage(scenario) = AnyScenario::open(&self.scenario)? else {
            bail!("only scenarios of kind `storage` can be calibrated")
        };
        let calibrated = calibrate(&scenario, scenario.seed())?;
        if self.json {
            print(&format!("{:#}\n", serde_json::to_value(&calibrated)?))?;
        } else {
            print(&format!("{calibrated}\n"))?;
        }
        Ok(true)
    }
}
