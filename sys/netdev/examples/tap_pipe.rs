//! Benchmark: forwards frames between two TAPs in two namespaces in a loop, to measure the cost of
//! the devices without a switch.
//!
//! `tap_pipe NETNS-A NETNS-B [SECONDS]`: creates `tap0` in both namespaces, forwards for this time
//! and prints, per direction, frames, bytes and frames per wake-up.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_frame::FrameBatch;
use suimon_netdev::NetDevices;
use suimon_ports::{
    DeviceNotice, FrameSink, FrameSource, OffloadToggles, PortObserver, QueueHost, TapSpec,
};
use suimon_quantity::{PortId, QueueId};
use suimon_test_programs::end_program;

#[derive(Default)]
struct Shelf {
    sources: Mutex<BTreeMap<QueueId, Box<dyn FrameSource>>>,
    sinks: Mutex<BTreeMap<QueueId, Box<dyn FrameSink>>>,
}

impl QueueHost for Shelf {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        self.sources.lock().unwrap().insert(id, source);
    }
    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        self.sinks.lock().unwrap().insert(id, sink);
    }
    fn detach(&self, _: QueueId) {}
    fn detach_port(&self, _: PortId) {}
}

struct Silent;

impl PortObserver for Silent {
    fn handle_notice(&self, _: PortId, _: DeviceNotice) {}
}

#[derive(Default)]
struct Lane {
    frames: u64,
    bytes: u64,
    rounds: u64,
    full: u64,
}

fn main() -> ExitCode {
    end_program("tap_pipe", run())
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.get(3).map_or(Ok(10), |text| text.parse());
    let seconds = seconds.context("SECONDS is a number: tap_pipe NETNS-A NETNS-B [SECONDS]")?;
    let devices = NetDevices::new()?;
    let shelf = Arc::new(Shelf::default());
    let mut opened = Vec::new();
    for (port, argument) in [(0, 1), (1, 2)] {
        let spec = TapSpec {
            device: "tap0".to_owned(),
            netns: Some(
                arguments
                    .get(argument)
                    .context("name two namespaces: tap_pipe NETNS-A NETNS-B [SECONDS]")?
                    .clone(),
            ),
            queue_pairs: 1,
            mac: None,
            keeps_mac: false,
            mtu: 1500,
            offload: OffloadToggles::default(),
            may_use_kernel_path: false,
        };
        opened.push(devices.open_tap(PortId(port), &spec, shelf.clone(), Arc::new(Silent))?);
    }
    let mut sources: Vec<_> =
        std::mem::take(&mut *shelf.sources.lock().unwrap()).into_values().collect();
    let mut sinks: Vec<_> =
        std::mem::take(&mut *shelf.sinks.lock().unwrap()).into_values().collect();
    sinks.reverse();
    let mut lanes = [Lane::default(), Lane::default()];
    let mut batch = FrameBatch::new();
    let limit = Instant::now() + Duration::from_secs(seconds);
    let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while Instant::now() < limit {
        let ready = {
            let fds: Vec<_> = sources.iter().map(|source| source.wake_fd()).collect();
            let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            poll(&mut polled, Some(&wait))?;
            [!polled[0].revents().is_empty(), !polled[1].revents().is_empty()]
        };
        for (index, ready) in ready.into_iter().enumerate() {
            if !ready {
                continue;
            }
            let lane = &mut lanes[index];
            batch.clear();
            lane.frames += sources[index].receive(&mut batch)? as u64;
            lane.bytes += batch.total_bytes() as u64;
            lane.rounds += 1;
            for frame in batch.frames() {
                if sinks[index].transmit(frame)? == suimon_ports::TransmitResult::Full {
                    lane.full += 1;
                }
            }
            sinks[index].flush()?;
        }
    }
    for (name, lane) in ["a to b", "b to a"].into_iter().zip(&lanes) {
        println!(
            "{name}: {} frames, {} bytes, {:.1} frames a turn, {} not taken",
            lane.frames,
            lane.bytes,
            lane.frames as f64 / lane.rounds.max(1) as f64,
            lane.full,
        );
    }
    Ok(())
}
