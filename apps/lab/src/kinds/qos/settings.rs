//! Settings: the store, the disks, and what limits come when.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::kinds::bounds::check_bounds;
use crate::plan::check_id;
use crate::words::Words;

/// What of a store's capability the daemon lets be promised, in percent.
const PROMISABLE_PERCENT: u64 = 90;

/// `[settings]` of plans of kinds `qos-host` and `qos-cluster`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// What the store's disk moves at most, in bytes per second: it is a slow disk made for
    /// that. If absent it is the work folder, which does what it can.
    pub(super) store_bytes_per_s: Option<u64>,
    /// Requests that each daemon gives it at a time at most, 1 to 1024.
    pub(super) store_depth_max: u64,
    /// Format of the disks, as a host file has it.
    pub(super) format: String,
    /// `fixed` or `dynamic`.
    pub(super) disk_kind: String,
    /// Size of each disk in MiB, 16 to 65 536.
    pub(super) disk_mib: u64,
    /// What a request writes, in KiB: a power of two from 8 to 1024.
    pub(super) block_kib: u64,
    /// Requests that each disk has under way, 1 to 256.
    pub(super) depth: u64,
    /// For how long it is measured what the store does, 2 to 600 s.
    pub(super) calibration_s: u64,
    /// How long each step is, 3 to 3600 s.
    pub(super) step_s: u64,
    /// What of that is declared as its capability, 50 to 100 %.
    pub(super) declared_percent: u64,
    /// What the document's store did, in requests of 8 KiB per second, or is taken to have
    /// done.
    pub(super) document_iops: u64,
    /// Disks with the same limits; of a cluster each is on a node of its own.
    #[serde(rename = "group")]
    pub(super) groups: Vec<Group>,
    /// One after another.
    #[serde(rename = "step")]
    pub(super) steps: Vec<Step>,
}

/// Disks with the same limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    /// As ids of measures have it.
    pub(super) name: String,
    pub(super) disks: Vec<String>,
}

/// A time in which limits stay.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// What changes.
    pub(super) change: Words,
    /// Of each disk of each group, as the document has them.
    pub(super) limits: Vec<Limits>,
    /// Whether these minimums are more than the daemon may promise, and it is to refuse them.
    #[serde(default)]
    pub(super) is_too_much: bool,
}

/// In requests of 8 KiB per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) min_iops: Option<u64>,
    pub(super) max_iops: Option<u64>,
}

impl Settings {
    /// Whether it is possible. What a disk may be is the daemon's to say.
    pub(super) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("store_bytes_per_s", self.store_bytes_per_s.unwrap_or(1 << 20), 1 << 20, 1 << 40),
            ("store_depth_max", self.store_depth_max, 1, 1024),
            ("disk_mib", self.disk_mib, 16, 1 << 16),
            ("block_kib", self.block_kib, 8, 1024),
            ("depth", self.depth, 1, 256),
            ("calibration_s", self.calibration_s, 2, 600),
            ("step_s", self.step_s, 3, 3600),
            ("declared_percent", self.declared_percent, 50, 100),
            ("document_iops", self.document_iops, 1, 1_000_000_000),
            ("group", self.groups.len() as u64, 1, 16),
            ("step", self.steps.len() as u64, 1, 100),
        ])?;
        ensure!(self.block_kib.is_power_of_two(), "block_kib: must be a power of two");
        for group in &self.groups {
            check_id("group: name", &group.name)?;
            check_bounds(&[("group: disks", group.disks.len() as u64, 1, 64)])?;
            group.disks.iter().try_for_each(|disk| check_id("group: disks", disk))?;
        }
        let mut names: Vec<&String> = self.groups.iter().flat_map(|group| &group.disks).collect();
        names.sort();
        let twin = names.windows(2).find(|pair| pair.first() == pair.last());
        ensure!(twin.is_none(), "group: disks: one is named twice: {twin:?}");
        self.steps.iter().try_for_each(|step| self.check_step(step))
    }

    fn check_step(&self, step: &Step) -> Result<()> {
        let name = &step.change.en;
        ensure!(
            step.limits.len() == self.groups.len(),
            "step `{name}`: `limits` needs one entry for each group"
        );
        for limits in &step.limits {
            for (key, value) in [("min_iops", limits.min_iops), ("max_iops", limits.max_iops)] {
                check_bounds(&[(key, value.unwrap_or(1), 1, 1_000_000_000)])?;
            }
            let most = limits.max_iops.unwrap_or(u64::MAX);
            ensure!(
                limits.min_iops.unwrap_or(0) <= most,
                "step `{name}`: min_iops is above max_iops"
            );
        }
        let minimums = self.groups.iter().zip(&step.limits);
        let promised: u64 = minimums
            .map(|(group, limits)| group.disks.len() as u64 * limits.min_iops.unwrap_or(0))
            .sum();
        let is_too_much = promised * 100 > self.document_iops * PROMISABLE_PERCENT;
        ensure!(
            !is_too_much || step.is_too_much,
            "step `{name}`: minimums of {promised} IOPS are above {PROMISABLE_PERCENT} % of \
             document_iops, and the daemon promises no more; say `is_too_much = true` if that is \
             what is to be seen"
        );
        ensure!(
            is_too_much || !step.is_too_much,
            "step `{name}`: is_too_much: minimums of {promised} IOPS can be promised"
        );
        Ok(())
    }

    /// All disks in order: their names, and the groups they are in.
    pub(super) fn disks(&self) -> Vec<(&str, usize)> {
        let mut disks = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            disks.extend(group.disks.iter().map(|disk| (disk.as_str(), at)));
        }
        disks
    }

    /// What one request counts as.
    pub(super) fn request_cost(&self) -> f64 {
        self.block_kib as f64 / 8.0
    }
}

impl Limits {
    /// The same on a store that does so many times as much.
    pub(super) fn scaled(self, scale: f64) -> Self {
        let scaled = |rate: u64| ((rate as f64 * scale).round() as u64).max(1);
        Self { min_iops: self.min_iops.map(scaled), max_iops: self.max_iops.map(scaled) }
    }
}
