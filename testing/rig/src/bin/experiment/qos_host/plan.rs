//! Plans of kind `qos-host`.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::bounds::{check_bounds, check_folder, check_name};

/// What of a store's capability the daemon lets be promised, in percent.
const PROMISABLE_PERCENT: u64 = 90;

/// A plan, as its file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// What it is called; the record's file too.
    pub(crate) name: String,
    /// The folder in which the store is made, and removed.
    pub(crate) folder: String,
    /// What the store's disk moves at most, in bytes per second: it is a slow disk made for
    /// that. If absent it is the folder, which does what it can.
    pub(crate) store_bytes_per_s: Option<u64>,
    /// Requests that it gets at a time at most, 1 to 1024.
    pub(crate) store_depth_max: u64,
    /// Format of the disks, as a host file has it.
    pub(crate) format: String,
    /// `fixed` or `dynamic`.
    pub(crate) disk_kind: String,
    /// Size of each disk in MiB, 16 to 65 536.
    pub(crate) disk_mib: u64,
    /// What a request writes, in KiB: a power of two from 8 to 1024.
    pub(crate) block_kib: u64,
    /// Requests that each disk has under way, 1 to 256.
    pub(crate) depth: u64,
    /// For how long it is measured what the store does, 2 to 600 s.
    pub(crate) calibration_s: u64,
    /// What the document's store did, in requests of 8 KiB per second, or is taken to have
    /// done.
    pub(crate) document_iops: u64,
    /// Disks with the same limits.
    #[serde(rename = "group")]
    pub(crate) groups: Vec<Group>,
    /// One after another.
    #[serde(rename = "step")]
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) disks: u64,
}

/// A time in which limits stay.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) seconds: u64,
    /// Of each disk of each group, as the document has them.
    pub(crate) limits: Vec<Limits>,
    /// What the document says of each group.
    pub(crate) published: Vec<String>,
}

/// In requests of 8 KiB per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) min_iops: Option<u64>,
    pub(crate) max_iops: Option<u64>,
}

impl Plan {
    /// Whether it is possible. What a disk may be is the daemon's to say.
    pub(crate) fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_folder(&self.folder)?;
        check_bounds(&[
            ("store_bytes_per_s", self.store_bytes_per_s.unwrap_or(1 << 20), 1 << 20, 1 << 40),
            ("store_depth_max", self.store_depth_max, 1, 1024),
            ("disk_mib", self.disk_mib, 16, 1 << 16),
            ("block_kib", self.block_kib, 8, 1024),
            ("depth", self.depth, 1, 256),
            ("calibration_s", self.calibration_s, 2, 600),
            ("document_iops", self.document_iops, 1, 1_000_000_000),
            ("group", self.groups.len() as u64, 1, 16),
            ("step", self.steps.len() as u64, 1, 100),
        ])?;
        ensure!(self.block_kib.is_power_of_two(), "block_kib: must be a power of two");
        for group in &self.groups {
            check_bounds(&[("group: disks", group.disks, 1, 64)])?;
        }
        self.steps.iter().try_for_each(|step| self.check_step(step))
    }

    fn check_step(&self, step: &Step) -> Result<()> {
        let name = &step.name;
        check_bounds(&[("step: seconds", step.seconds, 3, 3600)])?;
        let groups = self.groups.len();
        ensure!(
            step.limits.len() == groups && step.published.len() == groups,
            "step `{name}`: `limits` and `published` need one entry for each group"
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
        let promised: u64 =
            minimums.map(|(group, limits)| group.disks * limits.min_iops.unwrap_or(0)).sum();
        ensure!(
            promised * 100 <= self.document_iops * PROMISABLE_PERCENT,
            "step `{name}`: minimums of {promised} IOPS are above {PROMISABLE_PERCENT} % of \
             document_iops, and the daemon promises no more"
        );
        Ok(())
    }

    /// All disks in order: their names, and the groups they are in.
    pub(crate) fn disks(&self) -> Vec<(String, usize)> {
        let groups = self.groups.iter().enumerate();
        let of_group = groups.flat_map(|(at, group)| (0..group.disks).map(move |_| at));
        of_group.zip(1..).map(|(group, number)| (format!("vm{number:02}"), group)).collect()
    }

    /// What one request counts as.
    pub(crate) fn request_cost(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "at most 128")]
        let cost = (self.block_kib / 8) as f64;
        cost
    }
}

impl Limits {
    /// The same on a store that does so many times as much.
    pub(crate) fn scaled(self, scale: f64) -> Self {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate of at most 1e9, and a positive scale"
        )]
        let scaled = |rate: u64| ((rate as f64 * scale).round() as u64).max(1);
        Self { min_iops: self.min_iops.map(scaled), max_iops: self.max_iops.map(scaled) }
    }

    /// For a table.
    pub(crate) fn text(self) -> String {
        match (self.min_iops, self.max_iops) {
            (None, None) => "–".to_owned(),
            (Some(min), None) => format!("minimum {min}"),
            (None, Some(max)) => format!("maximum {max}"),
            (Some(min), Some(max)) => format!("minimum {min}, maximum {max}"),
        }
    }
}
