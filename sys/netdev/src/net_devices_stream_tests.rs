//! Tests of TCP streams between TAPs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;

/// Two namespaces whose NICs are TAPs connected by a thread of the test.
pub(super) struct Pair {
    pub(super) left: TestNetns,
    pub(super) right: TestNetns,
    pub(super) shelf: Arc<TestQueueHost>,
    devices: NetDevices,
    opened: Vec<Box<dyn PortDevice>>,
}

impl Pair {
    pub(super) fn new(offload: OffloadToggles, queue_pairs: u16) -> Self {
        let (remaining, right) = (TestNetns::new(), TestNetns::new());
        let devices = NetDevices::new().unwrap();
        let shelf = Arc::new(TestQueueHost::default());
        let (observer, _) = Notices::new();
        let mut opened = Vec::new();
        for (port, netns) in (1..).zip([&remaining, &right]) {
            let spec = TapSpec { offload, queue_pairs, ..tap_spec("tap0", netns) };
            let device = devices.open_tap(PortId(port), &spec, shelf.clone(), observer.clone());
            opened.push(device.unwrap());
            netns.run(&format!("ip address add 10.9.0.{port}/24 dev tap0"));
        }
        Self { left: remaining, right, shelf, devices, opened }
    }
}

/// Forwards frames from each source to its sink until `stop` is set. Returns the counts of each
/// pair.
fn forward(
    mut lanes: Vec<(Box<dyn FrameSource>, Box<dyn FrameSink>)>,
    stop: &AtomicBool,
) -> Vec<ForwardCounts> {
    let mut batch = FrameBatch::new();
    let mut counts = vec![ForwardCounts::default(); lanes.len()];
    while !stop.load(Ordering::Relaxed) {
        for ((source, sink), counts) in lanes.iter_mut().zip(&mut counts) {
            pass(source.as_mut(), sink.as_mut(), &mut batch, counts);
        }
        thread::yield_now();
    }
    counts
}

/// Sends `bytes` bytes over TCP from the namespace `client` to 10.9.0.2 in the namespace `server`.
/// Panics if the received bytes differ.
pub(super) fn transfer(client: &str, server: &str, bytes: usize) {
    let listener = Namespace::open(Some(server))
        .unwrap()
        .run(|| Ok(TcpListener::bind("10.9.0.2:0").unwrap()))
        .unwrap();
    let address = listener.local_addr().unwrap();
    let data: Vec<u8> = (0..bytes).map(|index| (index / 7 % 251) as u8).collect();
    let mut stream = Namespace::open(Some(client))
        .unwrap()
        .run(|| Ok(TcpStream::connect(address).unwrap()))
        .unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            stream.write_all(&data).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        assert!(received == data, "the received bytes differ");
    });
}

fn run_pair(offload: OffloadToggles, change: Option<OffloadToggles>) -> ForwardCounts {
    let mut pair = Pair::new(offload, 1);
    if let Some(offload) = change {
        for (device, netns) in pair.opened.iter_mut().zip([&pair.left, &pair.right]) {
            let spec = TapSpec { offload, ..tap_spec("tap0", netns) };
            assert!(device.apply_spec(&PortDeviceSpec::Tap(spec)).unwrap());
        }
    }
    let shelf = &pair.shelf;
    let (source, target) = (shelf.source(1, 0), shelf.sink(2, 0));
    let reverse = (shelf.source(2, 0), shelf.sink(1, 0));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarder = scope.spawn(|| forward(vec![(source, target), reverse], &stop));
        transfer(pair.left.name(), pair.right.name(), 16 << 20);
        stop.store(true, Ordering::Relaxed);
        forwarder.join().unwrap()[0]
    })
}

#[test]
fn large_frames_and_partial_checksums_travel_between_taps() {
    let counts = run_pair(OffloadToggles::default(), None);
    assert!(counts.large > 100 && counts.longest > 32_000, "{counts:?}");
    assert!(counts.partial >= counts.large);
}

#[test]
fn a_live_offload_change_applies_to_the_kernels_side() {
    let all_enabled = OffloadToggles::default();
    let no_segmentation = OffloadToggles { segmentation: false, ..all_enabled };
    let counts = run_pair(all_enabled, Some(no_segmentation));
    assert_eq!((counts.large, counts.longest), (0, 1514), "{counts:?}");
    assert!(counts.partial > 0);
    let no_tx_checksum = OffloadToggles { tx_checksum: false, ..all_enabled };
    let counts = run_pair(all_enabled, Some(no_tx_checksum));
    assert_eq!((counts.large, counts.partial), (0, 0), "{counts:?}");
    let counts = run_pair(no_tx_checksum, Some(all_enabled));
    assert!(counts.large > 0, "{counts:?}");
}

#[test]
fn a_tap_with_several_queues_carries_a_stream() {
    let pair = Pair::new(OffloadToggles::default(), 2);
    assert_eq!(pair.opened[0].status().queue_pairs, 2);
    let shelf = &pair.shelf;
    let lane = |from, to, index| (shelf.source(from, index), shelf.sink(to, index));
    let lanes = vec![lane(1, 2, 0), lane(1, 2, 1), lane(2, 1, 0), lane(2, 1, 1)];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarder = scope.spawn(|| forward(lanes, &stop));
        transfer(pair.left.name(), pair.right.name(), 4 << 20);
        stop.store(true, Ordering::Relaxed);
        forwarder.join().unwrap();
    });
    drop(pair.opened);
    pair.devices.remove_tap("tap0", Some(pair.left.name())).unwrap();
}
