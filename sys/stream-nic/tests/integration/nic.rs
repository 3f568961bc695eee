//! Tests of the NIC with successive QEMU processes, clients that violate the protocol, and an owner
//! that changes and closes it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_frame::{Frame, FrameBatch};
use suimon_ports::{
    DeviceErrorKind, DeviceNotice, FaultKind, FrameSink, FrameSource, PortDevice, PortDeviceSpec,
    PortObserver, QueueFault, QueueHost, StreamNicSpec, TransmitResult,
};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_socket_runtime::{SocketRuntime, ThreadHooks};
use suimon_stream_nic::StreamNic;

const LIMIT: Duration = Duration::from_secs(90);

/// Queue host whose queues the test services.
#[derive(Default)]
struct Rack {
    sources: Mutex<BTreeMap<QueueId, Box<dyn FrameSource>>>,
    sinks: Mutex<BTreeMap<QueueId, Box<dyn FrameSink>>>,
}

impl QueueHost for Rack {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        self.sources.lock().unwrap().insert(id, source);
    }

    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        self.sinks.lock().unwrap().insert(id, sink);
    }

    fn detach(&self, id: QueueId) {
        self.sources.lock().unwrap().remove(&id);
        self.sinks.lock().unwrap().remove(&id);
    }

    fn detach_port(&self, _: PortId) {
        self.sources.lock().unwrap().clear();
        self.sinks.lock().unwrap().clear();
    }
}

impl Rack {
    fn receive(&self) -> (usize, Option<QueueFault>) {
        let id = QueueId { port: PortId(7), direction: Direction::Ingress, index: 0 };
        let mut sources = self.sources.lock().unwrap();
        let Some(source) = sources.get_mut(&id) else { return (0, None) };
        let mut batch = FrameBatch::new();
        match source.receive(&mut batch) {
            Ok(count) => (count, None),
            Err(fault) => {
                sources.remove(&id);
                (batch.len(), Some(fault))
            }
        }
    }

    fn send(&self, frame: &[u8]) -> TransmitResult {
        let id = QueueId { port: PortId(7), direction: Direction::Egress, index: 0 };
        let mut sinks = self.sinks.lock().unwrap();
        let sink = sinks.get_mut(&id).unwrap();
        let mut filled = Frame::new(0);
        filled.set_bytes(frame);
        filled.validate_ingress_plain().unwrap();
        let result = sink.transmit(&filled).unwrap();
        sink.flush().unwrap();
        result
    }
}

struct NoticeSender(Sender<DeviceNotice>);

impl PortObserver for NoticeSender {
    fn handle_notice(&self, port: PortId, notice: DeviceNotice) {
        assert_eq!(port, PortId(7));
        self.0.send(notice).unwrap();
    }
}

/// NIC, its queue host, and its notices.
struct Bench {
    nic: StreamNic,
    rack: Arc<Rack>,
    notices: Receiver<DeviceNotice>,
    spec: StreamNicSpec,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("n-old");
        let spec = StreamNicSpec { socket, mac: None, mtu: 1500 };
        StreamNic::probe(&spec).unwrap();
        let rack = Arc::new(Rack::default());
        let (sender, notices) = channel();
        let runtime = SocketRuntime::new("nics", 1, ThreadHooks::default()).unwrap();
        let (host, observer) = (Arc::clone(&rack), Arc::new(NoticeSender(sender)));
        let nic = StreamNic::open(PortId(7), &spec, host, observer, &runtime).unwrap();
        Self { nic, rack, notices, spec, _folder: folder }
    }

    fn connect(&self) -> UnixStream {
        let qemu = UnixStream::connect(&self.spec.socket).unwrap();
        qemu.set_read_timeout(Some(LIMIT)).unwrap();
        qemu
    }

    fn next_notice(&self) -> DeviceNotice {
        self.notices.recv_timeout(LIMIT).unwrap()
    }

    /// Services the receive queue until it returns frames or a fault.
    fn receive(&self) -> (usize, Option<QueueFault>) {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            let received = self.rack.receive();
            if received.0 > 0 || received.1.is_some() {
                return received;
            }
            std::thread::yield_now();
        }
        panic!("nothing came");
    }
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

#[test]
fn frames_pass_both_ways_and_the_next_qemu_is_served() {
    let bench = Bench::new();
    assert!(!bench.nic.status().link_up);
    for number in [1, 2] {
        let mut qemu = bench.connect();
        assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
        assert_eq!((bench.nic.status().link_up, bench.nic.status().queue_pairs), (true, 1));
        qemu.write_all(&framed(&[number; 60])).unwrap();
        assert_eq!(bench.receive().0, 1);
        assert_eq!(bench.rack.send(&[number; 60]), TransmitResult::Accepted);
        let mut received = [0; 64];
        qemu.read_exact(&mut received).unwrap();
        assert_eq!(received[..], framed(&[number; 60]));
        drop(qemu);
        assert_eq!(bench.receive().1.unwrap().kind, FaultKind::Disconnected);
        let reason = "QEMU closed the connection".to_owned();
        assert_eq!(bench.next_notice(), DeviceNotice::LinkDown { reason });
        assert!(!bench.nic.status().link_up);
    }
}

