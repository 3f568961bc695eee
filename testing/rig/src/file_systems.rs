//! Folders with separate file systems. One is on a disk that NBD exports: nbdfuse provides the disk
//! as a file, on which a loop device has an ext4. This also works with kernels without NBD.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::run;
use crate::loop_device::LoopDevice;
use crate::mounted::Mounted;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::wait_until;

const READY_LIMIT: Duration = Duration::from_secs(90);

/// Mounted folder; dropping it removes everything except the disk's server.
#[derive(Debug)]
pub struct NbdFolder {
    // Dropped from the top.
    _files: Mounted,
    _device: LoopDevice,
    _fuse: Mounted,
    _client: Process,
    path: String,
}

impl NbdFolder {
    /// Creates a file system on the disk of an NBD URI and mounts it. The disk's contents are lost.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub fn make(rig: &Rig, uri: &str) -> Result<Self> {
        let fuse = rig.path(&rig.unique("fuse"));
        std::fs::create_dir(&fuse).with_context(|| fuse.clone())?;
        let mut client = Process::start(rig, "nbdfuse", &["nbdfuse", &fuse, uri])?;
        let device_file = format!("{fuse}/nbd");
        wait_until("file of nbdfuse", READY_LIMIT, || {
            client.check_running()?;
            Ok(Path::new(&device_file).exists())
        })?;
        let fuse = Mounted::taken_over(&fuse);
        let device = LoopDevice::attach(&device_file)?;
        let (files, path) = make_files(rig, &device)?;
        Ok(Self { _files: files, _device: device, _fuse: fuse, _client: client, path })
    }

    /// Returns the path of the mounted file system.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Folder whose file system is on a loop device on a newly created file.
#[derive(Debug)]
pub struct LoopFolder {
    // Dropped from the top.
    _files: Mounted,
    _device: LoopDevice,
    path: String,
}

impl LoopFolder {
    /// Creates the file with `bytes` allocated bytes, a file system in it, and mounts it.
    ///
    /// # Errors
    /// There is no space, or no loop device.
    pub fn make(rig: &Rig, file: &str, bytes: u64) -> Result<Self> {
        run(&["fallocate", "--length", &bytes.to_string(), file])?;
        let device = LoopDevice::attach(file)?;
        let (files, path) = make_files(rig, &device)?;
        Ok(Self { _files: files, _device: device, path })
    }

    /// Returns the path of the mounted file system.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Creates a file system on a device and mounts it.
fn make_files(rig: &Rig, device: &LoopDevice) -> Result<(Mounted, String)> {
    // Initialised at once and small: the file system must not write anything later by itself.
    let options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    let small = ["-m", "0", "-N", "1024", "-J", "size=4", "-E", options];
    run(&[&["mkfs.ext4", "-q", "-F"][..], &small, &[device.path()]].concat())?;
    let path = rig.path(&rig.unique("files"));
    let files = Mounted::device(device.path(), &path)?;
    Ok((files, path))
}
