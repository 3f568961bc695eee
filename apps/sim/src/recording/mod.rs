//! Recordings of a daemon (`suimond --record`): replay of policies with the recorded and with other
//! settings.
//!
//! `formats/recording` parses the file and calls the policies. This module contains file access,
//! reports, and what-if calculations, whose assumptions are stated in the results.

mod calculation;
mod cli;
mod disks;
mod names;
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
