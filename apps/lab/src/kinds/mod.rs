//! The kinds of experiments, one folder each.

mod bounds;
mod offload;
mod streams;
mod vmq;
mod web;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

use crate::experiment::Experiment;

/// An experiment of a kind, for settings.
///
/// # Errors
/// There is no such kind; a key that it does not know; a value that is not possible.
pub(crate) fn make(kind: &str, settings: toml::Table) -> Result<Box<dyn Experiment>> {
    Ok(match kind {
        "offload" => Box::new(offload::OffloadFtp::new(read(settings)?)?),
        "streams" => Box::new(streams::Streams::new(read(settings)?)?),
        "vmq" => Box::new(vmq::Vmq::new(read(settings)?)?),
        "web" => Box::new(web::Web::new(read(settings)?)?),
        _ => bail!("kind: `{kind}` is none of offload, streams, vmq, web"),
    })
}

fn read<S: DeserializeOwned>(settings: toml::Table) -> Result<S> {
    settings.try_into().context("settings")
}
