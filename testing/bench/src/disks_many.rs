//! Benchmark of the cost of a request to a worker with one disk and with many, with files without
//! latency. 128 requests are in flight in total, or one per busy disk if there are more disks.
//!
//! The number of completions between two turns of the worker determines the cost of polling the
//! queues: with a device that completes 16, the worker polls 1000 queues for 16 requests. The
//! longer a turn takes, the more requests complete in it, so real devices are between 16 and all.

use anyhow::Result;
use suimon_disk_tests::{EngineLoad, QosLimits};

use crate::disk_qos::{ENDS, engine_pair};
use crate::report::Work;

/// Numbers of disks of each load: total, and with requests.
const SIZES: [[u32; 2]; 4] = [[10, 10], [100, 100], [1000, 1000], [1000, 1]];

/// Kind of load, with its name and description.
struct Kind {
    name: &'static str,
    held_to: QosLimits,
    ends: usize,
    label: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "all-end",
        held_to: QosLimits::NoStore,
        ends: usize::MAX,
        label: "all requests end in a turn",
    },
    Kind {
        name: "16-end",
        held_to: QosLimits::NoStore,
        ends: ENDS,
        label: "16 requests end in a turn",
    },
    Kind {
        name: "limits-16-end",
        held_to: QosLimits::AllLimits,
        ends: ENDS,
        label: "limits, 16 requests end in a turn",
    },
];

/// Measures `pairs` pairs of each load. The peer is Suimon with one disk.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut benchmarks = Vec::new();
    for Kind { name, held_to, ends, label: description } in KINDS {
        for [disks, busy] in SIZES {
            let load = |[disks, busy]: [u32; 2]| EngineLoad { disks, busy, ends, limits: held_to };
            let name = format!("disks-many-{name}-{disks}-{busy}");
            let title = format!(
                "A request's way through the engine, {disks} disks on one processor, {busy} of \
                 them busy, {description}"
            );
            let mut work = Work::new(&name, &title, "Suimon, one disk", "ns").less_is_better();
            for _ in 0..pairs {
                work.push(engine_pair(&load([1, 1]), &load([disks, busy]))?);
            }
            benchmarks.push(work);
        }
    }
    Ok(benchmarks)
}
