//! Disk with a limited, known throughput, like a storage array: with a file system, and with
//! requests that really take time.
//!
//! A file behind QEMU's throttle, which spaces requests evenly once it is saturated, is exported
//! over NBD (qemu-storage-daemon) to a file (nbdfuse), on which a loop device has an ext4. The
//! kernel's throttle of control groups is not suitable: it passes the amount of a tenth of a second
//! at once and then blocks all requests (block/blk-throttle.c, `throtl_slice`), as no array does.
//! QEMU's own FUSE export is not suitable either: an ext4 on that of QEMU 7.2 was inconsistent
//! after writes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::command::run;
use crate::file_systems::NbdFolder;
use crate::guest::Monitor;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{is_listening, wait_until};

/// Time limit for each component to be ready.
const READY_LIMIT: Duration = Duration::from_secs(90);
/// Space in bytes in addition to the files, for the file system itself.
const SPARE_BYTES: u64 = 64 << 20;

/// The disk, unmounted and removed on drop. Processes with open files on it must have ended before.
#[derive(Debug)]
pub struct SlowDisk {
    // Dropped from the top.
    files: NbdFolder,
    _server: Process,
    monitor: String,
}

impl SlowDisk {
    /// Creates a disk with space for `bytes` bytes of files. Its data is in a file in `folder` that
    /// is unlinked when this returns.
    ///
    /// # Errors
    /// A program is missing or fails.
    pub fn new(rig: &Rig, folder: &Path, bytes: u64, bytes_per_s: u64) -> Result<Self> {
        let name = format!("{}-{}", rig.unique("slow-disk"), std::process::id());
        let file = folder.join(name).to_string_lossy().into_owned();
        let bytes = bytes + bytes / 16 + SPARE_BYTES;
        run(&["fallocate", "--length", &bytes.to_string(), &file])?;
        let socket = rig.path(&rig.unique("slow"));
        let monitor = rig.path(&rig.unique("slow-monitor"));
        let arguments = qemu_arguments(&file, &socket, &monitor, bytes_per_s);
        let server = Process::start(rig, "storage-daemon", &arguments)?;
        let ready = wait_until("storage daemon", READY_LIMIT, || Ok(is_listening(&socket)));
        std::fs::remove_file(&file).with_context(|| file.clone())?;
        ready?;
        let uri = format!("nbd+unix:///disk?socket={socket}");
        let files = NbdFolder::make(rig, &uri).context("the slow disk")?;
        Ok(Self { files, _server: server, monitor })
    }

    /// Changes the throughput. Pending requests continue at the new rate.
    ///
    /// # Errors
    /// The storage daemon rejects the change, or has ended.
    pub fn set_rate(&self, bytes_per_s: u64) -> Result<()> {
        let limits = json!({ "bps-total": bytes_per_s });
        let properties = json!({ "path": "/objects/rate", "property": "limits", "value": limits });
        Monitor::connect(Path::new(&self.monitor))?.execute("qom-set", &properties).map(drop)
    }

    /// Returns the path of its file system.
    pub fn path(&self) -> &Path {
        Path::new(self.files.path())
    }
}

fn qemu_arguments(file: &str, socket: &str, monitor: &str, bytes_per_s: u64) -> Vec<String> {
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
