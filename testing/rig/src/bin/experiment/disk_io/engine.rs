//! Disks without a daemon: a processor in this process serves a client beside it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use suimon_disk_tests::{Asks, ClientSpec, StoreFolder, new_disk};
use suimon_rig::{LoopDevice, fill_disk, serve_client};
use suimon_storage::images::{DiskFormat, DiskKind, DiskPlan};

use super::payload::Payload;
use super::plan::{Pattern, Plan, Target};
use super::scene::{SERVER_CPU, WARM_UP};

/// A folder of its own with a disk of each format, beside those of the daemon, who shares
/// none of his.
pub(crate) struct EngineDisks {
    store: StoreFolder,
    folder: PathBuf,
    loop_device: Option<LoopDevice>,
    disk_bytes: u64,
}

impl EngineDisks {
    /// Makes them and writes all of them once. `folder` is empty.
    pub(crate) fn make(
        plan: &Plan,
        folder: &Path,
        loop_device: Option<LoopDevice>,
    ) -> Result<Self> {
        let disk_bytes = plan.disk_mib << 20;
        let (store, folder) = (StoreFolder::open(folder)?, folder.to_owned());
        let disks = Self { store, folder, loop_device, disk_bytes };
        for target in &plan.targets {
            if *target != Target::PassThrough {
                disks.store.make(&disk(*target, Some(disk_bytes)))?;
            }
            disks.with(*target, |store, plan| {
                fill_disk(SERVER_CPU, store.disk(plan)?, disk_bytes)
            })?;
        }
        Ok(disks)
    }

    /// What a disk holds.
    pub(crate) fn payload(&self, target: Target) -> Result<Payload> {
        match (disk(target, None).file, &self.loop_device) {
            (Some(file), _) => Payload::find(&self.folder.join(file.to_string()), self.disk_bytes),
            (None, Some(device)) => Ok(Payload::whole(Path::new(device.path()), self.disk_bytes)),
            (None, None) => bail!("there is no loop device"),
        }
    }

    /// Requests per second.
    pub(crate) fn measure(
        &self,
        target: Target,
        pattern: &Pattern,
        depth: u64,
        window: Duration,
    ) -> Result<f64> {
        let client = ClientSpec {
            asks: Asks::Mixed {
                read_percent: u8::try_from(pattern.read_percent)?,
                is_random: pattern.random,
            },
            depth: u32::try_from(depth)?,
            bytes: u32::try_from(pattern.block_kib << 10)?,
            disk_bytes: self.disk_bytes,
        };
        self.with(target, |store, plan| {
            serve_client(SERVER_CPU, store.disk(plan)?, None, client, |answers| {
                thread::sleep(WARM_UP);
                let (done, began) = (answers.done(), Instant::now());
                thread::sleep(window);
                Ok((answers.done() - done) as f64 / began.elapsed().as_secs_f64())
            })
        })
    }

    /// The pass-through disk is all of a store of its own.
    fn with<T>(
        &self,
        target: Target,
        run: impl FnOnce(&StoreFolder, &DiskPlan) -> Result<T>,
    ) -> Result<T> {
        let plan = disk(target, None);
        if target != Target::PassThrough {
            return run(&self.store, &plan);
        }
        let device = self.loop_device.as_ref().context("there is no loop device")?;
        run(&StoreFolder::open(Path::new(device.path()))?, &plan)
    }
}

fn disk(target: Target, size: Option<u64>) -> DiskPlan {
    let (format, kind) = match target {
        Target::Raw => (DiskFormat::Raw, DiskKind::Fixed),
        Target::VhdFixed => (DiskFormat::Vhd, DiskKind::Fixed),
        Target::VhdDynamic => (DiskFormat::Vhd, DiskKind::Dynamic),
        Target::VhdxFixed => (DiskFormat::Vhdx, DiskKind::Fixed),
        Target::VhdxDynamic => (DiskFormat::Vhdx, DiskKind::Dynamic),
        Target::PassThrough => {
            let plan = new_disk(DiskFormat::PassThrough, DiskKind::Fixed, None);
            return DiskPlan { file: None, ..plan };
        }
    };
    new_disk(format, kind, size)
}
