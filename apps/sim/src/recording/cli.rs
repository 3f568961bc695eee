//! `sim replay` and `sim what-if`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::cli::print;
use crate::recording::read::Recording;
use crate::recording::replay::replay;
use crate::recording::settings::Setting;
use crate::recording::what_if::what_if;

/// Drives policies as they were driven.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayFlags {
    /// What `suimond --record` wrote.
    recording: PathBuf,
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// Drives policies by what they were told, with other settings.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhatIfFlags {
    /// What `suimond --record` wrote.
    recording: PathBuf,
    /// Another setting: `team.NAME.algorithm=dynamic` (also `mode`, `min_links`),
    /// `vmq.NAME.max_processors=2` (also `mode`, `enabled`, `base_processor`, `max_processor_number`,
    /// `parking`, `high_percent`), `disk.NAME.min_iops=500` (also `max_iops`, `weight`, and `none`). Without a NAME it is for all.
    #[arg(long = "set", value_name = "KEY=VALUE", required = true)]
    settings: Vec<Setting>,
    /// JSON instead of text.
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
