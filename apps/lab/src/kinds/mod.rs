//! The kinds of experiments, one folder each.

mod bounds;
mod disk_io;
mod power_plan;
mod qos;
mod sriov_host_cpu;
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
        "disk-io" => Box::new(disk_io::DiskIo::new(read(settings)?)?),
        "power-plan" => Box::new(power_plan::PowerPlan::new(read(settings)?)?),
        "qos-cluster" => Box::new(qos::Qos::new(read(settings)?, qos::Place::Cluster)?),
        "qos-host" => Box::new(qos::Qos::new(read(settings)?, qos::Place::Host)?),
        "sriov-host-cpu" => Box::new(sriov_host_cpu::SriovHostCpu::new(read(settings)?)?),
        "vmq" => Box::new(vmq::Vmq::new(read(settings)?)?),
        _ => bail!(
            "kind: `{kind}` is none of disk-io, power-plan, qos-cluster, qos-host, sriov-host-cpu, vmq"
        ),
    })
}

fn read<S: DeserializeOwned>(settings: toml::Table) -> Result<S> {
    settings.try_into().context("settings")
}
