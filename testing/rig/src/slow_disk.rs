//! A disk that moves so many bytes a second and no more, like an array that is known: with
//! a file system, and with real requests that really wait.
//!
//! A file behind QEMU's throttle, which spaces requests evenly once it is busy, comes over
//! NBD (qemu-storage-daemon) to a file (nbdfuse), on which a loop device has an ext4. The
//! kernel's own throttle of control groups is no substitute: it lets what a tenth of
//! a second allows go at once and then holds everything (block/blk-throttle.c,
//! `throtl_slice`), as no array does. QEMU's own FUSE export is none either: an ext4 on that
//! of QEMU 7.2 was not consistent after it was written to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::run;
use crate::loop_device::LoopDevice;
use crate::mounted::Mounted;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::until;

/// How long each of its parts may take to be there.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Beyond what files take: the file system's own.
const SPARE_BYTES: u64 = 64 << 20;

/// The disk; unmounted and removed when this is dropped. Whoever has files on it must have
/// ended before.
#[derive(Debug)]
pub struct SlowDisk {
    // Dropped from the top.
    _files: Mounted,
    _device: LoopDevice,
    _fuse: Mounted,
    _client: Process,
    _server: Process,
    path: PathBuf,
}

impl SlowDisk {
    /// A disk with room for so many bytes of files, kept in a file in `folder` that has no name any
    /// more when this returns.
    ///
    /// # Errors
    /// One of its programs is missing or fails.
    pub fn new(rig: &Rig, folder: &Path, bytes: u64, bytes_per_s: u64) -> Result<Self> {
        let name = format!("{}-{}", rig.unique("slow-disk"), std::process::id());
        let file = folder.join(name).to_string_lossy().into_owned();
        let bytes = bytes + bytes / 16 + SPARE_BYTES;
        run(&["fallocate", "--length", &bytes.to_string(), &file])?;
        let socket = rig.path(&rig.unique("slow"));
        let server = Process::start(rig, "storage-daemon", &words(&file, &socket, bytes_per_s))?;
        let served = until("storage daemon", READY_LIMIT, || Ok(Path::new(&socket).exists()));
        std::fs::remove_file(&file).with_context(|| file.clone())?;
        served?;
        let fuse = folder_for(rig, "fuse")?;
        let uri = format!("nbd+unix:///disk?socket={socket}");
        let mut client = Process::start(rig, "nbdfuse", &["nbdfuse", &fuse, &uri])?;
        let device_file = format!("{fuse}/nbd");
        until("file of nbdfuse", READY_LIMIT, || {
            client.check_running()?;
            Ok(Path::new(&device_file).exists())
        })?;
        let fuse = Mounted::taken_over(&fuse);
        let device = LoopDevice::attach(&device_file)?;
        // All at once, and few of it: nothing shall be written later by the file system alone.
        let options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        let small = ["-m", "0", "-N", "1024", "-J", "size=4", "-E", options];
        run(&[&["mkfs.ext4", "-q", "-F"][..], &small, &[device.path()]].concat())?;
        let path = rig.path(&rig.unique("files"));
        let files = Mounted::device(device.path(), &path).context("the slow disk")?;
        Ok(Self {
            _files: files,
            _device: device,
            _fuse: fuse,
            _client: client,
            _server: server,
            path: path.into(),
        })
    }

    /// Where its file system is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn folder_for(rig: &Rig, what: &str) -> Result<String> {
    let path = rig.path(&rig.unique(what));
    std::fs::create_dir(&path).with_context(|| path.clone())?;
    Ok(path)
}

fn words(file: &str, socket: &str, bytes_per_s: u64) -> Vec<String> {
    let limits = format!(
        "{{\"qom-type\":\"throttle-group\",\"id\":\"rate\",\"limits\":{{\"bps-total\":{bytes_per_s}}}}}"
    );
    let file = format!("driver=file,node-name=file,filename={file},cache.direct=on,aio=io_uring");
    let server = format!("addr.type=unix,addr.path={socket},max-connections=8");
    [
        "qemu-storage-daemon",
        "--object",
        &limits,
        "--blockdev",
        &file,
        "--blockdev",
        "driver=throttle,node-name=disk,throttle-group=rate,file=file",
        "--nbd-server",
        &server,
        "--export",
        "type=nbd,id=export,node-name=disk,name=disk,writable=on",
    ]
    .map(str::to_owned)
    .to_vec()
}
