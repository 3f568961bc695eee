//! Benchmark of a disk ring's cost per request: CPU time of `receive`, `complete` and `flush`,
//! without the driver's work. The disk completes requests at once and does not access payloads. The
//! depth is the number of requests in flight; they are completed out of order. Memory is warm, so
//! the result is the cost of the instructions, without cache misses between CPUs and interrupts.
//!
//!     cargo run --release -p suimon-ring --example disk_ring_cost [FORM [REQUESTS]]
//!
//! `FORM` is a prefix of the lines to measure, for example `split, indirect depth 128`. A small
//! number of requests shortens the run under a CPU simulator.

mod clock;
#[path = "../tests/integration/rig/disk.rs"]
mod disk;
#[path = "../tests/integration/rig/mod.rs"]
mod rig;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clock::{clock_cost, cpu_time};
use disk::{DISK_FEATURES, Wanted};
use rig::any::AnyDriver;
use rig::packed::RING_PACKED;
use rig::{Vm, call_line};
use suimon_ports::DiskOutcome;
use suimon_ring::{
    DiskDescription, DiskProperties, DiskRing, InflightLayout, InflightRegion, RingTracking,
};
use suimon_test_programs::end_program;

/// Ring size: sufficient for three descriptors per request at the greatest depth.
const SIZE: u16 = 512;
const READ_BYTES: usize = 4096;

fn main() -> ExitCode {
    end_program("disk_ring_cost", measure_all())
}

fn measure_all() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let filter = arguments.next().unwrap_or_default();
    let requests = arguments.next().map_or(Ok(400_000), |text| text.parse());
    let requests = requests.context("REQUESTS is a number: disk_ring_cost [FORM [REQUESTS]]")?;
    let measure = |name: &str, features, depth, indirect, keeps_inflight| {
        let name = format!("{name:34} depth {depth:3}");
        if name.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(&filter) {
            measure(&name, features, depth, indirect, keeps_inflight, requests);
        }
    };
    for (form, bit) in [("split", 0), ("packed", RING_PACKED)] {
        for depth in [1, 128] {
            for indirect in [false, true] {
                let features = DISK_FEATURES | bit;
                let table = if indirect { "indirect" } else { "direct" };
                measure(&format!("{form}, {table}"), features, depth, indirect, false);
                measure(
                    &format!("{form}, {table}, in-flight kept"),
                    features,
                    depth,
                    indirect,
                    true,
                );
            }
        }
    }
    Ok(())
}

fn measure(
    name: &str,
    features: u64,
    depth: usize,
    indirect: bool,
    keeps_inflight: bool,
    total: usize,
) {
    let vm = Vm::new(SIZE);
    let mut driver = AnyDriver::new(&vm, SIZE, features);
    let (call, _far) = call_line();
    let setup = driver.setup(features, &call);
    let layout = InflightLayout { queues: 1, queue_size: SIZE, is_packed: setup.features.packed() };
    let (region, _fd) = InflightRegion::create(layout).expect("a region");
    let inflight = keeps_inflight.then(|| region.queue(0)).flatten();
    let records = RingTracking { log: None, inflight };
    let disk = DiskDescription {
        bytes: 1 << 30,
        sector_bytes: 512,
        is_read_only: false,
        serial: String::new(),
    };
    let disk = Arc::new(DiskProperties::new(&disk));
    let ring = DiskRing::with_tracking(vm.map(), &setup, records, disk).expect("a ring");
    let mut queue = ring.into_queue();
    no_interrupts(&driver);
    let workload = Wanted::read(8, READ_BYTES);
    let (lens, readable) = workload.usual();
    let header = workload.readable();
    let mut requests = Vec::with_capacity(depth);
    let (clock, mut spent) = (clock_cost(), Duration::ZERO);
    let rounds = total.div_ceil(depth);
    for _ in 0..rounds {
        for _ in 0..depth {
            driver.add_request(&lens, readable, indirect, &header).expect("room");
        }
        let start = cpu_time();
        assert_eq!(queue.receive(depth, &mut requests).expect("requests"), depth);
        while let Some(request) = requests.pop() {
            queue.complete(request.tag, DiskOutcome::Done);
        }
        queue.flush().expect("a good ring");
        spent += (cpu_time() - start).saturating_sub(clock);
        assert_eq!(driver.reap_any_order().len(), depth);
    }
    let ns = spent.as_nanos() as f64 / (rounds * depth) as f64;
    println!("{name}: {ns:6.1} ns per request");
}

fn no_interrupts(driver: &AnyDriver<'_>) {
    match driver {
        AnyDriver::Split(driver) => driver.set_avail_flags(1),
        AnyDriver::Packed(driver) => driver.set_driver_event(0, 1),
    }
}
