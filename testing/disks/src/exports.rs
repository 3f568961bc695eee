//! Disks as NBD exports.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use suimon_image::{DiskGeometry, LinearImage};
use suimon_image_files::{DiskFormat, DiskPlan, HostInputs, RemainingRecordPolicy};
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_nbd::{Export, ExportSpec};
use suimon_nbd_server::{NbdExports, NbdQueue, NbdServerContext};
use suimon_ports::{DiskFile, DiskQueueHost, FileName};
use suimon_socket_runtime::{SocketRuntime, ThreadHooks};
use suimon_storage_qos::Limits;
use suimon_uring::{FileAccess, HostFile, HostStore};

use crate::worker::{DiskWorker, OpenedDisk};

/// Disks of a worker by export name.
pub struct DiskExports {
    worker: Arc<DiskWorker>,
    disks: Mutex<Vec<Exported>>,
    runtime: SocketRuntime,
}

struct Exported {
    export: Export,
    disk: OpenedDisk,
    shape: DiskGeometry,
}

impl DiskExports {
    /// Creates an empty set of exports.
    ///
    /// # Errors
    /// The host has no thread or descriptor left.
    pub fn new(worker: DiskWorker) -> Result<Arc<Self>> {
        let runtime = SocketRuntime::new("nbd", 2, ThreadHooks::default())?;
        Ok(Arc::new(Self { worker: Arc::new(worker), disks: Mutex::default(), runtime }))
    }

    /// Returns the runtime whose threads serve the connections.
    #[must_use]
    pub fn runtime(&self) -> SocketRuntime {
        self.runtime.clone()
    }

    /// Returns the worker that serves the disks.
    #[must_use]
    pub fn worker(&self) -> &DiskWorker {
        &self.worker
    }

    /// Returns the worker as the host of queues other than NBD.
    #[must_use]
    pub fn host(&self) -> Arc<dyn DiskQueueHost> {
        Arc::clone(&self.worker) as _
    }

    /// Returns these exports for an NBD server.
    #[must_use]
    pub fn nbd(self: &Arc<Self>) -> NbdServerContext {
        NbdServerContext::new(Arc::clone(self) as _, self.runtime())
    }

    /// Returns the geometry of a disk; `None` if it does not exist.
    #[must_use]
    pub fn shape(&self, disk: OpenedDisk) -> Option<DiskGeometry> {
        self.disks().iter().find(|exported| exported.disk == disk).map(|exported| exported.shape)
    }

    /// Returns the NBD export of a disk; `None` if it does not exist.
    #[must_use]
    pub fn export_of(&self, disk: OpenedDisk) -> Option<Export> {
        self.disks()
            .iter()
            .find(|exported| exported.disk == disk)
            .map(|exported| exported.export.clone())
    }

