//! Settings: what is set up, and what load comes when.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::kinds::bounds::check_bounds;
use crate::words::Words;

/// `[settings]` of plans of kind `vmq`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Guests, 1 to 32.
    pub(crate) guests: u8,
    /// Members of the team, 2 to 8.
    pub(crate) uplinks: u8,
    /// Processors of the switch, 1 to 64; they float.
    pub(crate) processors: u16,
    /// How many of them VMQ may use at first.
    pub(crate) max_processors: u16,
    /// Team modes.
    pub(crate) modes: Vec<String>,
    /// Team algorithms; each is run in each mode.
    pub(crate) algorithms: Vec<String>,
    /// What a session sends at most, in bits per second; without it as much as it can.
    pub(crate) session_bps: Option<u64>,
    /// One after another.
    #[serde(rename = "phase")]
    pub(crate) phases: Vec<Phase>,
}

/// A time in which the load stays.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Phase {
    /// How long.
    pub(crate) seconds: u64,
    /// TCP sessions of each guest. As many as in the phase before go on as they are.
    pub(crate) sessions: u32,
    /// Sets how many processors VMQ may use, before the load changes.
    pub(crate) max_processors: Option<u16>,
}

/// A mode with an algorithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination<'a> {
    pub(crate) mode: &'a str,
    pub(crate) algorithm: &'a str,
}

impl Combination<'_> {
    /// The case's id.
    pub(crate) fn id(self) -> String {
        format!("{}+{}", self.mode, self.algorithm)
    }
}

impl Phase {
    /// What changes when it begins.
    pub(crate) fn words(&self) -> Words {
        let (sessions, most) = (self.sessions, self.max_processors);
        let (mut en, mut ja) = (plural(sessions, "session"), format!("{sessions} セッション"));
        if let Some(most) = most {
            en = format!("at most {}", plural(most.into(), "processor"));
            ja = format!("プロセッサ最大 {most}");
        }
        Words::new(en, ja)
    }
}

impl Settings {
    /// Whether it is possible. What a team may be is the daemon's to say.
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
                bail!("phase: 2 to 3600 seconds and up to 1000 sessions are possible: {phase:?}");
            }
        }
        Ok(())
    }

    /// Every algorithm in every mode.
    pub(crate) fn combinations(&self) -> Vec<Combination<'_>> {
        let of_mode =
            |mode| self.algorithms.iter().map(move |algorithm| Combination { mode, algorithm });
        self.modes.iter().flat_map(|mode| of_mode(mode.as_str())).collect()
    }
}

fn plural(count: u32, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}
