//! Namespaces, commands and queues of tests. They require root.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_frame::{Frame, FrameBatch, MacAddr};
use suimon_ports::{
    DeviceNotice, FrameSink, FrameSource, OffloadToggles, PortObserver, QueueFault, QueueHost,
    TransmitResult, UplinkDriver, UplinkSpec,
};
use suimon_quantity::{Direction, PortId, QueueId};

use crate::link::Link;
use crate::namespace::Namespace;
use crate::offload::SharedOffloads;
use crate::packet_queue::{PacketQueue, PacketSink, PacketSource};
use crate::packet_socket::PacketSocket;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Time limit for every condition that a test waits for; generous, because the machine may be
/// loaded.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Returns a name of at most 15 bytes that no other test uses.
pub(crate) fn unique(prefix: &str) -> String {
    format!("{prefix}{}x{}", std::process::id() % 100_000, COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Runs a command line, split at spaces, and returns its output. Panics if it fails.
pub(crate) fn run(line: &str) -> String {
    let mut arguments = line.split_whitespace();
    let output = Command::new(arguments.next().unwrap()).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Namespace that is deleted with its devices when this value is dropped.
pub(crate) struct TestNetns(String);

impl TestNetns {
    pub(crate) fn new() -> Self {
        let name = unique("smn");
        run(&format!("ip netns add {name}"));
        Self(name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Runs a command line in the namespace.
    pub(crate) fn run(&self, line: &str) -> String {
        run(&format!("ip netns exec {} {line}", self.0))
    }
}

impl Drop for TestNetns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

/// veth pair: `near` is in this process's namespace, `far0` in another one.
pub(crate) struct TestCable {
    pub(crate) near: String,
    pub(crate) peer: TestNetns,
}

impl TestCable {
    pub(crate) fn new() -> Self {
        Self::with_queues("", "")
    }

    /// Creates a pair with these numbers of queues, given as options of `ip link`.
    pub(crate) fn with_queues(near_queues: &str, far_queues: &str) -> Self {
        let (near, far) = (unique("smv"), TestNetns::new());
        let peer = format!("name far0 netns {} {far_queues}", far.name());
        run(&format!("ip link add {near} {near_queues} type veth peer {peer}"));
        run(&format!("ip link set {near} addrgenmode none"));
        far.run("ip link set far0 up addrgenmode none");
        Self { near, peer: far }
    }

    /// Waits until both ends can send, if the near one is up. The kernel lets a device send only
    /// after it has processed that the other end is up; earlier frames are lost without an error.
    fn wait_active(&self) {
        // The line contains name, state, address and flags.
        let near = || run(&format!("ip -brief link show dev {}", self.near));
        let is_active = |line: &str| line.split_whitespace().nth(1) == Some("UP");
        if !near().split(['<', ',', '>']).any(|flag| flag == "UP") {
            return;
        }
        let limit = Instant::now() + LIMIT;
        while !is_active(&near()) || !is_active(&self.peer.run("ip -brief link show dev far0")) {
            assert!(Instant::now() < limit, "the devices do not become active: {}", near());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Opens packet-socket queues on the far end.
    pub(crate) fn far_queues(&self) -> (PacketSource, PacketSink) {
        self.wait_active();
        let namespace = Namespace::open(Some(self.peer.name())).unwrap();
        let queue = namespace.run(|| {
            let index = Link::new("far0")?.index()?;
            let socket = PacketSocket::open(index).unwrap();
            socket.set_promiscuous(index).unwrap();
            let [ingress, egress] = [crate::offload::ALL; 2].map(SharedOffloads::new);
            Ok(Arc::new(PacketQueue { socket, index, device: "far0".into(), ingress, egress }))
        });
        let queue = queue.unwrap();
        (PacketSource::new(queue.clone()), PacketSink::new(queue))
    }
}

impl Drop for TestCable {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "delete", &self.near]).output();
    }
}

pub(crate) fn uplink_spec(device: &str, driver: UplinkDriver) -> UplinkSpec {
    let offload = OffloadToggles::default();
    UplinkSpec {
        device: device.to_owned(),
        driver,
        queue_pairs: 1,
        mtu: None,
        host_addresses: Vec::new(),
        offload,
    }
}

pub(crate) fn mac(last: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, last])
}

/// Returns a frame with an experimental EtherType, to which no network stack replies.
pub(crate) fn plain_frame(len: usize) -> Frame {
    let mut bytes = vec![0x5a; len];
    bytes[..6].copy_from_slice(&mac(1).octets());
    bytes[6..12].copy_from_slice(&mac(2).octets());
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame
}

pub(crate) fn is_ours(frame: &Frame) -> bool {
    frame.bytes().get(6..12) == Some(&mac(2).octets())
}

/// Queue host that keeps the attached queues for the test.
#[derive(Default)]
pub(crate) struct TestQueueHost {
    sources: Mutex<BTreeMap<QueueId, Box<dyn FrameSource>>>,
    sinks: Mutex<BTreeMap<QueueId, Box<dyn FrameSink>>>,
}

impl TestQueueHost {
    pub(crate) fn source(&self, port: u32, index: u16) -> Box<dyn FrameSource> {
        let id = QueueId { port: PortId(port), direction: Direction::Ingress, index };
        self.sources.lock().unwrap().remove(&id).expect("an attached source")
    }

    pub(crate) fn sink(&self, port: u32, index: u16) -> Box<dyn FrameSink> {
        let id = QueueId { port: PortId(port), direction: Direction::Egress, index };
        self.sinks.lock().unwrap().remove(&id).expect("an attached sink")
    }

    pub(crate) fn count(&self, port: u32) -> usize {
        let of_port = |id: &&QueueId| id.port == PortId(port);
        let sources = self.sources.lock().unwrap().keys().filter(of_port).count();
        sources + self.sinks.lock().unwrap().keys().filter(of_port).count()
    }
}

impl QueueHost for TestQueueHost {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        assert!(self.sources.lock().unwrap().insert(id, source).is_none());
    }

    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        assert!(self.sinks.lock().unwrap().insert(id, sink).is_none());
    }

    fn detach(&self, id: QueueId) {
        self.sources.lock().unwrap().remove(&id);
        self.sinks.lock().unwrap().remove(&id);
    }

    fn detach_port(&self, port: PortId) {
        self.sources.lock().unwrap().retain(|id, _| id.port != port);
        self.sinks.lock().unwrap().retain(|id, _| id.port != port);
    }
}

