//! Recordings of a daemon (`suimond --record`): the policies driven by them again, as they were and
//! with other settings.
//!
//! What reads the file and drives policies is `formats/recording`; here are the file, the report, and
//! what another setting would have done, which needs assumptions that are said with the answer.

mod cli;
mod disks;
mod read;
mod replay;
mod settings;
mod team;
mod vmq;
mod what_if;

pub(crate) use cli::{ReplayFlags, WhatIfFlags};

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
