//! The storage plane as a client in this process finds it: a processor on a CPU of its own,
//! with io_uring, and a queue that always has so many requests outstanding. Nothing else is
//! between the client and the engine: no ring, no socket, no other process.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use suimon_disk_tests::ClientSpec;
use suimon_rig::serve_client;
use suimon_storage::DiskSpec;
use suimon_storage_qos::Limits;

use crate::cpu_times::CpuTimes;

/// Where files in memory lie.
pub(crate) const IN_MEMORY: &str = "/dev/shm";
/// Of a disk in memory: more than most caches hold.
pub(crate) const DISK_BYTES: u64 = 256 << 20;
/// Where files on a device lie. Tests keep large files there too; it is rarely in memory.
pub(crate) const ON_DISK: &str = "/var/tmp";
/// Of a file on a device.
pub(crate) const FILE_BYTES: u64 = 1 << 30;
/// `statfs(2)`.
const TMPFS: u64 = 0x0102_1994;
pub(crate) const REQUEST_BYTES: u32 = 4096;
/// Where the processor runs.
pub(crate) const CPU: u16 = 1;
const WARM_UP: Duration = Duration::from_millis(300);
const FILL_BYTES: u32 = 1 << 20;

/// Why nothing can be said here of files on a device.
pub(crate) fn not_on_a_device() -> Result<Option<String>> {
    let system = rustix::fs::statfs(ON_DISK)?;
    Ok((system.f_type as u64 == TMPFS).then(|| format!("{ON_DISK} is in memory")))
}

/// What a client got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// Requests a second.
    pub(crate) per_second: f64,
    /// Requests for each second of CPU time that this process used.
    pub(crate) per_cpu_second: f64,
}

/// Requests of 4 KB on a disk, for so long.
pub(crate) fn rates(
    disk: DiskSpec,
    limits: Option<Limits>,
    client: ClientSpec,
    window: Duration,
) -> Result<Rates> {
    serve_client(CPU, disk, limits, client, |answers| {
        thread::sleep(WARM_UP);
        let process = std::process::id();
        let (cpu, done, began) = (CpuTimes::of(process)?, answers.done(), Instant::now());
        thread::sleep(window);
        let (used, done) = (CpuTimes::of(process)?.since(&cpu), answers.done() - done);
        Ok(Rates {
            per_second: done as f64 / began.elapsed().as_secs_f64(),
            per_cpu_second: done as f64 / (used as f64 / 1e9),
        })
    })
}

/// Makes a file of so many bytes that are no zeros, on its device when this returns.
pub(crate) fn write_file(path: &Path, bytes: u64) -> Result<()> {
    let mut file = File::create_new(path)?;
    let piece: Vec<u8> = (0..FILL_BYTES).map(|at| (at * 7 + 1) as u8).collect();
    for _ in 0..bytes / u64::from(FILL_BYTES) {
        file.write_all(&piece)?;
    }
    Ok(file.sync_all()?)
}
