//! Disk that a worker of this process serves to a client in the same process. No ring, socket or
//! other process is between the client and the engine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use suimon_disk_tests::{
    Client, ClientSpec, CompletionCounters, DiskWorker, RequestPattern, never_readable,
};
use suimon_image_files::LayerStack;
use suimon_ports::CpuAffinity;
use suimon_storage_qos::Limits;

use crate::wait::wait_until;

const FILL_LIMIT: Duration = Duration::from_secs(60);
const FILL_BYTES: u32 = 1 << 20;

/// Serves a disk to a client with a separate worker on the CPU `cpu`, while `look_on` runs.
///
/// # Errors
/// There is no such CPU or no io_uring, the disk or its limits are rejected, a request failed, or
/// `look_on` failed.
pub fn serve_client<T>(
    cpu: u16,
    disk: LayerStack,
    limits: Option<Limits>,
    client: ClientSpec,
    look_on: impl FnOnce(&CompletionCounters) -> Result<T>,
) -> Result<T> {
    let worker = DiskWorker::start(CpuAffinity::Pinned(cpu))?;
    let disk = worker.add_disk(disk, limits)?;
    let client = Client::new(client, Arc::new(never_readable()?));
    let answers = client.answers();
    worker.add_queue(disk, Box::new(client))?;
    let result = look_on(&answers);
    worker.detach_clients(disk);
    worker.close_disk(disk)?;
    ensure!(answers.failed() == 0, "{} requests failed", answers.failed());
    result
}

/// Writes a disk completely, from its beginning to its end, with a worker on the CPU `cpu`.
///
/// # Errors
/// A write failed, or it took more than a minute.
pub fn fill_disk(cpu: u16, disk: LayerStack, disk_bytes: u64) -> Result<()> {
    let spec =
        ClientSpec { pattern: RequestPattern::Filling, depth: 8, bytes: FILL_BYTES, disk_bytes };
    serve_client(cpu, disk, None, spec, |answers| {
        wait_until("a written disk", FILL_LIMIT, || {
            Ok(answers.done() + answers.failed() >= disk_bytes / u64::from(FILL_BYTES))
        })
    })
}
