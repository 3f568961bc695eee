//! Commands `sim replay` and `sim what-if`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::output::print;
use crate::recording::read::Recording;
use crate::recording::replay::replay;
use crate::recording::settings::Setting;
use crate::recording::what_if::what_if;

/// Arguments of `replay`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Recording written by `suimond --record`.
    recording: PathBuf,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// Arguments of `what-if`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhatIfFlags {
    /// Recording written by `suimond --record`.
    recording: PathBuf,
    /// Changed setting; may be given several times. Keys: `team.NAME.algorithm`, `.mode` and
    /// `.min_links`; `vmq.NAME.max_workers`, `.mode`, `.enabled`, `.base_worker`,
    /// `.max_worker_number`, `.parking` and `.high_percent`; `disk.NAME.min_iops`, `.max_iops` and
    /// `.weight`. The value `none` removes a minimum or maximum. Without NAME
    /// (`vmq.max_workers=2`), the setting applies to all objects.
    #[arg(long = "set", value_name = "KEY=VALUE", required = true)]
    settings: Vec<Setting>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl ReplayFlags {
    pub(crate) fn run(self) -> Result<bool> {
        let replay = replay(Recording::open(&self.recording)?)?;
        if self.json {
            print(&format!("{:#}\n", serde_json::to_value(&replay)?))?;
        } else {
            print(&replay.text())?;
        }
        if !replay.matches_recording() {
            eprint!("{}", replay.differences());
        }
        Ok(replay.matches_recording())
    }
}

impl WhatIfFlags {
    pub(crate) fn run(self) -> Result<bool> {
        let answer = what_if(Recording::open(&self.recording)?, &self.settings)?;
        if self.json {
            print(&format!("{:#}\n", serde_json::to_value(&answer)?))?;
        } else {
            print(&answer.text())?;
        }
        Ok(true)
    }
}
