//! The kinds of experiments, one folder each.

mod bounds;
mod java;
mod oltp;
mod tiles;
mod vmq;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

use crate::experiment::Experiment;

/// An experiment of a kind, for settings.
///
/// # Errors
/// There is no such kind; a key that it does not know; a value that is not possible.
pub(crate) fn make(kind: &str, settings: toml::Table) -> Result<Box<dyn Experiment>> {
    Ok(match kind {
        "java" => Box::new(java::Java::new(read(settings)?)?),
        "oltp" => Box::new(oltp::Oltp::new(read(settings)?)?),
        "tiles" => Box::new(tiles::Tiles::new(read(settings)?)?),
        "vmq" => Box::new(vmq::Vmq::new(read(settings)?)?),
        _ => bail!("kind: `{kind}` is none of java, oltp, tiles, vmq"),
    })
}

fn read<S: DeserializeOwned>(settings: toml::Table) -> Result<S> {
    settings.try_into().context("settings")
}
