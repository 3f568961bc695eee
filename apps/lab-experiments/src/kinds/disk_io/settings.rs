//! Settings of plans of kind `disk-io`: disks, access methods and loads.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;
use suimon_lab_run::LocalizedText;
use suimon_lab_run::folder::check_id;
use suimon_rig::{DiskFormat, DiskKind};

use crate::bounds::check_bounds;

/// Table `[settings]` of plans of kind `disk-io`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Size of each target in MiB, 16 to 65 536.
    pub(super) disk_mib: u64,
    /// Access methods of Suimon's disks. Each target is measured with each.
    #[serde(rename = "ways")]
    pub(super) access_methods: Vec<AccessMethod>,
    /// Disks of Suimon to measure.
    pub(super) targets: Vec<Target>,
    /// Queue depths, each 1 to 256.
    pub(super) depths: Vec<u64>,
    /// Measuring time in ms, 100 to 60 000, after a warm-up of 100 ms.
    pub(super) window_ms: u64,
    #[serde(rename = "pattern")]
    pub(super) patterns: Vec<Pattern>,
}

/// Access method of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AccessMethod {
    /// Client in the worker's own process, without ring or socket.
    Engine,
    /// vhost-user-blk, with a front-end that drives the ring like a guest's driver, and polls.
    VhostUser,
    /// vhost-user-blk, with a front-end that sleeps until it is interrupted.
    VhostUserWaiting,
    /// NBD client of fio over a Unix socket.
    Nbd,
    /// vhost-user-blk, with fio in a VM. Without hardware virtualization this mainly measures the
    /// emulation of the CPU.
    Vm,
}

/// Kind of disk to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Target {
    Raw,
    VhdFixed,
    VhdDynamic,
    VhdxFixed,
    VhdxDynamic,
    /// Whole loop device on a file in the same folder.
    PassThrough,
}

/// Access pattern and queue depth of a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pattern {
    /// Name in ids of cases.
    pub(super) id: String,
    pub(super) name: LocalizedText,
    /// Size of a request in KiB: a power of two from 4 to 1024.
    pub(super) block_kib: u64,
    /// Percentage of requests that are reads.
    pub(super) read_percent: u8,
    #[serde(rename = "random")]
    pub(super) is_random: bool,
}

/// Disk, access method and load of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combination<'a> {
    pub(super) target: Target,
    pub(super) access_method: AccessMethod,
    pub(super) pattern: &'a Pattern,
    pub(super) depth: u64,
}

impl Settings {
    /// Returns the measuring time of a measurement.
    pub(super) const fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    /// Checks ranges and combinations of the settings.
    pub(super) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("disk_mib", self.disk_mib, 16, 1 << 16),
            ("ways", self.access_methods.len() as u64, 1, 5),
            ("targets", self.targets.len() as u64, 1, 6),
            ("depths", self.depths.len() as u64, 1, 16),
            ("window_ms", self.window_ms, 100, 60_000),
            ("pattern", self.patterns.len() as u64, 1, 16),
        ])?;
        for depth in &self.depths {
            check_bounds(&[("depths", *depth, 1, 256)])?;
        }
        for pattern in &self.patterns {
            check_id("pattern: id", &pattern.id)?;
            check_bounds(&[
                ("block_kib", pattern.block_kib, 4, 1024),
                ("read_percent", pattern.read_percent.into(), 0, 100),
            ])?;
            ensure!(pattern.block_kib.is_power_of_two(), "block_kib must be a power of two");
        }
        ensure!(!has_twins(&self.access_methods), "ways: an entry is listed twice");
        ensure!(!has_twins(&self.targets), "targets: an entry is listed twice");
        ensure!(!has_twins(&self.depths), "depths: an entry is listed twice");
        let ids: Vec<&str> = self.patterns.iter().map(|pattern| pattern.id.as_str()).collect();
        ensure!(!has_twins(&ids), "pattern: an id is listed twice");
        Ok(())
    }

    /// Returns all combinations of disks, access methods and loads.
    pub(super) fn combinations(&self) -> Vec<Combination<'_>> {
        let mut subjects = Vec::new();
        for pattern in &self.patterns {
            for &depth in &self.depths {
                for &method in &self.access_methods {
                    let subject_of = |target: &Target| Combination {
                        target: *target,
                        access_method: method,
                        pattern,
                        depth,
                    };
                    subjects.extend(self.targets.iter().map(subject_of));
                }
            }
        }
        subjects
    }
}

