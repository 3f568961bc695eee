//! Test bench: a NIC on a real socket, a front-end written from the specification alone, and a
//! switch that returns frames to their sender.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test binary uses a part of it")]

#[path = "../../../../ring/tests/integration/rig/mod.rs"]
pub mod rig;

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rig::{Driver, GUEST_BASE, USER_BASE, Vm, event};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use suimon_frame::FrameBatch;
use suimon_ports::{
    DeviceNotice, FrameSink, FrameSource, NegotiatedFeatures, OffloadToggles, PortDevice,
    PortDeviceSpec, PortObserver, QueueHost, TransmitResult, VhostUserMode, VhostUserNicSpec,
};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_vhost_user::{VhostUserNic, VhostUserThreads};

pub const VERSION_1: u64 = 1 << 32;
pub const PROTOCOL_FEATURES: u64 = 1 << 30;
pub const MERGEABLE: u64 = 1 << 15;
pub const CSUM: u64 = 1;
pub const GUEST_CSUM: u64 = 1 << 1;

/// Queue host that moves frames when `turn` is called: returns the frames of a VM to the VM.
#[derive(Default)]
pub struct Loopback {
    pub sources: Mutex<BTreeMap<u16, Box<dyn FrameSource>>>,
    pub sinks: Mutex<BTreeMap<u16, Box<dyn FrameSink>>>,
}

impl Loopback {
    pub fn turn(&self) -> usize {
        let mut moved = 0;
        let mut batch = FrameBatch::new();
        for (index, source) in self.sources.lock().unwrap().iter_mut() {
            batch.clear();
            if source.receive(&mut batch).is_err() {
                continue;
            }
            if let Some(sink) = self.sinks.lock().unwrap().get_mut(index) {
                for frame in batch.frames() {
                    moved += usize::from(sink.transmit(frame).unwrap() == TransmitResult::Accepted);
                }
                sink.flush().unwrap();
            }
        }
        moved
    }

    pub fn queues(&self) -> (usize, usize) {
        (self.sources.lock().unwrap().len(), self.sinks.lock().unwrap().len())
    }
}

impl QueueHost for Loopback {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        assert!(self.sources.lock().unwrap().insert(id.index, source).is_none());
    }
    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        assert!(self.sinks.lock().unwrap().insert(id.index, sink).is_none());
    }
    fn detach(&self, id: QueueId) {
        match id.direction {
            Direction::Ingress => drop(self.sources.lock().unwrap().remove(&id.index)),
            Direction::Egress => drop(self.sinks.lock().unwrap().remove(&id.index)),
        }
    }
    fn detach_port(&self, _port: PortId) {
        self.sources.lock().unwrap().clear();
        self.sinks.lock().unwrap().clear();
    }
}

pub struct NoticeSender(pub Mutex<Sender<DeviceNotice>>);

/// Creates separate threads for each device of a test.
pub fn threads() -> VhostUserThreads {
    VhostUserThreads::unconfined().unwrap()
}

impl PortObserver for NoticeSender {
    fn handle_notice(&self, _port: PortId, notice: DeviceNotice) {
        let _ = self.0.lock().unwrap().send(notice);
    }
}

/// NIC under test, and its notices.
pub struct Bench {
    pub nic: Option<VhostUserNic>,
    pub host: Arc<Loopback>,
    pub notices: Receiver<DeviceNotice>,
    pub socket: PathBuf,
    pub spec: VhostUserNicSpec,
    _directory: tempfile::TempDir,
}

impl Bench {
    pub fn new(queue_pairs: u16) -> Self {
        Self::with(queue_pairs, VhostUserMode::Server)
    }

    pub fn with(queue_pairs: u16, mode: VhostUserMode) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nic.sock");
        let spec = VhostUserNicSpec {
            socket: socket.clone(),
            mode,
            queue_pairs,
            mac: Some("52:54:00:12:34:56".parse().unwrap()),
            mtu: 9000,
            offload: OffloadToggles::default(),
            negotiated: NegotiatedFeatures::default(),
        };
        let host = Arc::new(Loopback::default());
        let (sender, notices) = channel();
        let observer = Arc::new(NoticeSender(Mutex::new(sender)));
        let nic = VhostUserNic::open(PortId(7), &spec, host.clone(), observer, &threads()).unwrap();
        Self { nic: Some(nic), host, notices, socket, spec, _directory: directory }
    }

    pub fn nic(&mut self) -> &mut VhostUserNic {
        self.nic.as_mut().unwrap()
    }

    pub fn notice(&self) -> DeviceNotice {
        self.notices.recv_timeout(LIMIT).expect("a notice")
    }

    /// Waits until the device has disconnected the front-end, and checks that the reason contains
    /// `expected` and that none of its queues remains. Expects a link-down notice if link up was
    /// reported.
    pub fn expect_violation(&self, expected: &str) {
        let mut was_announced = false;
        loop {
            match self.notice() {
                DeviceNotice::ProtocolViolation { detail } => {
                    assert!(detail.contains(expected), "{detail} | {expected}");
                    break;
                }
                DeviceNotice::LinkDown { reason } => panic!("no violation: {reason}"),
                DeviceNotice::LinkUp => was_announced = true,
                _ => {}
            }
        }
        if was_announced {
            assert!(matches!(self.notice(), DeviceNotice::LinkDown { .. }));
        }
        assert_eq!(self.host.queues(), (0, 0));
    }
}

