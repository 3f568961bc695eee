//! Benchmark of the cost of a frame in the switch's engine with few and with many ports and
//! addresses. The queues are in memory and cost nothing.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::{FrameBatch, Offloads, VnetHeader};
use suimon_ports::{QueueFault, QueueHost, WorkerRuntime};
use suimon_processor_tests::{
    NullSink, Supply, ns_per_frame_beside_full_mailbox, ns_per_frame_of_workers, queue,
};
use suimon_quantity::{Direction, PortId, SwitchId};
use suimon_rig::wait_until;
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::WorkerThreads;

use crate::report::{Bar, Pair, Sample, Work};

const SWITCH: SwitchId = SwitchId(1);
const WINDOW: Duration = Duration::from_millis(500);
/// Length of one of several windows, of which the best counts.
const NEIGHBOUR_WINDOW: Duration = Duration::from_millis(50);
/// Maximum number of addresses learned per port.
const LEARNED_MAX: u32 = 65_536;
const FRAMES_LIMIT: Duration = Duration::from_secs(20);
/// Distance of the destination addresses of consecutive frames, so that lookups do not profit from
/// the previous one.
const STRIDE: u32 = 7919;

/// Number of ports and addresses of a switch.
#[derive(Clone, Copy, Debug)]
struct Size {
    ports: u32,
    /// Addresses, distributed over all ports but the first.
    addresses: u32,
}

const SMALL: Size = Size { ports: 2, addresses: 2 };
const MANY_PORTS: Size = Size { ports: 256, addresses: 255 };
const MANY_ADDRESSES: Size = Size { ports: 3, addresses: 100_000 };

/// Permitted increase: 20 %.
const FLAT: Bar = Bar::Ratio(0.83);

/// Measures `pairs` pairs of each size. The peer is the same switch with few ports and addresses.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let benchmarks = [
        ("ports", "A 64-byte frame's way through the engine, 256 ports", MANY_PORTS),
        ("addresses", "The same, 100 000 learned addresses", MANY_ADDRESSES),
    ];
    let measure = |(name, title, size)| {
        let peer = "Suimon with 2 ports and 2 addresses";
        let mut work =
            Work::new(&format!("engine-{name}"), title, peer, "ns").less_is_better().with_bar(FLAT);
        for _ in 0..pairs {
            let peer = Sample::without_distance(ns_per_frame(SMALL)?);
            work.push(Pair { peer, suimon: Sample::without_distance(ns_per_frame(size)?) });
        }
        Ok(work)
    };
    let mut benchmarks = benchmarks.into_iter().map(measure).collect::<Result<Vec<_>>>()?;
    benchmarks.push(measure_workers(pairs)?);
    benchmarks.push(measure_full_mailbox(pairs)?);
    Ok(benchmarks)
}

/// Measures whether busy workers delay each other by the tables that they share.
fn measure_workers(pairs: usize) -> Result<Work> {
    let title = "A 64-byte frame's way through the engine, two busy workers";
    let mut work = Work::new("engine-workers", title, "Suimon with one worker", "ns")
        .less_is_better()
        .with_bar(FLAT);
    for _ in 0..pairs {
        let peer = Sample::without_distance(ns_per_frame_of_workers(1, 1, NEIGHBOUR_WINDOW)?);
        let suimon = Sample::without_distance(ns_per_frame_of_workers(2, 1, NEIGHBOUR_WINDOW)?);
        work.push(Pair { peer, suimon });
    }
    Ok(work)
}

/// Measures whether a full mailbox slows down frames to others. Three senders do not fill it.
fn measure_full_mailbox(pairs: usize) -> Result<Work> {
    let title = "The same beside a worker that reads no mail, with its mailbox full";
    let peer = "Suimon with room in the mailbox";
    let mut work =
        Work::new("engine-full-mailbox", title, peer, "ns").less_is_better().with_bar(FLAT);
    for _ in 0..pairs {
        let peer = Sample::without_distance(ns_per_frame_beside_full_mailbox(3, NEIGHBOUR_WINDOW)?);
        let suimon =
            Sample::without_distance(ns_per_frame_beside_full_mailbox(15, NEIGHBOUR_WINDOW)?);
        work.push(Pair { peer, suimon });
    }
    Ok(work)
}

