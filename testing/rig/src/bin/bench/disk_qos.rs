//! What Storage QoS costs a request: in the engine alone, on files that take no time, and on
//! a file in memory.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use suimon_disk_tests::{
    Asks, ClientSpec, EngineLoad, HeldTo, StoreFolder, new_disk, request_cost_ns,
};
use suimon_rig::Rig;
use suimon_storage::images::{DiskFormat, DiskKind};
use suimon_storage_qos::Limits;

use crate::disk_engine::{DISK_BYTES, IN_MEMORY, REQUEST_BYTES, fill, rates};
use crate::report::{Bar, Pair, Sample, Work, median};

const DEPTH: u32 = 32;
const WINDOW: Duration = Duration::from_secs(2);
/// Measurements of the engine that make a sample.
const MEASUREMENTS: usize = 9;
/// What the device of the engine alone ends in a turn.
pub(crate) const ENDS: usize = 16;

/// Disks in all and busy ones.
type Disks = [u32; 2];

const CASES: [(&str, Disks, HeldTo); 4] = [
    ("one disk, limits", [1, 1], HeldTo::AllLimits),
    ("one disk, limits, all requests wait", [1, 1], HeldTo::AllLimitsAndWait),
    ("1000 disks, 128 of them busy, limits", [1000, 128], HeldTo::AllLimits),
    ("1000 disks, 128 of them busy, limits, all requests wait", [1000, 128], {
        HeldTo::AllLimitsAndWait
    }),
];

/// Runs `pairs` pairs of each. The peer is Suimon without Storage QoS.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works: Vec<Work> = CASES
        .iter()
        .enumerate()
        .map(|(nth, (title, disks, held_to))| {
            let title = format!("A request's way through the engine: {title}");
            let mut work = Work::new(
                &format!("disk-qos-engine-{nth}"),
                &title,
                "Suimon without Storage QoS",
                "ns",
            )
            .less_is_better()
            .with_bar(Bar::AddedMax(50.0));
            for _ in 0..pairs {
                let peer = engine(&load(*disks, HeldTo::NoStore))?;
                work.push(Pair { peer, suimon: engine(&load(*disks, *held_to))? });
            }
            Ok(work)
        })
        .collect::<Result<_>>()?;
    works.push(on_a_file(pairs)?);
    Ok(works)
}

fn load([disks, busy]: Disks, held_to: HeldTo) -> EngineLoad {
    EngineLoad { disks, busy, ends: ENDS, held_to }
}

/// Nanoseconds of a request.
pub(crate) fn engine(load: &EngineLoad) -> Result<Sample> {
    let measured = (0..MEASUREMENTS).map(|_| request_cost_ns(load));
    let measured: Vec<f64> = measured.collect::<Result<_>>()?;
    Ok(Sample::alone(median(measured.into_iter()).unwrap_or(f64::NAN)))
}

/// A share of a whole request.
fn on_a_file(pairs: usize) -> Result<Work> {
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let store = StoreFolder::open(rig.folder())?;
    let plan = |size| new_disk(DiskFormat::Raw, DiskKind::Fixed, size);
    store.make(&plan(Some(DISK_BYTES)))?;
    fill(store.disk(&plan(None))?, DISK_BYTES)?;
    let rate = |limits: Option<Limits>| -> Result<Sample> {
        let (asks, bytes) = (Asks::RandomReads, REQUEST_BYTES);
        let client = ClientSpec { asks, depth: DEPTH, bytes, disk_bytes: DISK_BYTES };
        let rates = rates(store.disk(&plan(None))?, limits, client, WINDOW)?;
        Ok(Sample::alone(rates.per_cpu_second / 1e3))
    };
    let title = format!(
        "4 KB random reads from a file in memory, depth {DEPTH}, limits that are never reached, \
         for each second of CPU time"
    );
    let mut work = Work::new("disk-qos-file", &title, "Suimon without Storage QoS", "thousand")
        .with_bar(Bar::Ratio(0.98));
    for _ in 0..pairs {
        let peer = rate(None)?;
        work.push(Pair { peer, suimon: rate(Some(HeldTo::AllLimits.limits(1)))? });
    }
    Ok(work)
}
