//! Benchmark of the cost of Storage QoS per request: in the engine alone with files without
//! latency, relative to a read from a device, and relative to a read from a file in memory.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use suimon_disk_tests::{
    ClientSpec, EngineLoad, QosLimits, RequestPattern, StoreFolder, new_disk, request_cost_ns,
    shared_request_cost_ns,
};
use suimon_image_files::{DiskFormat, DiskKind, DiskPlan};
use suimon_quantity::Iops;
use suimon_rig::{Rig, fill_disk};
use suimon_storage_qos::Limits;

use crate::disk_engine::{
    CPU, DISK_BYTES, FILE_BYTES, IN_MEMORY, ON_DISK, REQUEST_BYTES, not_on_a_device, rates,
    write_file,
};
use crate::report::{Bar, Pair, Sample, Work, median};

const DEPTH: u32 = 32;
const WINDOW: Duration = Duration::from_secs(2);
/// Measurements of the engine per sample.
const MEASUREMENTS: usize = 9;
/// Maximum number of requests that the engine's simulated device completes between two rounds of
/// the worker.
pub(crate) const ENDS: usize = 16;

/// A case: numbers of disks (total, busy), their limits, name and description.
type Case = ([u32; 2], QosLimits, &'static str, &'static str);

const CASES: [Case; 4] = [
    ([1, 1], QosLimits::AllLimits, "one", "one disk, limits"),
    ([1, 1], QosLimits::AllLimitsAndWait, "one-waits", "one disk, limits, all requests wait"),
    ([1000, 128], QosLimits::AllLimits, "many", "1000 disks, 128 of them busy, limits"),
    (
        [1000, 128],
        QosLimits::AllLimitsAndWait,
        "many-wait",
        "1000 disks, 128 of them busy, limits, all requests wait",
    ),
];

/// Limits, whether both workers run at the same time, and name and description of a case with two
/// workers on one store.
type SharedCase = (QosLimits, bool, &'static str, &'static str);

const SHARED_CASES: [SharedCase; 4] = [
    (QosLimits::NoLimits, false, "two-workers", "two workers in turn, one disk each, no limits"),
    (
        QosLimits::AllLimits,
        false,
        "two-workers-limits",
        "two workers in turn, one disk each, limits",
    ),
    (
        QosLimits::AllLimitsAndWait,
        false,
        "two-workers-wait",
        "two workers in turn, one disk each, limits, all requests wait",
    ),
    (
        QosLimits::AllLimits,
        true,
        "two-workers-at-once",
        "two workers at the same time, one disk each, limits",
    ),
];

/// Measures `pairs` pairs of each case. The peer is Suimon without Storage QoS, or one worker.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let benchmarks: Result<Vec<Work>> =
        CASES.into_iter().map(|case| in_the_engine(case, pairs)).collect();
    let mut benchmarks = benchmarks?;
    let shared: Result<Vec<Work>> =
        SHARED_CASES.into_iter().map(|case| of_two_workers(case, pairs)).collect();
    benchmarks.extend(shared?);
    benchmarks.extend(on_files(pairs)?);
    Ok(benchmarks)
}

fn in_the_engine(([disks, busy], held_to, name, description): Case, pairs: usize) -> Result<Work> {
    let title = format!("A request's way through the engine: {description}");
    let name = format!("disk-qos-engine-{name}");
    let mut work = Work::new(&name, &title, "Suimon without Storage QoS", "ns")
        .less_is_better()
        .with_bar(Bar::AddedMax(50.0));
    let load = |held_to| EngineLoad { disks, busy, ends: ENDS, limits: held_to };
    for _ in 0..pairs {
        work.push(engine_pair(&load(QosLimits::NoStore), &load(held_to))?);
    }
    Ok(work)
}

