//! Settings of plans of kind `vmq`: setup and sequence of loads.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use suimon_lab_run::LocalizedText;

use crate::bounds::check_bounds;

/// Table `[settings]` of plans of kind `vmq`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Number of guests, 1 to 32.
    pub(crate) guests: u8,
    /// Number of members of the team, 2 to 8.
    pub(crate) uplinks: u8,
    /// Number of unpinned workers, 1 to 64.
    #[serde(rename = "processors")]
    pub(crate) workers: u16,
    /// Number of workers that VMQ may use initially.
    #[serde(rename = "max_processors")]
    pub(crate) max_workers: u16,
    /// Team modes to measure.
    pub(crate) modes: Vec<String>,
    /// Team algorithms, each measured in each mode.
    pub(crate) algorithms: Vec<String>,
    /// Limit of a session's rate in bits per second; no limit if absent.
    pub(crate) session_bps: Option<u64>,
    /// Phases in chronological order.
    #[serde(rename = "phase")]
    pub(crate) phases: Vec<Phase>,
}

/// Phase of a repetition, with constant load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Phase {
    /// Length of the phase in seconds.
    pub(crate) seconds: u64,
    /// Number of TCP sessions of each guest. The sessions of the previous phase continue if their
    /// number is the same; otherwise new ones replace them.
    pub(crate) sessions: u32,
    /// Number of workers that VMQ may use, set before the load changes; unchanged if absent.
    #[serde(rename = "max_processors")]
    pub(crate) max_workers: Option<u16>,
}

/// Mode and algorithm of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination<'a> {
    pub(crate) mode: &'a str,
    pub(crate) algorithm: &'a str,
}

impl Combination<'_> {
    /// Returns the id of the case.
    pub(crate) fn id(self) -> String {
        format!("{}+{}", self.mode, self.algorithm)
    }
}

impl Phase {
    /// Returns a description of the change at the start of the phase.
    pub(crate) fn change_description(&self) -> LocalizedText {
        let (sessions, max_processors) = (self.sessions, self.max_workers);
        let (mut en, mut ja) = (plural(sessions, "session"), format!("{sessions} セッション"));
        if let Some(max_processors) = max_processors {
            en = format!("at most {}", plural(max_processors.into(), "worker"));
            ja = format!("ワーカー最大 {max_processors}");
        }
        LocalizedText::new(en, ja)
    }
}

impl Settings {
    /// Checks the settings. The daemon checks properties of teams.
    pub(crate) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("guests", self.guests.into(), 1, 32),
            ("uplinks", self.uplinks.into(), 2, 8),
            ("modes", self.modes.len() as u64, 1, 3),
            ("algorithms", self.algorithms.len() as u64, 1, 5),
            ("phase", self.phases.len() as u64, 1, 100),
        ])?;
        for phase in &self.phases {
            if !(2..=3600).contains(&phase.seconds) || phase.sessions > 1000 {
                bail!(
                    "phase: {} s with {} sessions is outside of 2 to 3600 s and 1000 sessions",
                    phase.seconds,
                    phase.sessions
                );
            }
        }
        Ok(())
    }

    /// Returns all combinations of modes and algorithms.
    pub(crate) fn combinations(&self) -> Vec<Combination<'_>> {
        let of_mode =
            |mode| self.algorithms.iter().map(move |algorithm| Combination { mode, algorithm });
        self.modes.iter().flat_map(|mode| of_mode(mode.as_str())).collect()
    }
}

fn plural(count: u32, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}