/// Front-end's end of the socket.
pub struct FrontEnd {
    pub stream: UnixStream,
    pub acknowledged: bool,
}

impl FrontEnd {
    pub fn connect(path: &Path) -> Self {
        Self::over(UnixStream::connect(path).unwrap())
    }

    pub fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self { stream, acknowledged: false }
    }

    pub fn send_raw(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        assert_eq!(self.try_send_raw(bytes, fds), Ok(bytes.len()));
    }

    pub fn try_send_raw(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
    }

    pub fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
        let header = [request, flags, payload.len() as u32].map(u32::to_ne_bytes).concat();
        [header, payload.to_vec()].concat()
    }

    /// Sends a request. Returns true if it succeeded, as far as acknowledgements are negotiated.
    pub fn set(&mut self, request: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
        let flags = if self.acknowledged { 9 } else { 1 };
        self.send_raw(&Self::message(request, flags, payload), fds);
        !self.acknowledged || self.reply(request) == [0; 8]
    }

    pub fn get(&mut self, request: u32, payload: &[u8]) -> Vec<u8> {
        self.send_raw(&Self::message(request, 1, payload), &[]);
        self.reply(request)
    }

    pub fn get_number(&mut self, request: u32) -> u64 {
        u64::from_ne_bytes(self.get(request, &[]).try_into().unwrap())
    }

    pub fn reply(&mut self, request: u32) -> Vec<u8> {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header).unwrap();
        let word =
            |offset: usize| u32::from_ne_bytes(header[offset..offset + 4].try_into().unwrap());
        assert_eq!((word(0), word(4)), (request, 5));
        let mut payload = vec![0; word(8) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    pub fn state(index: u32, number: u32) -> Vec<u8> {
        [index, number].map(u32::to_ne_bytes).concat()
    }

    pub fn negotiate(&mut self, features: u64) {
        let offered = self.get_number(1);
        assert_eq!(features & !offered, 0, "{features:#x} of {offered:#x}");
        let protocol = self.get_number(15);
        assert!(self.set(16, &protocol.to_ne_bytes(), &[]));
        self.acknowledged = true;
        assert!(self.set(3, &[], &[]));
        assert!(self.set(2, &(features | PROTOCOL_FEATURES).to_ne_bytes(), &[]));
    }

    /// Shares the whole memory as one region.
    pub fn share_memory(&mut self, vm: &Vm, bytes: u64) -> bool {
        let table = [1, GUEST_BASE, bytes, USER_BASE, 0_u64].map(u64::to_ne_bytes).concat();
        self.set(5, &table, &[vm.file.as_fd()])
    }

    /// Receives a reply with one descriptor.
    pub fn reply_with_fd(&mut self, request: u32) -> (Vec<u8>, OwnedFd) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut header = [0; 12];
        let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
        let bytes = [IoSliceMut::new(&mut header)];
        let mut bytes = bytes;
        assert_eq!(recvmsg(&self.stream, &mut bytes, &mut control, flags).unwrap().bytes, 12);
        let word =
            |offset: usize| u32::from_ne_bytes(header[offset..offset + 4].try_into().unwrap());
        assert_eq!((word(0), word(4)), (request, 5));
        let mut payload = vec![0; word(8) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        let mut fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        (payload, fds.next().expect("a descriptor"))
    }

    /// Sets the addresses of a ring. `log_addr` is the address under which its used ring is logged.
    pub fn set_addresses(&mut self, index: u32, driver: &Driver<'_>, log_addr: Option<u64>) {
        let user = |addr: u64| USER_BASE + addr - GUEST_BASE;
        let addresses = [
            u64::from(index) | u64::from(log_addr.is_some()) << 32,
            user(driver.ring_addr),
            user(driver.used_at.0),
            user(driver.available_at.0),
            log_addr.unwrap_or(0),
        ];
        assert!(self.set(9, &addresses.map(u64::to_ne_bytes).concat(), &[]));
    }

    pub fn start_ring(&mut self, index: u32, driver: &Driver<'_>, kick: &OwnedFd, call: &OwnedFd) {
        assert!(self.set(8, &Self::state(index, u32::from(driver.size)), &[]));
        assert!(self.set(10, &Self::state(index, u32::from(driver.avail)), &[]));
        self.set_addresses(index, driver, None);
        assert!(self.set(13, &u64::from(index).to_ne_bytes(), &[call.as_fd()]));
        assert!(self.set(12, &u64::from(index).to_ne_bytes(), &[kick.as_fd()]));
        assert!(self.set(18, &Self::state(index, 1), &[]));
    }

    pub fn ring_base(&mut self, index: u32) -> u32 {
        let reply = self.get(11, &Self::state(index, 0));
        u32::from_ne_bytes(reply[4..8].try_into().unwrap())
    }
}

