//! Benchmark: cost of a frame through an uplink over a packet socket and over AF_XDP, alternately
//! on the same veth pair.
//!
//! `uplink_cost [ROUNDS]`, as root. Creates the pair, with the far end in a separate namespace, and
//! prints the CPU time of this thread in nanoseconds per frame, for each driver, frame length and
//! direction: median, minimum and maximum of the rounds. Out: from the sink to the far end's
//! network stack, which drops the frame, for several numbers of frames per flush. In: from a packet
//! socket at the far end, whose part is the same for both drivers, to the source. All kernel work
//! is done on this thread, so the result is the complete cost. Sources are polled as by a worker.
//!
//! The result for AF_XDP out is a lower bound for any sender by such a device: the frame is written
//! to a chunk, described and sent.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use suimon_frame::{Frame, FrameBatch};
use suimon_netdev::NetDevices;
use suimon_ports::{
    DeviceNotice, FrameSink, FrameSource, OffloadToggles, PortDevice, PortObserver, QueueHost,
    UplinkDriver, UplinkSpec,
};
use suimon_quantity::{PortId, QueueId};
use suimon_test_programs::end_program;

const NETNS: &str = "smuplinkcost";
/// Number of frames per flush for a batch that leaves through one uplink.
const BATCH: usize = 32;
/// Other numbers of frames per flush: parts of a batch that a team distributes, and larger batches.
const OTHER_BATCHES: [usize; 4] = [8, 16, 64, 256];
/// Number of frames per measurement; a multiple of all numbers of frames per flush.
const FRAMES: usize = 64_000;

#[derive(Default)]
struct Shelf {
    sources: Mutex<BTreeMap<PortId, Box<dyn FrameSource>>>,
    sinks: Mutex<BTreeMap<PortId, Box<dyn FrameSink>>>,
}

impl QueueHost for Shelf {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        self.sources.lock().unwrap().insert(id.port, source);
    }
    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        self.sinks.lock().unwrap().insert(id.port, sink);
    }
    fn detach(&self, _: QueueId) {}
    fn detach_port(&self, port: PortId) {
        self.sources.lock().unwrap().remove(&port);
        self.sinks.lock().unwrap().remove(&port);
    }
}

struct Silent;

impl PortObserver for Silent {
    fn handle_notice(&self, _: PortId, _: DeviceNotice) {}
}

fn run(line: &str) -> Result<()> {
    let mut words = line.split_whitespace();
    let status = Command::new(words.next().context("a command")?).args(words).status()?;
    ensure!(status.success(), "{line}");
    Ok(())
}

/// One end of the veth pair, opened as an uplink.
struct End {
    _device: Box<dyn PortDevice>,
    source: Box<dyn FrameSource>,
    sink: Box<dyn FrameSink>,
    _watch: OwnedFd,
}

fn open(devices: &NetDevices, device: &str, driver: UplinkDriver, port: u32) -> Result<End> {
    let (queues, port) = (Arc::new(Shelf::default()), PortId(port));
    let offload = OffloadToggles::default();
    let spec = UplinkSpec {
        device: device.to_owned(),
        driver,
        queue_pairs: 1,
        mtu: None,
        host_addresses: Vec::new(),
        offload,
    };
    let opened = devices.open_uplink(port, &spec, queues.clone(), Arc::new(Silent))?;
    let source = queues.sources.lock().unwrap().remove(&port).context("a source")?;
    let sink = queues.sinks.lock().unwrap().remove(&port).context("a sink")?;
    let watch = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&watch, source.wake_fd(), EventData::new_u64(0), EventFlags::IN)?;
    Ok(End { _device: opened, source, sink, _watch: watch })
}

fn frame(len: usize, direction: &str) -> Frame {
    let mut bytes = vec![0x5a; len];
    let last = if direction == "in" { 1 } else { 9 };
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame
}

