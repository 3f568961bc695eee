//! Tests of the bandwidth limit of a NIC in virtual time: the limit is not exceeded, and it is
//! fully used while the guest has more to send.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::{Frame, MacAddr, Offloads};
use suimon_ports::{FrameSink, QueueFault, QueueHost, TransmitResult, WorkerRuntime};
use suimon_processor_tests::{EndlessSource, Supply, TestClockRuntime, mac, queue, small_frame};
use suimon_quantity::{BitRate, Direction, PortId, SwitchId, Time};
use suimon_switch::{DataPlane, PortTopology, Topology};

/// Virtual time that passes in each round of the worker.
const ROUND: Duration = Duration::from_micros(2);
/// Number of frames that consume the burst allowance of 64 KiB.
const BURST_FRAMES: usize = 2048;
/// Number of frames from which the rate is computed.
const FRAMES: usize = 40_000;

/// Sink that records the time and length of each frame.
struct Meter {
    clock: Arc<AtomicU64>,
    arrivals: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl FrameSink for Meter {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        let arrival = (self.clock.load(Ordering::Relaxed), frame.len() as u64);
        self.arrivals.lock().unwrap().push(arrival);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}

/// A guest that always has frames to send, and the record of the forwarded frames.
struct Bench {
    plane: DataPlane,
    arrivals: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Bench {
    /// Starts the plane with a clock that begins at `start`, which stands for the uptime of the
    /// host.
    fn new(start: Duration, limit: Option<BitRate>) -> Self {
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap();
        let clock = Arc::new(AtomicU64::new(ns(start)));
        let (read, pass) = (Arc::clone(&clock), Arc::clone(&clock));
        let step = ns(ROUND);
        let runtime =
            TestClockRuntime::new(move || Time::from_ns(read.fetch_add(step, Ordering::Relaxed)));
        let runtime = runtime.with_clock_advance(move |until| {
            pass.fetch_max(until.as_ns(), Ordering::Relaxed);
        });
        let cpu = runtime.allowed_cpus()[0];
        let plane = DataPlane::start(&[cpu], Arc::new(runtime)).unwrap();
        let arrivals = Arc::<Mutex<Vec<(u64, u64)>>>::default();
        let bench = Self { plane, arrivals };
        bench.limit(limit);
        let meter = Meter { clock, arrivals: Arc::clone(&bench.arrivals) };
        bench.plane.attach_sink(queue(1, Direction::Egress), Box::new(meter));
        let source = EndlessSource::new(small_frame(0, 1)).source();
        bench.plane.attach_source(queue(0, Direction::Ingress), source);
        bench
    }

    /// Changes the bandwidth limit of the guest.
    fn limit(&self, limit: Option<BitRate>) {
        let port = |id: u8, bandwidth| PortTopology {
            spec: ForwardingPortSpec {
                mac: Some(MacAddr::new(mac(id))),
                ..ForwardingPortSpec::new(PortId(id.into()), SwitchId(1), PortRole::Nic)
            },
            bandwidth,
            storm_limit_fps: None,
            receive_coalescing: true,
        };
        let switches = vec![SwitchSpec::new(SwitchId(1))];
        let ports = vec![port(0, limit), port(1, None)];
        self.plane.publish(Topology { switches, ports, teams: Vec::new() }).unwrap();
    }

    /// Waits for `frames` further frames, and returns the time and length of each.
    fn pass(&self, frames: usize) -> Vec<(u64, u64)> {
        let count = || self.arrivals.lock().unwrap().len();
        let (started, before) = (Instant::now(), count());
        while count() < before + frames {
            assert!(started.elapsed() < Duration::from_secs(120), "{} frames passed", count());
            suimon_processor_tests::sleep_briefly();
        }
        self.arrivals.lock().unwrap()[before..before + frames].to_vec()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.plane.stop();
    }
}

/// Returns the forwarded bits per second under a limit.
fn passed(limit: Option<BitRate>) -> u64 {
    let bench = Bench::new(Duration::ZERO, limit);
    bench.pass(BURST_FRAMES);
    let arrivals = bench.pass(FRAMES);
    let bits = 8 * arrivals[1..].iter().map(|(_, bytes)| bytes).sum::<u64>();
    bits * 1_000_000_000 / (arrivals[FRAMES - 1].0 - arrivals[0].0)
}

#[test]
fn bandwidth_is_held_within_five_percent() {
    for limit in [200_000_000, 50_000_000] {
        let passed = passed(BitRate::new(limit));
        assert!(passed.abs_diff(limit) <= limit / 20, "{passed} bit/s with a limit of {limit}");
    }
    assert!(passed(None) > 1_000_000_000, "nothing else limits it");
}

/// A debt under the old limit does not delay frames under the new one, for any uptime of the host.
#[test]
fn a_limit_that_changes_live_does_not_hold_frames_back() {
    let limits = [200_000_000, 20_000_000, 2_000_000, 50_000_000, 1_000_000_000, 3_000_000];
    for up_s in [10, 1000, 6180, 100_000, 3_000_000] {
        let bench = Bench::new(Duration::from_secs(up_s), BitRate::new(limits[0]));
        bench.pass(4 * BURST_FRAMES);
        for limit in &limits[1..] {
            bench.limit(BitRate::new(*limit));
            let arrivals = bench.pass(4 * BURST_FRAMES);
            let gaps = arrivals.windows(2).map(|pair| pair[1].0 - pair[0].0);
            let longest = Duration::from_nanos(gaps.max().unwrap_or_default());
            // A batch of 32 frames takes 8 ms at the lowest rate.
            assert!(longest < Duration::from_secs(1), "{limit} after {up_s} s: {longest:?}");
        }
    }
}
