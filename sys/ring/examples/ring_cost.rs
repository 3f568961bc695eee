//! Benchmark of the network rings' cost per frame: CPU time of `receive` and of `transmit` plus
//! `flush`, in batches of 32, without the driver's work. Memory is warm, so the result is the cost
//! of the instructions, without cache misses between CPUs.
//!
//! `regions` as first argument measures only rings whose buffers alternate between several memory
//! regions.
//!
//!     cargo run --release -p suimon-ring --example ring_cost

mod clock;
#[path = "../tests/integration/rig/mod.rs"]
mod rig;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clock::{clock_cost, cpu_time};
use rig::packed::{IN_ORDER, PackedDriver, RING_PACKED};
use rig::{Driver, Vm, call_line, event};
use suimon_frame::{FrameBatch, Offloads};
use suimon_ports::TransmitResult;
use suimon_ring::{
    DirtyLog, InflightLayout, InflightRegion, InterruptLine, OffloadMask, RingLog, RingSetup,
    RingTracking, RxRing, TxRing,
};
use suimon_test_programs::end_program;

const BATCH: usize = 32;
const ROUNDS: usize = 20_000;
const SIZE: u16 = 256;
/// Feature bits `VERSION_1`, `EVENT_IDX` and `MRG_RXBUF`.
const FEATURES: u64 = 1 << 32 | 1 << 29 | 1 << 15;

/// Driver of either form of ring that never requests interrupts.
trait BenchDriver {
    fn setup(
        &self,
        features: u64,
        kick: Option<&Arc<OwnedFd>>,
        call: &Arc<InterruptLine>,
    ) -> RingSetup;
    fn add(&mut self, bytes: u32, writable: bool);
    fn reap(&mut self, features: u64) -> usize;
}

impl BenchDriver for Driver<'_> {
    fn setup(
        &self,
        features: u64,
        kick: Option<&Arc<OwnedFd>>,
        call: &Arc<InterruptLine>,
    ) -> RingSetup {
        self.setup(features, kick, call)
    }
    fn add(&mut self, bytes: u32, writable: bool) {
        self.add(&[bytes], false, writable, &[]).expect("room");
    }
    fn reap(&mut self, features: u64) -> usize {
        self.set_used_event(self.used.wrapping_sub(1));
        if features & IN_ORDER != 0 { self.reap_in_order().len() } else { self.reap().len() }
    }
}

impl BenchDriver for PackedDriver<'_> {
    fn setup(
        &self,
        features: u64,
        kick: Option<&Arc<OwnedFd>>,
        call: &Arc<InterruptLine>,
    ) -> RingSetup {
        self.setup(features, kick, call)
    }
    fn add(&mut self, bytes: u32, writable: bool) {
        self.add(&[bytes], false, writable, &[]).expect("room");
    }
    fn reap(&mut self, features: u64) -> usize {
        self.in_order = features & IN_ORDER != 0;
        self.set_driver_event(0, 1);
        self.reap().len()
    }
}

fn main() -> ExitCode {
    end_program("ring_cost", measure_all())
}

