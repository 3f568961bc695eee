//! Plans of kind `disk-io`.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::bounds::{check_bounds, check_folder, check_name};

/// A plan, as its file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// What it is called; the record's file too.
    pub(crate) name: String,
    /// The folder in which files are made, and removed.
    pub(crate) folder: String,
    /// Size of each target in MiB, 16 to 65 536.
    pub(crate) disk_mib: u64,
    /// How Suimon's disks are reached; each target is measured in each way.
    pub(crate) ways: Vec<Way>,
    /// Suimon's disks.
    pub(crate) targets: Vec<Target>,
    /// Requests under way at a time, each 1 to 256.
    pub(crate) depths: Vec<u64>,
    /// What each measurement takes, 100 to 600 000 ms; 100 ms of warming up come before.
    pub(crate) window_ms: u64,
    /// How often all are repeated, 1 to 100.
    pub(crate) rounds: usize,
    #[serde(rename = "pattern")]
    pub(crate) patterns: Vec<Pattern>,
}

/// How a disk is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// By a client in the processor's own process, without ring or socket.
    Engine,
    /// Over vhost-user-blk, by a front-end that drives the ring as a guest's driver does,
    /// and polls.
    VhostUser,
    /// The same, by a front-end that sleeps until it is interrupted.
    VhostUserWaiting,
    /// By fio's own NBD client over a Unix socket.
    Nbd,
    /// Over vhost-user-blk, by fio in a VM of QEMU. Without hardware virtualization that
    /// measures how fast the guest's instructions are translated.
    Vm,
}

/// A disk of Suimon's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Target {
    Raw,
    VhdFixed,
    VhdDynamic,
    VhdxFixed,
    VhdxDynamic,
    /// All of a loop device, which is on a file in the same folder.
    PassThrough,
}

/// A load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pattern {
    pub(crate) name: String,
    /// What a request moves, in KiB: a power of two from 4 to 1024.
    pub(crate) block_kib: u64,
    /// How many of a hundred requests read.
    pub(crate) read_percent: u64,
    pub(crate) random: bool,
    /// What the published experiment saw.
    pub(crate) published: Option<Published>,
}

/// What VMs of the published experiment did of native.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// From so many outstanding on as much as native.
    pub(crate) native_from_depth: u64,
    /// Below that a pass-through disk did at least so many percent, 1 to 100.
    pub(crate) pass_through_percent: u64,
    /// And a file VHD.
    pub(crate) file_percent: u64,
}

impl Published {
    /// Least percent of native at a depth.
    pub(crate) fn least_percent(&self, target: Target, depth: u64) -> u64 {
        match target {
            _ if depth >= self.native_from_depth => 100,
            Target::PassThrough => self.pass_through_percent,
            _ => self.file_percent,
        }
    }
}

impl Plan {
    /// Whether it is possible.
    pub(crate) fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_folder(&self.folder)?;
        check_bounds(&[
            ("disk_mib", self.disk_mib, 16, 1 << 16),
            ("ways", self.ways.len() as u64, 1, 5),
            ("targets", self.targets.len() as u64, 1, 6),
            ("depths", self.depths.len() as u64, 1, 16),
            ("window_ms", self.window_ms, 100, 600_000),
            ("rounds", self.rounds as u64, 1, 100),
            ("pattern", self.patterns.len() as u64, 1, 16),
        ])?;
        for depth in &self.depths {
            check_bounds(&[("depths", *depth, 1, 256)])?;
        }
        for pattern in &self.patterns {
            check_bounds(&[
                ("block_kib", pattern.block_kib, 4, 1024),
                ("read_percent", pattern.read_percent, 0, 100),
            ])?;
            ensure!(pattern.block_kib.is_power_of_two(), "block_kib: must be a power of two");
            if let Some(published) = &pattern.published {
                check_bounds(&[
                    ("native_from_depth", published.native_from_depth, 1, 256),
                    ("pass_through_percent", published.pass_through_percent, 1, 100),
                    ("file_percent", published.file_percent, 1, 100),
                ])?;
            }
        }
        ensure!(!has_twins(&self.ways), "ways: one is named twice");
        ensure!(!has_twins(&self.targets), "targets: one is named twice");
        ensure!(!has_twins(&self.depths), "depths: one is named twice");
        Ok(())
    }

    /// All disks in all ways.
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let of_way = |way: &Way| {
            let way = *way;
            self.targets.iter().map(move |target| Subject { target: *target, way })
        };
        self.ways.iter().flat_map(of_way).collect()
    }

    /// All that they are compared with.
    pub(crate) fn references(&self) -> Vec<Reference> {
        let all = [Reference::File, Reference::LoopDevice];
        let has = |reference: &Reference| {
            self.targets.iter().any(|target| target.reference() == *reference)
        };
        all.into_iter().filter(has).collect()
    }
}

fn has_twins<T: PartialEq>(list: &[T]) -> bool {
    list.iter().enumerate().any(|(at, one)| list.iter().skip(at + 1).any(|other| one == other))
}

/// A disk, reached in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) target: Target,
    pub(crate) way: Way,
}

/// What disks are compared with: fio's io_uring engine past the page cache, on the blocks
/// that the disk itself has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// In the disk's file.
    File,
    /// On the loop device that is the disk.
    LoopDevice,
}

impl Subject {
    pub(crate) fn text(self) -> String {
        match self.way {
            Way::Engine => format!("{}, engine alone", self.target.name()),
            way => format!("{} over {}", self.target.name(), way.name()),
        }
    }
}

impl Reference {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::File => "native file",
            Self::LoopDevice => "native loop device",
        }
    }
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine alone",
            Self::VhostUser => "vhost-user",
            Self::VhostUserWaiting => "vhost-user, waiting",
            Self::Nbd => "NBD",
            Self::Vm => "vhost-user in a VM",
        }
    }

    /// Whether a suimond serves the disk.
    pub(crate) fn has_daemon(self) -> bool {
        self != Self::Engine
    }

    /// Whether the disk is a vhost-user device.
    pub(crate) fn is_vhost_user(self) -> bool {
        matches!(self, Self::VhostUser | Self::VhostUserWaiting | Self::Vm)
    }
}

impl Target {
    /// What it is called, as a disk too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::VhdFixed => "vhd-fixed",
            Self::VhdDynamic => "vhd-dynamic",
            Self::VhdxFixed => "vhdx-fixed",
            Self::VhdxDynamic => "vhdx-dynamic",
            Self::PassThrough => "pass-through",
        }
    }

    pub(crate) const fn reference(self) -> Reference {
        match self {
            Self::PassThrough => Reference::LoopDevice,
            _ => Reference::File,
        }
    }

    /// Its format and kind in a host file.
    pub(crate) fn form(self) -> (&'static str, &'static str) {
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
    /// fio's words for it.
    pub(crate) fn words(&self) -> String {
        let kind = match (self.random, self.read_percent) {
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
        // Requests may hit the same place twice, and carry zeros, as those of our own
        // clients.
        let alike = "--norandommap --randrepeat=0 --zero_buffers";
        format!("--rw={kind} --bs={}k{mix} {alike}", self.block_kib)
    }
}