fn send(sink: &mut dyn FrameSink, frame: &Frame, count: usize) -> Result<()> {
    for _ in 0..count {
        sink.transmit(frame)?;
    }
    sink.flush()?;
    Ok(())
}

/// Returns the CPU time in ns per sent frame, with `count` frames per flush.
fn measure_egress(near: &mut End, frame: &Frame, count: usize) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..FRAMES / count {
        send(near.sink.as_mut(), frame, count)?;
    }
    Ok(start.elapsed().as_nanos() as f64 / FRAMES as f64)
}

/// Returns the CPU time in ns per received frame, and the number of frames received.
fn measure_ingress(near: &mut End, far: &mut End, frame: &Frame) -> Result<(f64, usize)> {
    let mut batch = FrameBatch::new();
    let mut received = 0;
    let start = Instant::now();
    for _ in 0..FRAMES / BATCH {
        send(far.sink.as_mut(), frame, BATCH)?;
        let mut missing = BATCH;
        for _ in 0..100 {
            batch.clear();
            let count = near.source.receive(&mut batch)?;
            received += count;
            missing = missing.saturating_sub(count);
            if missing == 0 {
                break;
            }
        }
    }
    Ok((start.elapsed().as_nanos() as f64 / FRAMES as f64, received))
}

fn main() -> ExitCode {
    end_program("uplink_cost", run_rounds())
}

fn run_rounds() -> Result<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(9), |rounds| rounds.parse());
    let rounds = rounds.context("ROUNDS is a number: uplink_cost [ROUNDS]")?;
    run(&format!("ip netns add {NETNS}"))?;
    let measured = measure(rounds);
    run(&format!("ip netns delete {NETNS}"))?;
    measured
}

fn measure(rounds: usize) -> Result<()> {
    run(&format!("ip link add smcost0 type veth peer name smcost1 netns {NETNS}"))?;
    run(&format!("ip netns exec {NETNS} ip link set smcost1 up"))?;
    // This process reaches the far end only in its namespace, so the near end is moved there too.
    run(&format!("ip link set smcost0 netns {NETNS}"))?;
    let file = std::fs::File::open(format!("/run/netns/{NETNS}"))?;
    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), kind)?;
    let devices = NetDevices::new()?;
    let mut costs: BTreeMap<(usize, String, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        let mut drivers = [("af_packet", UplinkDriver::AfPacket), ("af_xdp", UplinkDriver::AfXdp)];
        drivers.rotate_left(round % 2);
        for (name, driver) in drivers {
            let mut near = open(&devices, "smcost0", driver, 1)?;
            std::thread::sleep(std::time::Duration::from_millis(300));
            for len in [60, 1514] {
                let mut note = |measurement: String, cost| {
                    costs.entry((len, measurement, name)).or_default().push(cost);
                };
                let other_batches = OTHER_BATCHES.iter().filter(|_| driver == UplinkDriver::AfXdp);
                for count in [BATCH].iter().chain(other_batches) {
                    let cost = measure_egress(&mut near, &frame(len, "out"), *count)?;
                    note(format!("out, {count:3} a flush"), cost);
                }
                // Opened after the first measurement, because it would cause a copy of each sent
                // frame.
                let mut far = open(&devices, "smcost1", UplinkDriver::AfPacket, 9)?;
                let (cost, received) = measure_ingress(&mut near, &mut far, &frame(len, "in"))?;
                note("in".to_owned(), cost);
                ensure!(received * 100 >= FRAMES * 99, "{name}: {received} frames came");
            }
        }
    }
    for ((len, measurement, name), mut costs) in costs {
        costs.sort_by(f64::total_cmp);
        let (min, max) = (costs[0], costs[costs.len() - 1]);
        let median = costs[costs.len() / 2];
        println!(
            "{len:5} bytes {measurement:17}  {name:9}  {median:6.0} ns  ({min:.0} to {max:.0})"
        );
    }
    Ok(())
}
