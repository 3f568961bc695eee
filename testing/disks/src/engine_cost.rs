//! Measures the CPU time that a worker needs per disk request, from the queue to the completion,
//! excluding the operating system: on files whose operations cost nothing, without and with Storage
//! QoS.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use suimon_image::{DiskGeometry, LinearImage};
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::testing::NullFile;
use suimon_quantity::{ByteRate, DiskId, Iops, StoreId, Time, WorkerId};
use suimon_storage_engine::{StorageEngine, StoreDiskSlot};
use suimon_storage_qos::{Capacity, Limits, LimitsSource, Proposal, Store, StoreSpec};

use crate::{Client, ClientSpec, NullIo, RequestPattern, never_readable};

const STORE: StoreId = StoreId(1);
/// Minimum total number of outstanding requests; more if there are more busy disks.
const REQUESTS: u32 = 128;
/// Number of measured requests.
const MEASURED: u64 = 320_000;
const DISK_BYTES: u64 = 1 << 30;
const REQUEST_BYTES: u32 = 4096;

/// Disks of a worker and their load.
#[derive(Clone, Copy, Debug)]
pub struct EngineLoad {
    /// Total number of disks.
    pub disks: u32,
    /// Number of disks, from the first, with a client that always has requests outstanding: 128 in
    /// total, or one per disk if that is more.
    pub busy: u32,
    /// Maximum number of operations that the device completes between two rounds of the worker.
    pub ends: usize,
    /// Limits of all disks.
    pub limits: QosLimits,
}

/// Storage QoS limits of the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QosLimits {
    /// The disks have no store, so there is no Storage QoS.
    NoStore,
    /// The disks have a store but no limits.
    NoLimits,
    /// A minimum, a maximum and a bandwidth limit, none of which is reached.
    AllLimits,
    /// As `AllLimits`, with a device whose queue is full, so that further requests wait.
    AllLimitsAndWait,
}

impl QosLimits {
    /// Returns the limits of each of `disks` disks.
    #[must_use]
    pub fn limits(self, disks: u32) -> Limits {
        match self {
            Self::NoStore | Self::NoLimits => Limits::default(),
            Self::AllLimits | Self::AllLimitsAndWait => Limits {
                min_iops: Iops::new(400_000 / u64::from(disks.max(1))),
                max_iops: Iops::new(10_000_000),
                max_bandwidth: ByteRate::new(1 << 40),
                ..Limits::default()
            },
        }
    }

    const fn depth(self) -> u32 {
        if matches!(self, Self::AllLimitsAndWait) { 64 } else { 4096 }
    }
}

/// Returns a disk of 1 GiB whose file stores no data.
#[must_use]
pub fn hollow_disk() -> LayerStack {
    let shape = DiskGeometry {
        size_bytes: DISK_BYTES,
        logical_sector_bytes: 512,
        physical_sector_bytes: 512,
        block_bytes: 0,
    };
    let image = Box::new(LinearImage::new(shape, 0, false));
    let file = Arc::new(NullFile { number: 0, len: DISK_BYTES });
    LayerStack { layers: vec![DiskLayer { image, file }] }
}

/// Returns a client of such a disk that reads 4 KiB with `depth` outstanding requests.
#[must_use]
pub fn hollow_client(depth: u32, wake: &Arc<OwnedFd>) -> Client {
    let pattern = RequestPattern::RandomReads;
    let spec = ClientSpec { pattern, depth, bytes: REQUEST_BYTES, disk_bytes: DISK_BYTES };
    Client::new(spec, Arc::clone(wake))
}

/// Returns the CPU time per request in nanoseconds.
///
/// # Errors
/// The limits are rejected, or the process has no descriptor left.
pub fn request_cost_ns(load: &EngineLoad) -> Result<f64> {
    let now = Time::from_ns(1 << 40);
    Ok(cost_of(vec![worker(now, load)?], now, load))
}