#[test]
fn a_client_that_violates_the_protocol_is_disconnected_and_the_next_is_served() {
    let bench = Bench::new();
    let mut hostile = bench.connect();
    assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
    hostile.write_all(&[0xff; 64]).unwrap();
    let fault = bench.receive().1.unwrap();
    assert_eq!(fault.kind, FaultKind::ProtocolViolation);
    let DeviceNotice::ProtocolViolation { detail } = bench.next_notice() else {
        panic!("no violation")
    };
    assert!(detail.contains("4294967295") && detail.contains("69632"), "{detail}");
    assert!(matches!(bench.next_notice(), DeviceNotice::LinkDown { .. }));
    assert_eq!(hostile.read(&mut [0; 1]).unwrap_or(0), 0, "its connection is closed");
    let _good = bench.connect();
    assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
}

#[test]
fn a_second_qemu_is_rejected_unless_the_first_has_disconnected() {
    let bench = Bench::new();
    let mut first = bench.connect();
    assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
    let mut second = bench.connect();
    assert_eq!(second.read(&mut [0; 1]).unwrap(), 0, "the second connection is not closed");
    first.write_all(&framed(&[1; 60])).unwrap();
    assert_eq!(bench.receive().0, 1, "the first connection is affected");
    // The queue is not polled, as that of a throttled port.
    drop(first);
    let _third = bench.connect();
    assert!(matches!(bench.next_notice(), DeviceNotice::LinkDown { .. }));
    assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
}

#[test]
fn a_qemu_that_does_not_read_costs_frames_and_gets_the_rest_when_it_reads() {
    let bench = Bench::new();
    let mut qemu = bench.connect();
    assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
    let mut accepted = 0;
    while bench.rack.send(&[accepted as u8; 9000]) == TransmitResult::Accepted {
        accepted += 1;
        assert!(accepted < 10_000, "the socket never became full");
    }
    // No further frames are sent: the NIC itself sends the pending data.
    for number in 0..accepted {
        let mut received = vec![0; 9004];
        qemu.read_exact(&mut received).unwrap();
        assert!(received == framed(&[number as u8; 9000]), "frame {number} of {accepted}");
    }
    let deadline = Instant::now() + LIMIT;
    while bench.rack.send(&[1; 60]) == TransmitResult::Full {
        assert!(Instant::now() < deadline, "the socket has space again");
    }
}

#[test]
fn its_owner_changes_and_closes_it() {
    let mut bench = Bench::new();
    let mut qemu = bench.connect();
    assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
    let changed = StreamNicSpec { mtu: 9000, ..bench.spec.clone() };
    assert!(bench.nic.apply_spec(&PortDeviceSpec::Stream(changed.clone())).unwrap());
    assert_eq!((bench.nic.status().mtu, bench.nic.status().link_up), (9000, true));
    let too_large = StreamNicSpec { mtu: 9217, ..changed.clone() };
    let error = bench.nic.apply_spec(&PortDeviceSpec::Stream(too_large)).unwrap_err();
    assert_eq!((error.kind, error.field), (DeviceErrorKind::Unsupported, "mtu"));
    let missing_folder = StreamNicSpec { socket: PathBuf::from("/nowhere/n-old"), ..changed };
    assert_eq!(StreamNic::probe(&missing_folder).unwrap_err().kind, DeviceErrorKind::Missing);
    assert!(!bench.nic.apply_spec(&PortDeviceSpec::Stream(missing_folder)).unwrap());
    let (socket, rack) = (bench.spec.socket.clone(), Arc::clone(&bench.rack));
    drop(bench.nic);
    assert_eq!(qemu.read(&mut [0; 1]).unwrap_or(0), 0, "the connection is closed");
    assert!(!socket.exists() && rack.sources.lock().unwrap().is_empty());
}

/// The last close of some descriptors blocks for as long as the peer chooses.
#[test]
fn a_descriptor_attached_to_a_frame_blocks_no_thread() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let lingering = || {
        let mut socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 1 << 16]).is_ok() {}
        socket.set_nonblocking(false).unwrap();
        rustix::net::sockopt::set_socket_linger(&socket, Some(10 * LIMIT)).unwrap();
        (socket, peer)
    };
    let bench = Bench::new();
    let mut peers = Vec::new();
    for _ in 0..2 {
        let qemu = bench.connect();
        assert_eq!(bench.next_notice(), DeviceNotice::LinkUp);
        // The worker reads the first one; the second one is unread at the end of the connection.
        for _ in 0..2 {
            let (socket, peer) = lingering();
            send_with(&qemu, &framed(&[1; 60]), socket);
            peers.push(peer);
        }
        let (report, reports) = channel();
        let rack = Arc::clone(&bench.rack);
        std::thread::spawn(move || report.send(rack.receive()));
        reports.recv_timeout(LIMIT).expect("the worker blocks");
        drop(qemu);
        let deadline = Instant::now() + LIMIT;
        loop {
            bench.rack.receive();
            match bench.notices.try_recv() {
                Ok(DeviceNotice::LinkDown { .. }) => break,
                _ => assert!(Instant::now() < deadline, "the connection does not end"),
            }
            std::thread::yield_now();
        }
    }
}

/// Sends bytes with an attached socket. This process closes its descriptor of the socket if the
/// kernel refuses to send it.
fn send_with(qemu: &UnixStream, bytes: &[u8], attached: std::net::TcpStream) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::os::fd::AsFd;
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [attached.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let result = sendmsg(qemu, &[std::io::IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
    if result.is_err() {
        rustix::net::sockopt::set_socket_linger(&attached, None).unwrap();
    }
    // The receiver may have closed its descriptor before: then this close is the last one.
    std::thread::spawn(move || drop(attached));
}
