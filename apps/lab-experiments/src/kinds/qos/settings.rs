//! Settings of plans of kinds `qos-host` and `qos-cluster`: store, disks, and sequence of limits.

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use suimon_lab_run::LocalizedText;
use suimon_lab_run::folder::check_id;

use crate::bounds::check_bounds;

/// Share of a store's capacity that the daemon accepts as reservations, in percent.
const PROMISABLE_PERCENT: u64 = 90;

/// Location of the disks: one host, or a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// All disks on one host.
    Host,
    /// One node per group of disks.
    Cluster,
}

impl Location {
    /// Returns the time in seconds within which a change must be in effect.
    pub(super) const fn settling_time_s(self) -> f64 {
        match self {
            Self::Host => 2.0,
            Self::Cluster => 5.0,
        }
    }
}

/// Table `[settings]` of plans of kinds `qos-host` and `qos-cluster`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Bandwidth of an artificially slow store in bytes per second; the work folder at its native
    /// speed if absent.
    pub(super) store_bytes_per_s: Option<u64>,
    /// Largest number of requests in flight per daemon, 1 to 1024.
    pub(super) store_depth_max: u64,
    /// Image format of the disks, as written in a host file.
    pub(super) format: String,
    /// Kind of the disks: `fixed` or `dynamic`.
    pub(super) disk_kind: String,
    /// Size of each disk in MiB, 16 to 65 536.
    pub(super) disk_mib: u64,
    /// Size of a write request in KiB: a power of two from 8 to 1024.
    pub(super) block_kib: u64,
    /// Queue depth of each disk, 1 to 256.
    pub(super) depth: u64,
    /// Measuring time of the store's capacity in seconds, 2 to 600.
    pub(super) calibration_s: u64,
    /// Length of each step in seconds, 3 to 3600.
    pub(super) step_s: u64,
    /// Part of the measured rate that is declared as the store's capacity, 50 to 100 %.
    #[serde(rename = "declared_percent")]
    pub(super) declared_capacity_percent: u64,
    /// Rate of the document's store, actual or assumed, in requests of 8 KiB per second.
    pub(super) document_iops: u64,
    /// Groups of disks with equal limits; in a cluster, each group is on a node of its own.
    #[serde(rename = "group")]
    pub(super) groups: Vec<Group>,
    /// Steps in chronological order.
    #[serde(rename = "step")]
    pub(super) steps: Vec<Step>,
}

/// Group of disks with equal limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    /// Name in ids of measures.
    pub(super) name: String,
    pub(super) disks: Vec<String>,
}

/// Step of the sequence, with constant limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// Description of the change at the start of the step.
    pub(super) change: LocalizedText,
    /// Limits of each disk by group, as in the document.
    pub(super) limits: Vec<Limits>,
    /// True if the minimums exceed the capacity and the daemon must reject them.
    #[serde(default)]
    #[serde(rename = "is_too_much")]
    pub(super) must_be_rejected: bool,
}

/// Limits in requests of 8 KiB per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) min_iops: Option<u64>,
    pub(super) max_iops: Option<u64>,
}

impl Settings {
    /// Checks the settings. The daemon checks properties of disks.
    pub(super) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("store_bytes_per_s", self.store_bytes_per_s.unwrap_or(1 << 20), 1 << 20, 1 << 40),
            ("store_depth_max", self.store_depth_max, 1, 1024),
            ("disk_mib", self.disk_mib, 16, 1 << 16),
            ("block_kib", self.block_kib, 8, 1024),
            ("depth", self.depth, 1, 256),
            ("calibration_s", self.calibration_s, 2, 600),
            ("step_s", self.step_s, 3, 3600),
            ("declared_percent", self.declared_capacity_percent, 50, 100),
            ("document_iops", self.document_iops, 1, 1_000_000_000),
            ("group", self.groups.len() as u64, 1, 16),
            ("step", self.steps.len() as u64, 1, 100),
        ])?;
        ensure!(self.block_kib.is_power_of_two(), "block_kib must be a power of two");
        for group in &self.groups {
            check_id("group: name", &group.name)?;
            check_bounds(&[("group: disks", group.disks.len() as u64, 1, 64)])?;
            group.disks.iter().try_for_each(|disk| check_id("group: disks", disk))?;
        }
        let mut names: Vec<&String> = self.groups.iter().flat_map(|group| &group.disks).collect();
        names.sort();
        let twin = names.windows(2).find(|pair| pair.first() == pair.last());
        if let Some([twin, ..]) = twin {
            bail!("group: disks: `{twin}` is listed twice; list each disk once");
        }
        self.steps.iter().try_for_each(|step| self.check_step(step))
    }

    fn check_step(&self, step: &Step) -> Result<()> {
        let name = &step.change.en;
        ensure!(
            step.limits.len() == self.groups.len(),
            "step `{name}`: `limits` needs one entry per group"
        );
        for limits in &step.limits {
            for (key, value) in [("min_iops", limits.min_iops), ("max_iops", limits.max_iops)] {
                check_bounds(&[(key, value.unwrap_or(1), 1, 1_000_000_000)])?;
            }
            let max_iops = limits.max_iops.unwrap_or(u64::MAX);
            ensure!(
                limits.min_iops.unwrap_or(0) <= max_iops,
                "step `{name}`: min_iops exceeds max_iops"
            );
        }
        let minimums = self.groups.iter().zip(&step.limits);
        let sum_of_minimums: u64 = minimums
            .map(|(group, limits)| group.disks.len() as u64 * limits.min_iops.unwrap_or(0))
            .sum();
        let is_too_much = sum_of_minimums * 100 > self.document_iops * PROMISABLE_PERCENT;
        ensure!(
            !is_too_much || step.must_be_rejected,
            "step `{name}`: the sum of the minimums, {sum_of_minimums} IOPS, exceeds \
             {PROMISABLE_PERCENT} % of document_iops, and the daemon would reject it; set \
             `is_too_much = true` if that is intended"
        );
        ensure!(
            is_too_much || !step.must_be_rejected,
            "step `{name}`: is_too_much is set, but the sum of the minimums, {sum_of_minimums} \
             IOPS, is permitted"
        );
        Ok(())
    }

    /// Returns the names of all disks in order, each with the index of its group.
    pub(super) fn disks(&self) -> Vec<(&str, usize)> {
        let mut disks = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            disks.extend(group.disks.iter().map(|disk| (disk.as_str(), index)));
        }
        disks
    }

    /// Returns the number of normalised operations that one request counts as.
    pub(super) fn request_cost(&self) -> f64 {
        self.block_kib as f64 / 8.0
    }
}

impl Limits {
    /// Returns the limits multiplied by `scale`.
    pub(super) fn scaled(self, scale: f64) -> Self {
        let scaled = |rate: u64| ((rate as f64 * scale).round() as u64).max(1);
        Self { min_iops: self.min_iops.map(scaled), max_iops: self.max_iops.map(scaled) }
    }
}