/// Measures the requests of two workers that share a store. The peer is one worker with the same
/// limits.
fn of_two_workers(
    (limits, in_threads, name, description): SharedCase,
    pairs: usize,
) -> Result<Work> {
    let title = format!("A request's way through the engine: {description}");
    let name = format!("disk-qos-engine-{name}");
    let mut work = Work::new(&name, &title, "Suimon with one worker", "ns").less_is_better();
    let load = EngineLoad { disks: 1, busy: 1, ends: ENDS, limits };
    for _ in 0..pairs {
        let shared_cost = || shared_request_cost_ns(&load, in_threads);
        work.push(alternating_pair(&[&|| request_cost_ns(&load), &shared_cost])?);
    }
    Ok(work)
}

/// Returns the cost of a request in nanoseconds under each load.
pub(crate) fn engine_pair(peer: &EngineLoad, suimon: &EngineLoad) -> Result<Pair> {
    alternating_pair(&[&|| request_cost_ns(peer), &|| request_cost_ns(suimon)])
}

/// Returns the medians of repeated measurements of a peer and of Suimon. They alternate, because
/// earlier measurements affect the state of memory.
fn alternating_pair(measures: &[&dyn Fn() -> Result<f64>; 2]) -> Result<Pair> {
    let mut measured = [Vec::new(), Vec::new()];
    for round in 0..=MEASUREMENTS {
        for (costs, measure) in measured.iter_mut().zip(measures) {
            let cost = measure()?;
            // The first measurement of each load uses fresh memory and is discarded.
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    let sample =
        |costs: Vec<f64>| Sample::without_distance(median(costs.into_iter()).unwrap_or(f64::NAN));
    let [peer, suimon] = measured.map(sample);
    Ok(Pair { peer, suimon })
}

/// Measures whole requests, on a file in memory and on a device.
fn on_files(pairs: usize) -> Result<Vec<Work>> {
    let title = |condition| {
        format!(
            "4 KB random reads from a file {condition}, depth {DEPTH}, a minimum that is met and \
             maximums that are never reached, for each second of CPU time"
        )
    };
    let work = |name, condition| {
        Work::new(name, &title(condition), "Suimon without Storage QoS", "thousand")
            .with_bar(Bar::Ratio(0.98))
    };
    let mut in_memory = work("disk-qos-memory", "in memory");
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let store = StoreFolder::open(rig.folder())?;
    store.make(&raw(Some(DISK_BYTES)))?;
    fill_disk(CPU, store.disk(&raw(None))?, DISK_BYTES)?;
    push_pairs(&mut in_memory, pairs, &store, DISK_BYTES)?;
    let mut on_disk = work("disk-qos-file", "past the page cache");
    on_disk.missing = not_on_a_device()?;
    if on_disk.missing.is_none() {
        let rig = Rig::new_in(Path::new(ON_DISK))?;
        write_file(&rig.file(&raw(None).label()), FILE_BYTES)?;
        push_pairs(&mut on_disk, pairs, &StoreFolder::open(rig.folder())?, FILE_BYTES)?;
    }
    Ok(vec![on_disk, in_memory])
}

fn raw(size: Option<u64>) -> DiskPlan {
    new_disk(DiskFormat::Raw, DiskKind::Fixed, size)
}

/// Returns a minimum that any device delivers, and maximums that none reaches.
fn loose_limits() -> Limits {
    Limits { min_iops: Iops::new(1000), ..QosLimits::AllLimits.limits(1) }
}

fn push_pairs(work: &mut Work, pairs: usize, store: &StoreFolder, disk_bytes: u64) -> Result<()> {
    let rate = |limits: Option<Limits>| -> Result<Sample> {
        let (pattern, bytes) = (RequestPattern::RandomReads, REQUEST_BYTES);
        let client = ClientSpec { pattern, depth: DEPTH, bytes, disk_bytes };
        let rates = rates(store.disk(&raw(None))?, limits, client, WINDOW)?;
        Ok(Sample::without_distance(rates.per_cpu_second / 1e3))
    };
    for _ in 0..pairs {
        let peer = rate(None)?;
        work.push(Pair { peer, suimon: rate(Some(loose_limits()))? });
    }
    Ok(())
}
