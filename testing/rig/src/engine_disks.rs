//! Disks of several formats that a worker of this process serves to a client in this process.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use suimon_disk_tests::{ClientSpec, RequestPattern, StoreFolder, new_disk};
use suimon_image_files::{DiskFormat, DiskKind, DiskPlan};

use crate::loop_device::LoopDevice;
use crate::served_client::{fill_disk, serve_client};

/// Folder with a disk of each form. Its creator removes it with the files.
pub struct EngineDisks {
    store: StoreFolder,
    folder: PathBuf,
    loop_device: Option<LoopDevice>,
    disk_bytes: u64,
    cpu: u16,
}

/// Load of a client.
#[derive(Clone, Copy, Debug)]
pub struct EngineAsks {
    /// Percentage of reads; other requests are writes.
    pub read_percent: u8,
    /// Random offsets if true; otherwise ascending ones.
    pub is_random: bool,
    /// Requests in flight.
    pub depth: u32,
    /// Size of a request in bytes.
    pub bytes: u32,
}

impl EngineDisks {
    /// Creates the disks and writes each completely once; workers run on the CPU `cpu`. `folder`
    /// must be empty, and a loop device is required if one of the disks is a pass-through disk.
    ///
    /// # Errors
    /// A disk cannot be created or written.
    pub fn make(
        folder: &Path,
        forms: &[(DiskFormat, DiskKind)],
        loop_device: Option<LoopDevice>,
        disk_bytes: u64,
        cpu: u16,
    ) -> Result<Self> {
        let (store, folder) = (StoreFolder::open(folder)?, folder.to_owned());
        let disks = Self { store, folder, loop_device, disk_bytes, cpu };
        for form in forms {
            if form.0 != DiskFormat::PassThrough {
                disks.store.make(&plan(*form, Some(disk_bytes)))?;
            }
            disks.with(*form, |store, plan| fill_disk(cpu, store.disk(plan)?, disk_bytes))?;
        }
        Ok(disks)
    }

    /// Returns the file or device that contains a disk's data.
    ///
    /// # Errors
    /// There is no loop device.
    pub fn file(&self, form: (DiskFormat, DiskKind)) -> Result<PathBuf> {
        match plan(form, None).file {
            Some(file) => Ok(self.folder.join(file.to_string())),
            None => Ok(self.device()?.path().into()),
        }
    }

    /// Measures requests per second in a window after a warm-up.
    ///
    /// # Errors
    /// A request failed.
    pub fn rate(
        &self,
        form: (DiskFormat, DiskKind),
        load: EngineAsks,
        warm_up: Duration,
        window: Duration,
    ) -> Result<f64> {
        let EngineAsks { read_percent, is_random, depth, bytes } = load;
        let pattern = RequestPattern::Mixed { read_percent, is_random };
        let client = ClientSpec { pattern, depth, bytes, disk_bytes: self.disk_bytes };
        self.with(form, |store, plan| {
            serve_client(self.cpu, store.disk(plan)?, None, client, |answers| {
                thread::sleep(warm_up);
                let (completed, started) = (answers.done(), Instant::now());
                thread::sleep(window);
                #[allow(clippy::cast_precision_loss, reason = "few")]
                let completed = (answers.done() - completed) as f64;
                Ok(completed / started.elapsed().as_secs_f64())
            })
        })
    }

    fn device(&self) -> Result<&LoopDevice> {
        self.loop_device.as_ref().context("there is no loop device")
    }

    /// Calls `run` with the store folder and plan of a disk. The pass-through disk has a separate
    /// store, which it occupies completely.
    fn with<T>(
        &self,
        form: (DiskFormat, DiskKind),
        run: impl FnOnce(&StoreFolder, &DiskPlan) -> Result<T>,
    ) -> Result<T> {
        let plan = plan(form, None);
        if form.0 != DiskFormat::PassThrough {
            return run(&self.store, &plan);
        }
        run(&StoreFolder::open(Path::new(self.device()?.path()))?, &plan)
    }
}

fn plan((format, kind): (DiskFormat, DiskKind), size: Option<u64>) -> DiskPlan {
    match format {
        DiskFormat::PassThrough => {
            let plan = new_disk(format, DiskKind::Fixed, None);
            DiskPlan { file: None, ..plan }
        }
        _ => new_disk(format, kind, size),
    }
}