fn ns_per_frame(size: Size) -> Result<f64> {
    let runtime = Arc::new(WorkerThreads);
    let cpu = runtime.allowed_cpus()[0];
    let plane = DataPlane::start(&[cpu], runtime)?;
    let ports = (0..size.ports).map(|id| PortTopology {
        spec: ForwardingPortSpec {
            learned_addresses_max: LEARNED_MAX,
            ..ForwardingPortSpec::new(PortId(id), SWITCH, PortRole::Nic)
        },
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: false,
    });
    let switches = vec![SwitchSpec::new(SWITCH)];
    plane.publish(Topology { switches, ports: ports.collect(), teams: Vec::new() })?;
    for id in 0..size.ports {
        let sink = Box::new(NullSink(Offloads::NONE));
        plane.attach_sink(queue(id, Direction::Egress), sink);
    }
    // Each address is learned on the port to which frames are then sent.
    for id in 1..size.ports {
        let step = size.ports - 1;
        let source = Order::Once { next: id - 1, step, end: size.addresses };
        plane.attach_source(queue(id, Direction::Ingress), source.source());
    }
    let addresses = u64::from(size.addresses);
    until_handled(&plane, addresses)?;
    let learned = plane.addresses(SWITCH).len();
    ensure!(learned == size.addresses as usize, "{learned} of {} were learned", size.addresses);
    let source = Order::Endless { next: 0, of: size.addresses };
    plane.attach_source(queue(0, Direction::Ingress), source.source());
    // The first frame to each address is its first lookup.
    until_handled(&plane, addresses + 2 * addresses)?;
    let delivered =
        || (1..size.ports).map(|id| plane.port_counters(PortId(id)).tx_frames).sum::<u64>();
    let before = [plane.workers()[0].frames, delivered()];
    let started = Instant::now();
    thread::sleep(WINDOW);
    let frames = plane.workers()[0].frames - before[0];
    let ns = started.elapsed().as_nanos() as f64 / frames as f64;
    let copies = (delivered() - before[1]) as f64 / frames as f64;
    plane.stop();
    ensure!(copies < 1.01, "frames were flooded: an address was forgotten");
    Ok(ns)
}

/// Waits until the worker has handled `frames` frames since it started.
fn until_handled(plane: &DataPlane, frames: u64) -> Result<()> {
    wait_until("flow of frames", FRAMES_LIMIT, || Ok(plane.workers()[0].frames >= frames))
}

/// Order of the addresses of generated frames.
enum Order {
    /// Frames from addresses `next`, `next + step`, … below `end`, each once.
    Once { next: u32, step: u32, end: u32 },
    /// Frames to `of` addresses in turn, without end.
    Endless { next: u32, of: u32 },
}

impl Order {
    /// Returns destination and source of the next frame.
    fn next(&mut self) -> Option<[u32; 2]> {
        match self {
            Self::Once { next, end, .. } if *next >= *end => None,
            Self::Once { next, step, .. } => {
                *next += *step;
                Some([u32::MAX, *next - *step])
            }
            Self::Endless { next, of: modulus } => {
                *next = (*next + STRIDE) % *modulus;
                Some([*next, u32::MAX])
            }
        }
    }
}

impl Supply for Order {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let before = batch.len();
        while let Some(frame) = batch.next_free_frame() {
            let Some(ends) = self.next() else { break };
            let bytes = frame.space_mut();
            for (index, end) in ends.into_iter().enumerate() {
                bytes[6 * index..][..2].copy_from_slice(&[2, 0]);
                bytes[6 * index + 2..][..4].copy_from_slice(&end.to_be_bytes());
            }
            bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame.set_len(64);
            if frame.validate_ingress(&VnetHeader::default(), Offloads::NONE).is_ok() {
                batch.commit();
            }
        }
        Ok(batch.len() - before)
    }

    fn is_over(&self) -> bool {
        matches!(self, Self::Once { .. })
    }
}