fn has_twins<T: PartialEq>(list: &[T]) -> bool {
    list.iter()
        .enumerate()
        .any(|(index, item)| list.iter().skip(index + 1).any(|other| item == other))
}

impl Combination<'_> {
    /// Returns the id of the case.
    pub(super) fn id(self) -> String {
        let (pattern, method, target) =
            (&self.pattern.id, self.access_method.id(), self.target.name());
        format!("{pattern}+{method}+{target}.{}", self.depth)
    }

    pub(super) fn description(self) -> LocalizedText {
        let (pattern, method, target) =
            (&self.pattern.name, self.access_method.description(), self.target.name());
        LocalizedText::new(
            format!("{}, {}: {target}, {}", pattern.en, method.en, self.depth),
            format!("{}・{}: {target}、{}", pattern.ja, method.ja, self.depth),
        )
    }
}

impl AccessMethod {
    const fn id(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::VhostUser => "vhost-user",
            Self::VhostUserWaiting => "vhost-user-waiting",
            Self::Nbd => "nbd",
            Self::Vm => "vm",
        }
    }

    pub(super) fn description(self) -> LocalizedText {
        match self {
            Self::Engine => LocalizedText::new("engine alone", "エンジンのみ"),
            Self::VhostUser => LocalizedText::untranslated("vhost-user"),
            Self::VhostUserWaiting => {
                LocalizedText::new("vhost-user (waiting)", "vhost-user (待機)")
            }
            Self::Nbd => LocalizedText::untranslated("NBD"),
            Self::Vm => LocalizedText::new("vhost-user in a VM", "VM 内の vhost-user"),
        }
    }

    /// Returns true if a daemon serves the disk.
    pub(super) fn has_daemon(self) -> bool {
        self != Self::Engine
    }

    /// Returns true if the client keeps its CPU busy even while it waits for the disk.
    pub(super) fn occupies_cpu(self) -> bool {
        self == Self::VhostUser
    }

    /// Returns true if the disk is a vhost-user device.
    pub(super) fn is_vhost_user(self) -> bool {
        matches!(self, Self::VhostUser | Self::VhostUserWaiting | Self::Vm)
    }
}

impl Target {
    /// Returns the name of the target, also used as disk name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::VhdFixed => "vhd-fixed",
            Self::VhdDynamic => "vhd-dynamic",
            Self::VhdxFixed => "vhdx-fixed",
            Self::VhdxDynamic => "vhdx-dynamic",
            Self::PassThrough => "pass-through",
        }
    }

    /// Returns image format and kind of the disk.
    pub(super) const fn format_and_kind(self) -> (DiskFormat, DiskKind) {
        match self {
            Self::Raw => (DiskFormat::Raw, DiskKind::Fixed),
            Self::VhdFixed => (DiskFormat::Vhd, DiskKind::Fixed),
            Self::VhdDynamic => (DiskFormat::Vhd, DiskKind::Dynamic),
            Self::VhdxFixed => (DiskFormat::Vhdx, DiskKind::Fixed),
            Self::VhdxDynamic => (DiskFormat::Vhdx, DiskKind::Dynamic),
            Self::PassThrough => (DiskFormat::PassThrough, DiskKind::Fixed),
        }
    }

    /// Returns format and kind as written in a host file.
    pub(super) const fn host_file_values(self) -> (&'static str, &'static str) {
        match self {
            Self::Raw => ("raw", "fixed"),
            Self::VhdFixed => ("vhd", "fixed"),
            Self::VhdDynamic => ("vhd", "dynamic"),
            Self::VhdxFixed => ("vhdx", "fixed"),
            Self::VhdxDynamic => ("vhdx", "dynamic"),
            Self::PassThrough => ("pass-through", "fixed"),
        }
    }
}

impl Pattern {
    /// Returns the load as options of fio.
    pub(super) fn fio_options(&self) -> String {
        let kind = match (self.is_random, self.read_percent) {
            (false, 0) => "write",
            (false, 100) => "read",
            (false, _) => "rw",
            (true, 0) => "randwrite",
            (true, 100) => "randread",
            (true, _) => "randrw",
        };
        let mix = match self.read_percent {
            0 | 100 => String::new(),
            percent => format!(" --rwmixread={percent}"),
        };
        // Requests may access the same location repeatedly and contain zeros, like those of the
        // other clients.
        let alike = "--norandommap --randrepeat=0 --zero_buffers";
        format!("--rw={kind} --bs={}k{mix} {alike}", self.block_kib)
    }
}