    /// Exports a raw file as a disk of the file's size with sectors of 512 bytes.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn add_raw(&self, name: &str, path: &Path, is_read_only: bool) -> Result<OpenedDisk> {
        self.add_raw_of(name, path, is_read_only, 512)
    }

    /// Exports a raw file as a disk of the file's size with the given sector size.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn add_raw_of(
        &self,
        name: &str,
        path: &Path,
        is_read_only: bool,
        sector_bytes: u32,
    ) -> Result<OpenedDisk> {
        let access = if is_read_only { FileAccess::Read } else { FileAccess::Write };
        let file = HostFile::open(path, access, sector_bytes)?;
        let size = file.properties().len;
        let shape = DiskGeometry {
            size_bytes: size,
            logical_sector_bytes: sector_bytes,
            physical_sector_bytes: 4096,
            block_bytes: 0,
        };
        let image = Box::new(LinearImage::new(shape, 0, is_read_only));
        self.add(name, vec![DiskLayer { image, file: Arc::new(file) }], is_read_only)
    }

    /// Exports a raw file as a disk of the file's size with Storage QoS limits.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn add_limited(&self, name: &str, path: &Path, limits: Limits) -> Result<OpenedDisk> {
        let file = HostFile::open(path, FileAccess::Write, 512)?;
        let size = file.properties().len;
        let shape = DiskGeometry {
            size_bytes: size,
            logical_sector_bytes: 512,
            physical_sector_bytes: 4096,
            block_bytes: 0,
        };
        let image = Box::new(LinearImage::new(shape, 0, false));
        self.export(name, vec![DiskLayer { image, file: Arc::new(file) }], false, Some(limits))
    }

    /// Exports a VHD or VHDX image, opened as the daemon opens it. The file extension selects the
    /// format; parent images are in the same directory.
    ///
    /// # Errors
    /// The file is not a valid image or cannot be opened.
    pub fn add_image(&self, name: &str, path: &Path) -> Result<OpenedDisk> {
        let folder = path.parent().context("an image is in a folder")?;
        let file = path.file_name().context("an image has a name")?.to_string_lossy();
        let store = HostStore::open(folder)?;
        let is_vhd = path.extension().is_some_and(|ending| ending == "vhd");
        let plan = DiskPlan {
            format: if is_vhd { DiskFormat::Vhd } else { DiskFormat::Vhdx },
            kind: None,
            file: Some(FileName::new(&file)?),
            size_bytes: None,
            parent: None,
            is_read_only: false,
            logical_sector_bytes: 512,
            physical_sector_bytes: 4096,
            block_bytes: None,
        };
        let mut draws = || random().unwrap_or([7; 16]);
        let mut seeds = HostInputs {
            remaining_redo_records: RemainingRecordPolicy::Redo,
            random: &mut draws,
            now_unix_s: 0,
            redo_records: None,
        };
        let opened = suimon_image_files::open(&store, &plan, &mut seeds)?;
        self.add(name, opened.layer_stack.layers, false)
    }

    /// Exports a disk from layers: its own image, its parent's, and so on.
    ///
    /// # Errors
    /// `layers` is empty, a file cannot be used, or the disk cannot be exported.
    pub fn add(
        &self,
        name: &str,
        layers: Vec<DiskLayer>,
        is_read_only: bool,
    ) -> Result<OpenedDisk> {
        self.export(name, layers, is_read_only, None)
    }

    fn export(
        &self,
        name: &str,
        layers: Vec<DiskLayer>,
        is_read_only: bool,
        limits: Option<Limits>,
    ) -> Result<OpenedDisk> {
        let shape = layers.first().context("a disk has one layer or more")?.image.disk_geometry();
        let (size, sector) = (shape.size_bytes, shape.logical_sector_bytes);
        let export =
            Export::new(ExportSpec::for_disk(name.to_owned(), size, sector, is_read_only))?;
        let disk = self.worker.add_disk(LayerStack { layers }, limits)?;
        self.disks().push(Exported { export, disk, shape });
        Ok(disk)
    }

    /// Removes an export. New clients cannot find it, and connected clients are disconnected after
    /// their outstanding requests are complete.
    ///
    /// # Errors
    /// The export does not exist, or its file could not be written.
    pub fn remove(&self, name: &str) -> Result<()> {
        let mut disks = self.disks();
        let index = disks.iter().position(|exported| exported.export.name() == name);
        let exported = disks.remove(index.with_context(|| format!("there is no export {name}"))?);
        drop(disks);
        self.worker.close_disk(exported.disk)
    }

    fn disks(&self) -> std::sync::MutexGuard<'_, Vec<Exported>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NbdExports for DiskExports {
    fn exports(&self) -> Vec<Export> {
        self.disks().iter().map(|exported| exported.export.clone()).collect()
    }

    fn attach(&self, name: &str, queue: NbdQueue) -> Result<(), String> {
        let disks = self.disks();
        let export = disks.iter().find(|exported| exported.export.name() == name);
        let disk =
            export.context("the export no longer exists").map_err(|error| error.to_string())?.disk;
        drop(disks);
        self.worker.add_queue(disk, Box::new(queue)).map_err(|error| error.to_string())
    }
}

fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