/// Returns the CPU time per request in nanoseconds of two workers that share a store, each with the
/// disks and clients of `load`. `in_threads`: the workers run at the same time, so that they
/// contend for the store's budget; otherwise their rounds alternate on one thread.
///
/// # Errors
/// The limits are rejected, or the process has no descriptor or thread left.
pub fn shared_request_cost_ns(load: &EngineLoad, in_threads: bool) -> Result<f64> {
    let now = Time::from_ns(1 << 40);
    let workers = workers(now, load, 2)?;
    if !in_threads {
        return Ok(cost_of(workers, now, load));
    }
    let costs: Vec<f64> = std::thread::scope(|scope| {
        let start = |worker| scope.spawn(move || cost_of(vec![worker], now, load));
        let threads: Vec<_> = workers.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).collect()
    });
    Ok(costs.iter().sum::<f64>() / costs.len() as f64)
}

/// Runs rounds of these workers in turn, and returns the CPU time per request in nanoseconds.
fn cost_of(mut workers: Vec<StorageEngine>, mut now: Time, load: &EngineLoad) -> f64 {
    let mut turns = |workers: &mut [StorageEngine], count: u64| {
        for _ in 0..count {
            now = now + Duration::from_micros(16);
            for work in &mut *workers {
                work.poll(now);
            }
        }
    };
    let under_way = u64::from(REQUESTS.max(load.busy));
    let count = MEASURED / under_way.min(load.ends as u64).max(1);
    let completed = |workers: &[StorageEngine]| -> u64 {
        let requests_of = |work: &StorageEngine| -> u64 {
            let disks = (0..load.busy).filter_map(|disk| work.counters(disk as usize));
            disks.map(|counters| counters.reads.requests).sum()
        };
        workers.iter().map(requests_of).sum()
    };
    turns(&mut workers, count / 10);
    let (before, started) = (completed(&workers), cpu_ns());
    turns(&mut workers, count);
    let cpu_time = cpu_ns() - started;
    cpu_time as f64 / (completed(&workers) - before) as f64
}

fn worker(now: Time, load: &EngineLoad) -> Result<StorageEngine> {
    workers(now, load, 1)?.pop().context("one worker was requested")
}

/// Creates workers that share a store, each with the disks and clients of `load`.
fn workers(now: Time, load: &EngineLoad, count: u32) -> Result<Vec<StorageEngine>> {
    let EngineLoad { disks, ends, limits: held_to, .. } = *load;
    let (depth_min, depth_max) = (held_to.depth(), held_to.depth());
    let spec = StoreSpec { depth_min, depth_max, ..StoreSpec::default() };
    let mut store = Store::new(Capacity::Declared(10_000_000));
    let limits = LimitsSource::Own(held_to.limits(disks * count));
    let proposals = (0..disks * count).map(|disk| Proposal::SetDisk(DiskId(disk), limits));
    let changes = store.apply(&proposals.collect::<Vec<_>>(), false)?;
    let mut workers: Vec<StorageEngine> = Vec::new();
    let mut shared = None;
    for number in 0..count {
        let mut work = StorageEngine::new(Box::new(NullIo::ending(ends)?));
        work.set_worker(WorkerId(u16::try_from(number)?));
        work.add_store(now, STORE, spec.clone(), shared.as_ref());
        for change in &changes {
            if shared.is_some() {
                work.handle_budget_change(now, STORE, *change);
            } else {
                work.apply_store_change(now, STORE, *change);
            }
        }
        if count > 1 && shared.is_none() {
            shared = work.share_store(now, STORE);
        }
        add_disks(&mut work, load, (&store, number * disks))?;
        workers.push(work);
    }
    Ok(workers)
}

/// Adds the disks of a worker, whose numbers begin with `first`, and their clients.
fn add_disks(
    work: &mut StorageEngine,
    load: &EngineLoad,
    (store, first): (&Store, u32),
) -> Result<()> {
    let EngineLoad { disks, busy, limits: held_to, .. } = *load;
    let wake = Arc::new(never_readable()?);
    for number in 0..disks {
        let slot = store.slot(DiskId(first + number)).context("it was proposed")?;
        let location =
            (held_to != QosLimits::NoStore).then_some(StoreDiskSlot { store: STORE, slot });
        let added = work.add_disk(hollow_disk(), location).ok().context("the disk is refused")?;
        if number < busy {
            let client = hollow_client((REQUESTS / busy).max(1), &wake);
            work.add_queue(added, Box::new(client)).context("the disk is not there")?;
        }
    }
    Ok(())
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
