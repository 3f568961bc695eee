//! Tests that a worker allocates no memory per frame: neither for frames between its own queues,
//! nor for frames to queues of other workers beyond a pool that is allocated once. The global
//! allocator counts the allocations.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::{FrameBatch, Offloads};
use suimon_ports::{FrameSink, QueueFault, QueueHost, TransmitResult, WorkerRuntime};
use suimon_processor_tests::{EndlessSource, NullSink, Supply, mac, queue, small_frame};
use suimon_quantity::{Direction, PortId, SwitchId, WorkerId};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::WorkerThreads;

struct Counting;

static ON_WORKERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if IS_WORKER.try_with(Cell::get).unwrap_or(false) {
        ON_WORKERS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is forwarded to the system allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Supply or sink that marks the thread that polls it as a worker.
struct Marking<Q>(Q);

impl Supply for Marking<EndlessSource> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        IS_WORKER.set(true);
        self.0.fill(batch)
    }
}

impl FrameSink for Marking<NullSink> {
    fn transmit(&mut self, frame: &suimon_frame::Frame) -> Result<TransmitResult, QueueFault> {
        IS_WORKER.set(true);
        self.0.transmit(frame)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.0.flush()
    }

    fn offloads(&self) -> Offloads {
        self.0.offloads()
    }
}

/// Returns a source of small frames that are not TCP.
fn small(source_number: u8) -> EndlessSource {
    EndlessSource::new(small_frame(source_number, 1 - source_number))
}

/// Returns a source of TCP segments that can be coalesced.
fn stream(source_number: u8) -> EndlessSource {
    EndlessSource::stream([mac(1 - source_number), mac(source_number)], 32, 1448)
}

/// Returns the number of frames delivered to port 1 and the number of allocations of the workers in
/// the same time, measured after a warm-up.
fn run(source: fn(u8) -> EndlessSource, processors: usize, sink_at: WorkerId) -> (u64, u64) {
    let runtime = Arc::new(WorkerThreads);
    let cpus = runtime.allowed_cpus();
    let plane = DataPlane::start(&cpus[..processors], runtime).unwrap();
    let port = |id| PortTopology {
        spec: ForwardingPortSpec::new(PortId(id), SwitchId(1), PortRole::Nic),
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    let switches = vec![SwitchSpec::new(SwitchId(1))];
    plane.publish(Topology { switches, ports: vec![port(0), port(1)], teams: Vec::new() }).unwrap();
    for id in 0..2_u8 {
        let sink = Marking(NullSink(Offloads::TCP));
        plane.attach_sink(queue(id.into(), Direction::Egress), Box::new(sink));
        let source = Marking(source(id));
        plane.attach_source(queue(id.into(), Direction::Ingress), source.source());
    }
    plane.move_queue(queue(0, Direction::Ingress), WorkerId(0)).unwrap();
    plane.move_queue(queue(1, Direction::Egress), sink_at).unwrap();
    let delivered = || {
        let port = plane.port_counters(PortId(1));
        port.tx_frames + port.software_coalesced_segments - port.software_coalesced_frames
    };
    let grow_by = |frames: u64| {
        let start_count = delivered();
        let started = Instant::now();
        while delivered() < start_count + frames {
            assert!(started.elapsed() < Duration::from_secs(120), "frames do not flow");
            suimon_processor_tests::sleep_briefly();
        }
        delivered() - start_count
    };
    grow_by(50_000);
    let before = ON_WORKERS.load(Ordering::Relaxed);
    let frames = grow_by(1_000_000);
    let allocations = ON_WORKERS.load(Ordering::Relaxed) - before;
    plane.stop();
    (frames, allocations)
}

#[test]
fn frames_cost_no_allocation() {
    for source in [small, stream] {
        let (frames, allocations) = run(source, 1, WorkerId(0));
        assert_eq!(allocations, 0, "for {frames} frames that stay with their processor");
        // A worker allocates buffers for frames in transit to other workers when their number
        // reaches a new maximum: at most 1024 plus one batch of 32, each with a message. The number
        // depends on the delay of the receiving worker. Both workers send to each other, and each
        // has lists that grow.
        let (frames, allocations) = run(source, 2, WorkerId(1));
        let max_allocations = 2 * (2 * (1024 + 32) + 64);
        assert!(
            allocations <= max_allocations,
            "{allocations} for {frames} frames to another processor"
        );
    }
}
