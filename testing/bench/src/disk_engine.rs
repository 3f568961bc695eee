//! The storage plane as seen by a client in the same process: a pinned worker with io_uring, and a
//! queue with a constant number of requests in flight. No ring, socket or other process is between
//! the client and the engine.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use suimon_disk_tests::ClientSpec;
use suimon_image_files::LayerStack;
use suimon_rig::serve_client;
use suimon_storage_qos::Limits;

use crate::cpu_times::CpuTimes;

/// Folder for files in memory.
pub(crate) const IN_MEMORY: &str = "/dev/shm";
/// Size in bytes of a disk in memory: larger than most caches.
pub(crate) const DISK_BYTES: u64 = 256 << 20;
/// Folder for files on a device. Tests keep large files there too; it is rarely in memory.
pub(crate) const ON_DISK: &str = "/var/tmp";
/// Size in bytes of a file on a device.
pub(crate) const FILE_BYTES: u64 = 1 << 30;
/// Magic number of tmpfs (`statfs(2)`).
const TMPFS: u64 = 0x0102_1994;
pub(crate) const REQUEST_BYTES: u32 = 4096;
/// CPU to which the worker is pinned.
pub(crate) const CPU: u16 = 1;
const WARM_UP: Duration = Duration::from_millis(300);
const FILL_BYTES: u32 = 1 << 20;

/// Returns the reason why files on a device cannot be measured on this machine.
pub(crate) fn not_on_a_device() -> Result<Option<String>> {
    let system = rustix::fs::statfs(ON_DISK)?;
    Ok((system.f_type as u64 == TMPFS).then(|| format!("{ON_DISK} is in memory")))
}

/// Request rates of one measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// Requests per second.
    pub(crate) per_second: f64,
    /// Requests per second of CPU time that this process used.
    pub(crate) per_cpu_second: f64,
}

/// Measures requests of 4 KB on a disk for `window`.
pub(crate) fn rates(
    disk: LayerStack,
    limits: Option<Limits>,
    client: ClientSpec,
    window: Duration,
) -> Result<Rates> {
    serve_client(CPU, disk, limits, client, |answers| {
        thread::sleep(WARM_UP);
        let process = std::process::id();
        let (cpu, completed, started) = (CpuTimes::read(process)?, answers.done(), Instant::now());
        thread::sleep(window);
        let (used, completed) = (CpuTimes::read(process)?.since(&cpu), answers.done() - completed);
        Ok(Rates {
            per_second: completed as f64 / started.elapsed().as_secs_f64(),
            per_cpu_second: completed as f64 / (used as f64 / 1e9),
        })
    })
}

/// Creates a file with `bytes` non-zero bytes and flushes it to its device.
pub(crate) fn write_file(path: &Path, bytes: u64) -> Result<()> {
    let mut file = File::create_new(path)?;
    let piece: Vec<u8> = (0..FILL_BYTES).map(|index| (index * 7 + 1) as u8).collect();
    for _ in 0..bytes / u64::from(FILL_BYTES) {
        file.write_all(&piece)?;
    }
    Ok(file.sync_all()?)
}
