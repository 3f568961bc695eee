//! What a frame costs the rings: CPU time of `receive` and of `transmit` plus
//! `flush`, per frame, in batches of 32, with the driver's work left out. Memory
//! is warm, so this is the instructions' price; misses between CPUs come on top.
//!
//!     cargo run --release -p suimon-ring --example ring_cost

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::sync::Arc;
use std::time::Duration;

use rig::{Driver, Vm, call_line, event};
use rustix::time::{ClockId, clock_gettime};
use suimon_frame::{FrameBatch, Offloads};
use suimon_ports::{FrameSink, FrameSource, Sent};
use suimon_ring::{OffloadMask, RxRing, TxRing};

const BATCH: usize = 32;
const ROUNDS: usize = 20_000;
/// `VERSION_1`, `EVENT_IDX`, `MRG_RXBUF`.
const FEATURES: u64 = 1 << 32 | 1 << 29 | 1 << 15;

fn main() {
    let calls = 100_000;
    let start = cpu_time();
    for _ in 0..calls {
        std::hint::black_box(cpu_time());
    }
    // Each of the two spans below contains one reading of the clock.
    let clock = (cpu_time() - start) / calls;
    for frame_bytes in [64, 128, 512, 1514] {
        let (sender, receiver) = (Vm::new(256), Vm::new(256));
        let (mut tx, mut rx) = (Driver::new(&sender, 256), Driver::new(&receiver, 256));
        let (call, _far) = call_line();
        let kick = Arc::new(event());
        let mask = Arc::new(OffloadMask::new(Offloads::TCP));
        let tx_setup = tx.setup(FEATURES, Some(&kick), &call);
        let mut source = TxRing::new(sender.map(), &tx_setup).expect("a good ring");
        let mut sink = RxRing::new(receiver.map(), &rx.setup(FEATURES, None, &call), mask)
            .expect("a good ring");
        let mut batch = FrameBatch::new();
        let (mut receiving, mut transmitting) = (Duration::ZERO, Duration::ZERO);
        let length = 12 + frame_bytes as u32;
        for _ in 0..ROUNDS {
            for _ in 0..BATCH {
                tx.add(&[length], false, false, &[]).expect("room");
                rx.add(&[2048], false, true, &[]).expect("room");
            }
            let start = cpu_time();
            batch.clear();
            assert_eq!(source.receive(&mut batch).expect("frames"), BATCH);
            let middle = cpu_time();
            for frame in batch.frames() {
                assert_eq!(sink.transmit(frame).expect("room"), Sent::Accepted);
            }
            sink.flush().expect("a good ring");
            let end = cpu_time();
            receiving += (middle - start).saturating_sub(clock);
            transmitting += (end - middle).saturating_sub(clock);
            tx.set_used_event(tx.used.wrapping_sub(1));
            rx.set_used_event(rx.used.wrapping_sub(1));
            assert_eq!((tx.reap().len(), rx.reap().len()), (BATCH, BATCH));
        }
        let ns = |time: Duration| time.as_nanos() as f64 / (ROUNDS * BATCH) as f64;
        let (receive, transmit) = (ns(receiving), ns(transmitting));
        println!(
            "{frame_bytes:5} bytes: receive {receive:.1} ns, transmit {transmit:.1} ns, \
             together {:.1} ns",
            receive + transmit
        );
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
