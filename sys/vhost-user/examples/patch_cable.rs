//! Connects two vhost-user NICs: frames that one VM sends are delivered to the other. One thread on
//! one CPU moves the frames. For tests of the rings with real front-ends and for measurements
//! without a switch:
//!
//!     patch_cable CPU SOCKET SOCKET [client]
//!
//! Prints frames per second once per second; exits at the end of its standard input.

use std::io::Read;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use suimon_frame::FrameBatch;
use suimon_ports::{
    DeviceNotice, FrameSink, FrameSource, NegotiatedFeatures, OffloadToggles, PortObserver,
    QueueHost, TransmitResult, VhostUserMode, VhostUserNicSpec,
};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_test_programs::end_program;
use suimon_vhost_user::{VhostUserNic, VhostUserThreads};

enum Change {
    Source(QueueId, Box<dyn FrameSource>),
    Sink(QueueId, Box<dyn FrameSink>),
    Detach(QueueId, Sender<()>),
}

struct Cable {
    changes: Mutex<Sender<Change>>,
}

impl Cable {
    fn send(&self, change: Change) {
        let _ = self.changes.lock().unwrap().send(change);
    }
}

impl QueueHost for Cable {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        self.send(Change::Source(id, source));
    }

    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        self.send(Change::Sink(id, sink));
    }

    fn detach(&self, id: QueueId) {
        let (done, wait) = channel();
        self.send(Change::Detach(id, done));
        let _ = wait.recv_timeout(Duration::from_secs(5));
    }

    fn detach_port(&self, port: PortId) {
        for direction in [Direction::Ingress, Direction::Egress] {
            self.detach(QueueId { port, direction, index: 0 });
        }
    }
}

impl PortObserver for Cable {
    fn handle_notice(&self, port: PortId, notice: DeviceNotice) {
        eprintln!("port {}: {notice:x?}", port.0);
    }
}

/// Rings of one of the two connected NICs.
#[derive(Default)]
struct End {
    source: Option<Box<dyn FrameSource>>,
    sink: Option<Box<dyn FrameSink>>,
}

fn main() -> ExitCode {
    end_program("patch_cable", run())
}

fn run() -> Result<()> {
    const USAGE: &str = "usage: patch_cable CPU SOCKET SOCKET [client]";
    let arguments: Vec<String> = std::env::args().collect();
    let [_, cpu, first, second, rest @ ..] = arguments.as_slice() else { bail!(USAGE) };
    let cpu: usize = cpu.parse().with_context(|| format!("CPU is a number; {USAGE}"))?;
    let mut cpus = CpuSet::new();
    ensure!(cpu < CpuSet::MAX_CPU, "there is no CPU {cpu}");
    cpus.set(cpu);
    let mode = match rest.first().map(String::as_str) {
        Some("client") => VhostUserMode::Client,
        _ => VhostUserMode::Server,
    };
    let (changes, incoming) = channel();
    let cable = Arc::new(Cable { changes: Mutex::new(changes) });
    let (placement_sender, placement) = channel();
    std::thread::spawn(move || {
        let is_placed = sched_setaffinity(None, &cpus);
        let _ = placement_sender.send(is_placed);
        if is_placed.is_ok() {
            carry(&incoming);
        }
    });
    placement.recv()?.with_context(|| format!("no thread can run on CPU {cpu}"))?;
    let threads = VhostUserThreads::unconfined()?;
    let nics: Result<Vec<_>> = [first, second]
        .into_iter()
        .zip(0..)
        .map(|(socket, port)| {
            let spec = VhostUserNicSpec {
                socket: socket.into(),
                mode,
                queue_pairs: 1,
                mac: None,
                mtu: 9000,
                offload: OffloadToggles::default(),
                negotiated: NegotiatedFeatures::default(),
            };
            VhostUserNic::open(PortId(port), &spec, cable.clone(), cable.clone(), &threads)
                .with_context(|| socket.clone())
        })
        .collect();
    let nics = nics?;
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(nics);
    Ok(())
}

fn carry(incoming: &Receiver<Change>) {
    let mut ends = [End::default(), End::default()];
    let mut batch = FrameBatch::new();
    let (mut moved, mut dropped, mut batches) = (0_u64, 0_u64, 0_u64);
    let mut started_at = Instant::now();
    loop {
        for change in incoming.try_iter() {
            apply(&mut ends, change);
        }
        for _ in 0..4096 {
            for (from, to) in [(0, 1), (1, 0)] {
                batch.clear();
                let Some(source) = &mut ends[from].source else { continue };
                if let Err(fault) = source.receive(&mut batch) {
                    eprintln!("port {from}: {fault}");
                    ends[from].source = None;
                    continue;
                }
                if batch.is_empty() {
                    continue;
                }
                batches += 1;
                let Some(sink) = &mut ends[to].sink else { continue };
                for frame in batch.frames() {
                    match sink.transmit(frame) {
                        Ok(TransmitResult::Accepted) => moved += 1,
                        Ok(TransmitResult::Full) => dropped += 1,
                        Err(fault) => eprintln!("port {to}: {fault}"),
                    }
                }
                let _ = sink.flush();
            }
        }
        if started_at.elapsed() >= Duration::from_secs(1) {
            let seconds = started_at.elapsed().as_secs_f64();
            println!(
                "{:.3} Mpps, {dropped} dropped, {:.1} frames per batch",
                moved as f64 / seconds / 1e6,
                moved as f64 / batches.max(1) as f64
            );
            (moved, dropped, batches) = (0, 0, 0);
            started_at = Instant::now();
        }
    }
}

fn apply(ends: &mut [End; 2], change: Change) {
    match change {
        Change::Source(id, source) => ends[id.port.0 as usize].source = Some(source),
        Change::Sink(id, sink) => ends[id.port.0 as usize].sink = Some(sink),
        Change::Detach(id, done) => {
            let end = &mut ends[id.port.0 as usize];
            match id.direction {
                Direction::Ingress => drop(end.source.take()),
                Direction::Egress => drop(end.sink.take()),
            }
            let _ = done.send(());
        }
    }
}