pub const BYTES: u64 = 0x80_0000;

/// Time limit for every condition and reply that a test waits for; generous, because the machine
/// may be loaded.
pub const LIMIT: Duration = Duration::from_secs(120);

pub fn wait_for(subject: &str, mut is_true: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !is_true() {
        assert!(Instant::now() < limit, "timeout while waiting for: {subject}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a complete session: negotiation, traffic, stop, restart, disconnect.
pub fn session(bench: &Bench, mut front_end: FrontEnd) {
    let vm = Vm::with_regions(vec![BYTES]);
    let mut rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut tx = Driver::placed(&vm, 16, 0xfffc, GUEST_BASE + 0x2000);
    let (kick, call) = (event(), event());
    front_end.negotiate(VERSION_1 | MERGEABLE | CSUM | GUEST_CSUM);
    assert!(front_end.share_memory(&vm, BYTES));
    front_end.start_ring(0, &rx, &event(), &event());
    front_end.start_ring(1, &tx, &kick, &call);
    wait_for("both rings to be attached", || bench.host.queues() == (1, 1));

    let mut sent = 0_u32;
    for round in 0..8 {
        for _ in 0..8 {
            rx.add(&[1600], false, true, &[]).unwrap();
        }
        let frame = [vec![0; 12], vec![round; 100]].concat();
        for _ in 0..8 {
            tx.add(&[112], false, false, &frame).unwrap();
        }
        sent += 8;
        assert_eq!(bench.host.turn(), 8);
        assert_eq!(tx.reap().len(), 8);
        for used in rx.reap() {
            assert_eq!(used.len, 112);
            assert_eq!(rx.contents(used.head, 112)[12..], vec![round; 100][..]);
        }
        if round == 3 {
            // The rings keep their positions across stop and start, new memory, and enable.
            assert_eq!(front_end.ring_base(1), (0xfffc_u32 + sent) & 0xffff);
            assert_eq!(bench.host.queues(), (0, 1));
            front_end.start_ring(1, &tx, &kick, &call);
            assert!(front_end.share_memory(&vm, BYTES));
            assert_eq!(bench.host.queues(), (1, 1));
            assert!(front_end.set(18, &FrontEnd::state(0, 0), &[]));
            assert_eq!(bench.host.queues(), (1, 0));
            assert!(front_end.set(18, &FrontEnd::state(0, 1), &[]));
        }
    }
    assert!(rig::count(&call) > 0, "the guest was interrupted");
    // A migrated guest is announced through its transmit ring, whose worker is woken.
    let _ = rig::count(&kick);
    assert!(front_end.set(19, &[0x52, 0x54, 0, 1, 2, 3, 0, 0], &[]));
    assert_eq!(rig::count(&kick), 1);
    rx.add(&[1600], false, true, &[]).unwrap();
    assert_eq!(bench.host.turn(), 1);
    let used = rx.reap()[0];
    let announcement = rx.contents(used.head, 72);
    assert_eq!(
        announcement[12..26],
        [255, 255, 255, 255, 255, 255, 0x52, 0x54, 0, 1, 2, 3, 0x80, 0x35]
    );
    leave(bench, front_end);
    assert_eq!(bench.host.queues(), (0, 0));
}

/// Disconnects a front-end whose link-up was reported, and waits for the link-down notice.
pub fn leave(bench: &Bench, front_end: FrontEnd) {
    drop(front_end);
    loop {
        if let DeviceNotice::LinkDown { reason } = bench.notice() {
            assert_eq!(reason, "the front-end disconnected");
            break;
        }
    }
}
