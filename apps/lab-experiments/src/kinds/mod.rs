//! Kinds of experiments, one module each.

mod disk_io;
mod java;
mod offload;
mod oltp;
mod power_plan;
mod qos;
mod sriov_host_cpu;
mod streams;
mod tiles;
mod vmq;
mod web;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

use crate::experiment::Experiment;

type Made = Result<Box<dyn Experiment>>;

/// Name of a kind, and the function that creates its experiment from a plan's settings.
type Kind = (&'static str, fn(toml::Table) -> Made);

const KINDS: &[Kind] = &[
    ("disk-io", |settings| Ok(Box::new(disk_io::DiskIo::new(read(settings)?)?))),
    ("java", |settings| Ok(Box::new(java::Java::new(read(settings)?)?))),
    ("offload", |settings| Ok(Box::new(offload::OffloadFtp::new(read(settings)?)?))),
    ("oltp", |settings| Ok(Box::new(oltp::Oltp::new(read(settings)?)?))),
    ("power-plan", |settings| Ok(Box::new(power_plan::PowerPlan::new(read(settings)?)?))),
    ("qos-cluster", |settings| {
        Ok(Box::new(qos::Qos::new(read(settings)?, qos::Location::Cluster)?))
    }),
    ("qos-host", |settings| Ok(Box::new(qos::Qos::new(read(settings)?, qos::Location::Host)?))),
    ("sriov-host-cpu", |settings| {
        Ok(Box::new(sriov_host_cpu::SriovHostCpu::new(read(settings)?)?))
    }),
    ("streams", |settings| Ok(Box::new(streams::Streams::new(read(settings)?)?))),
    ("tiles", |settings| Ok(Box::new(tiles::Tiles::new(read(settings)?)?))),
    ("vmq", |settings| Ok(Box::new(vmq::Vmq::new(read(settings)?)?))),
    ("web", |settings| Ok(Box::new(web::Web::new(read(settings)?)?))),
];

/// Creates an experiment of a kind with these settings.
///
/// # Errors
/// The kind does not exist, a key is unknown, or a value is out of range.
pub fn make(kind: &str, settings: toml::Table) -> Made {
    let Some((_, make)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        let kinds: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        bail!("kind: `{kind}` is not one of {}", kinds.join(", "));
    };
    make(settings)
}

fn read<S: DeserializeOwned>(settings: toml::Table) -> Result<S> {
    settings.try_into().context("settings")
}
