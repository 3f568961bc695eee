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
    /// Changed setting: `team.NAME.algorithm=dynamic` (also `mode`, `min_links`),
    /// `vmq.NAME.max_processors=2` (also `mode`, `enabled`, `base_processor`,
    /// `max_processor_number`, `parking`, `high_percent`), `disk.NAME.min_iops=500` (also
    /// `max_iops`, `weight`, and `none`). Applies to all objects without NAME. Recordings have former
    /// names of keys: `max_processors` is `max_workers` of the host file, `base_processor` is
    /// `base_worker`, `max_processor_number` is `max_worker_number`.
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
        if !replay.is_same() {
            eprint!("{}", replay.differences());
        }
        Ok(replay.is_same())
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