fn measure_all() -> Result<()> {
    for regions in [1, 2, 4, 8, 64] {
        let (sender, receiver) = (Vm::of_regions(SIZE, regions), Vm::of_regions(SIZE, regions));
        let mut drivers = (Driver::new(&sender, SIZE), Driver::new(&receiver, SIZE));
        drivers.0.scatter();
        drivers.1.scatter();
        let name = format!("split, {regions} regions");
        run(&name, FEATURES, 64, &RingTracking::default(), (&sender, &receiver), drivers);
    }
    if std::env::args().nth(1).as_deref() == Some("regions") {
        return Ok(());
    }
    let forms = [
        ("split", FEATURES),
        ("split, in order", FEATURES | IN_ORDER),
        ("packed", FEATURES | RING_PACKED),
        ("packed, in order", FEATURES | RING_PACKED | IN_ORDER),
    ];
    for (name, features) in forms {
        for frame_bytes in [64, 128, 512, 1514] {
            measure(name, features, frame_bytes, &RingTracking::default());
        }
    }
    // One bit per page of 4 GiB; larger than the memory in use.
    let log_bytes = 0x2_0000;
    let file = File::from(rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.set_len(log_bytes)?;
    let log =
        Arc::new(DirtyLog::map(file.as_fd(), 0, log_bytes).context("the log cannot be mapped")?);
    for (name, features) in [forms[0], forms[2]] {
        let log = RingLog { log: log.clone(), used_addr: Some(rig::GUEST_BASE) };
        let records = RingTracking { log: Some(log), inflight: None };
        measure(&format!("{name}, logged"), features, 64, &records);
        let is_packed = features & RING_PACKED != 0;
        let layout = InflightLayout { queues: 1, queue_size: SIZE, is_packed };
        let (region, _fd) =
            InflightRegion::create(layout).context("the in-flight record cannot be made")?;
        // A part of the in-flight region serves one ring; it is measured with the transmit ring.
        let records = RingTracking { log: None, inflight: region.queue(0) };
        measure(&format!("{name}, in-flight kept"), features, 64, &records);
    }
    Ok(())
}

fn measure(name: &str, features: u64, frame_bytes: usize, records: &RingTracking) {
    let (sender, receiver) = (Vm::new(SIZE), Vm::new(SIZE));
    if features & RING_PACKED == 0 {
        let drivers = (Driver::new(&sender, SIZE), Driver::new(&receiver, SIZE));
        run(name, features, frame_bytes, records, (&sender, &receiver), drivers);
    } else {
        let drivers = (PackedDriver::new(&sender, SIZE), PackedDriver::new(&receiver, SIZE));
        run(name, features, frame_bytes, records, (&sender, &receiver), drivers);
    }
}

fn run<D: BenchDriver>(
    name: &str,
    features: u64,
    frame_bytes: usize,
    records: &RingTracking,
    (sender, receiver): (&Vm, &Vm),
    (mut tx, mut rx): (D, D),
) {
    let clock = clock_cost();
    let (call, _far) = call_line();
    let kick = Arc::new(event());
    let mask = Arc::new(OffloadMask::new(Offloads::TCP));
    let tx_setup = tx.setup(features, Some(&kick), &call);
    let mut source = TxRing::with_tracking(sender.map(), &tx_setup, records.clone())
        .expect("a ring")
        .into_source();
    let rx_setup = rx.setup(features, None, &call);
    let rx_records = RingTracking { inflight: None, ..records.clone() };
    let mut sink = RxRing::with_tracking(receiver.map(), &rx_setup, rx_records, mask)
        .expect("a ring")
        .into_sink();
    let mut batch = FrameBatch::new();
    let (mut receiving, mut transmitting) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        for _ in 0..BATCH {
            tx.add(12 + frame_bytes as u32, false);
            rx.add(2048, true);
        }
        let start = cpu_time();
        batch.clear();
        assert_eq!(source.receive(&mut batch).expect("frames"), BATCH);
        let middle = cpu_time();
        for frame in batch.frames() {
            assert_eq!(sink.transmit(frame).expect("room"), TransmitResult::Accepted);
        }
        sink.flush().expect("a good ring");
        let end = cpu_time();
        receiving += (middle - start).saturating_sub(clock);
        transmitting += (end - middle).saturating_sub(clock);
        assert_eq!((tx.reap(features), rx.reap(features)), (BATCH, BATCH));
    }
    let ns = |time: Duration| time.as_nanos() as f64 / (ROUNDS * BATCH) as f64;
    let (receive, transmit) = (ns(receiving), ns(transmitting));
    println!(
        "{name:24} {frame_bytes:5} bytes: receive {receive:5.1} ns, transmit {transmit:5.1} ns, \
         together {:5.1} ns",
        receive + transmit
    );
}
