//! A disk that moves so many bytes a second and no more, like an array that is known: with
//! a file system, and with real requests that really wait.
//!
//! A file behind QEMU's throttle, which spaces requests evenly once it is busy, comes over
//! NBD (qemu-storage-daemon) to a file (nbdfuse), on which a loop device has an ext4. The
//! kernel's own throttle of control groups is no substitute: it lets what a tenth of
//! a second allows go at once and then holds everything (block/blk-throttle.c,
//! `throtl_slice`), as no array does. QEMU's own FUSE export is none either: an ext4 on that
//! of QEMU 7.2 was not consistent after it was written to.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::command::run;
use crate::file_systems::NbdFolder;
use crate::guest::Monitor;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{is_listening, until};

/// How long each of its parts may take to be there.
const READY_LIMIT: Duration = Duration::from_secs(90);
/// Beyond what files take: the file system's own.
const SPARE_BYTES: u64 = 64 << 20;

/// The disk; unmounted and removed when this is dropped. Whoever has files on it must have
/// ended before.
#[derive(Debug)]
pub struct SlowDisk {
    // Dropped from the top.
    files: NbdFolder,
    _server: Process,
    monitor: String,
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
        let monitor = rig.path(&rig.unique("slow-monitor"));
        let words = words(&file, &socket, &monitor, bytes_per_s);
        let server = Process::start(rig, "storage-daemon", &words)?;
        let served = until("storage daemon", READY_LIMIT, || Ok(is_listening(&socket)));
        std::fs::remove_file(&file).with_context(|| file.clone())?;
        served?;
        let uri = format!("nbd+unix:///disk?socket={socket}");
        let files = NbdFolder::make(rig, &uri).context("the slow disk")?;
        Ok(Self { files, _server: server, monitor })
    }

    /// Changes the rate. Requests that wait for the former one go on at the new one.
    ///
    /// # Errors
    /// The storage daemon refuses, or is gone.
    pub fn set_rate(&self, bytes_per_s: u64) -> Result<()> {
        let limits = json!({ "bps-total": bytes_per_s });
        let of = json!({ "path": "/objects/rate", "property": "limits", "value": limits });
        Monitor::connect(Path::new(&self.monitor))?.ask("qom-set", &of).map(drop)
    }

    /// Where its file system is.
    pub fn path(&self) -> &Path {
        Path::new(self.files.path())
    }
}

fn words(file: &str, socket: &str, monitor: &str, bytes_per_s: u64) -> Vec<String> {
    let limits = format!(
        "{{\"qom-type\":\"throttle-group\",\"id\":\"rate\",\"limits\":{{\"bps-total\":{bytes_per_s}}}}}"
    );
    let file = format!("driver=file,node-name=file,filename={file},cache.direct=on,aio=io_uring");
    let server = format!("addr.type=unix,addr.path={socket},max-connections=8");
    [
        "qemu-storage-daemon",
        "--chardev",
        &format!("socket,id=monitor,path={monitor},server=on,wait=off"),
        "--monitor",
        "chardev=monitor",
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