/// Observer that forwards notices to the test.
pub(crate) struct Notices(Mutex<Sender<(PortId, DeviceNotice)>>);

impl Notices {
    pub(crate) fn new() -> (Arc<Self>, Receiver<(PortId, DeviceNotice)>) {
        let (send, receive) = channel();
        (Arc::new(Self(Mutex::new(send))), receive)
    }
}

impl PortObserver for Notices {
    fn handle_notice(&self, port: PortId, notice: DeviceNotice) {
        let _ = self.0.lock().unwrap().send((port, notice));
    }
}

/// Waits for a notice for which `matches` returns true. Panics after [`LIMIT`].
pub(crate) fn expect_notice(
    notices: &Receiver<(PortId, DeviceNotice)>,
    matches: impl Fn(&DeviceNotice) -> bool,
) {
    let (limit, mut other_notices) = (Instant::now() + LIMIT, Vec::new());
    loop {
        let remaining = limit.saturating_duration_since(Instant::now());
        match notices.recv_timeout(remaining) {
            Ok((_, notice)) if matches(&notice) => return,
            Ok((_, notice)) => other_notices.push(notice),
            Err(_) => panic!("no such notice within {LIMIT:?}, but {other_notices:?}"),
        }
    }
}

pub(crate) fn is_down(notice: &DeviceNotice, part: &str) -> bool {
    matches!(notice, DeviceNotice::LinkDown { reason } if reason.contains(part))
}

/// Waits up to `ms` milliseconds; returns true if the source is readable.
pub(crate) fn wait_readable(source: &dyn FrameSource, ms: i64) -> bool {
    let fd = source.wake_fd();
    let limit = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap() > 0
}

/// Receives frames until one matches, and returns it; `None` after [`LIMIT`].
pub(crate) fn receive_where(
    source: &mut dyn FrameSource,
    matches: impl Fn(&Frame) -> bool,
) -> Option<Frame> {
    receive_within(LIMIT, source, matches)
}

/// Receives frames until one matches, and returns it; `None` after `time`. A short time is for
/// frames that must not arrive.
pub(crate) fn receive_within(
    time: Duration,
    source: &mut dyn FrameSource,
    matches: impl Fn(&Frame) -> bool,
) -> Option<Frame> {
    let limit = Instant::now() + time;
    let mut batch = FrameBatch::new();
    while Instant::now() < limit {
        wait_readable(source, 50);
        batch.clear();
        source.receive(&mut batch).unwrap();
        if let Some(frame) = batch.frames().iter().find(|frame| matches(frame)) {
            let mut copy = Frame::new(0);
            copy.copy_from(frame);
            return Some(copy);
        }
    }
    None
}

/// Receives frames until the queue reports a fault, and returns it. Panics after [`LIMIT`].
pub(crate) fn receive_fault(source: &mut dyn FrameSource) -> QueueFault {
    let limit = Instant::now() + LIMIT;
    let mut batch = FrameBatch::new();
    while Instant::now() < limit {
        batch.clear();
        if let Err(fault) = source.receive(&mut batch) {
            return fault;
        }
        wait_readable(source, 10);
    }
    panic!("no fault within {LIMIT:?}");
}

/// Counts of frames forwarded from a source to a sink.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForwardCounts {
    pub(crate) frames: u64,
    pub(crate) large: u64,
    pub(crate) partial: u64,
    pub(crate) longest: usize,
}

/// Forwards the available frames from `source` to `sink`.
pub(crate) fn pass(
    source: &mut dyn FrameSource,
    sink: &mut dyn FrameSink,
    batch: &mut FrameBatch,
    counts: &mut ForwardCounts,
) {
    batch.clear();
    source.receive(batch).unwrap();
    for frame in batch.frames() {
        counts.frames += 1;
        counts.large += u64::from(frame.meta.gso.is_some());
        let partial = matches!(frame.meta.checksum, suimon_frame::Checksum::Partial { .. });
        counts.partial += u64::from(partial);
        counts.longest = counts.longest.max(frame.len());
        while sink.transmit(frame).unwrap() == TransmitResult::Full {}
    }
    sink.flush().unwrap();
}
