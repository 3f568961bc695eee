//! The NIC against a front-end written from the specification alone, over a real
//! socket, with real memory and rings.

#[path = "../../ring/tests/rig/mod.rs"]
mod rig;

use std::collections::BTreeMap;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rig::{Driver, GUEST_BASE, USER_BASE, Vm, event};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use suimon_frame::FrameBatch;
use suimon_ports::{
    DeviceNotice, FrameSink, FrameSource, OffloadSwitches, PortDevice, PortObserver, PortSpec,
    QueueHost, Sent, VhostUserMode, VhostUserPromise, VhostUserSpec,
};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_vhost_user::VhostUserNic;

const VERSION_1: u64 = 1 << 32;
const PROTOCOL_FEATURES: u64 = 1 << 30;
const MERGEABLE: u64 = 1 << 15;
const CSUM: u64 = 1;
const GUEST_CSUM: u64 = 1 << 1;

/// Holds queues and moves frames when it is told to: what a VM sends comes back.
#[derive(Default)]
struct Loopback {
    sources: Mutex<BTreeMap<u16, Box<dyn FrameSource>>>,
    sinks: Mutex<BTreeMap<u16, Box<dyn FrameSink>>>,
}

impl Loopback {
    fn turn(&self) -> usize {
        let mut moved = 0;
        let mut batch = FrameBatch::new();
        for (index, source) in self.sources.lock().unwrap().iter_mut() {
            batch.clear();
            if source.receive(&mut batch).is_err() {
                continue;
            }
            if let Some(sink) = self.sinks.lock().unwrap().get_mut(index) {
                for frame in batch.frames() {
                    moved += usize::from(sink.transmit(frame).unwrap() == Sent::Accepted);
                }
                sink.flush().unwrap();
            }
        }
        moved
    }

    fn queues(&self) -> (usize, usize) {
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

struct Ear(Mutex<Sender<DeviceNotice>>);

impl PortObserver for Ear {
    fn handle_notice(&self, _port: PortId, notice: DeviceNotice) {
        let _ = self.0.lock().unwrap().send(notice);
    }
}

/// A NIC under test, and what it reports.
struct Bench {
    nic: Option<VhostUserNic>,
    host: Arc<Loopback>,
    notices: Receiver<DeviceNotice>,
    socket: PathBuf,
    spec: VhostUserSpec,
    _directory: tempfile::TempDir,
}

impl Bench {
    fn new(queue_pairs: u16) -> Self {
        Self::with(queue_pairs, VhostUserMode::Server)
    }

    fn with(queue_pairs: u16, mode: VhostUserMode) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nic.sock");
        let spec = VhostUserSpec {
            socket: socket.clone(),
            mode,
            queue_pairs,
            mac: Some("52:54:00:12:34:56".parse().unwrap()),
            mtu: 9000,
            offload: OffloadSwitches::default(),
            promise: VhostUserPromise::default(),
        };
        let host = Arc::new(Loopback::default());
        let (sender, notices) = channel();
        let ear = Arc::new(Ear(Mutex::new(sender)));
        let nic = VhostUserNic::open(PortId(7), &spec, host.clone(), ear).unwrap();
        Self { nic: Some(nic), host, notices, socket, spec, _directory: directory }
    }

    fn nic(&mut self) -> &mut VhostUserNic {
        self.nic.as_mut().unwrap()
    }

    fn notice(&self) -> DeviceNotice {
        self.notices.recv_timeout(Duration::from_secs(5)).expect("a notice")
    }

    /// The front-end is cut off for a reason that contains `expected`; nothing of
    /// it is left. Its departure is told if its arrival was.
    fn expect_violation(&self, expected: &str) {
        let mut was_announced = false;
        loop {
            match self.notice() {
                DeviceNotice::Violation { detail } => {
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

/// A front-end's end of the socket.
struct FrontEnd {
    stream: UnixStream,
    acknowledged: bool,
}

impl FrontEnd {
    fn connect(path: &Path) -> Self {
        Self::over(UnixStream::connect(path).unwrap())
    }

    fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Self { stream, acknowledged: false }
    }

    fn send_raw(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let sent = sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
        assert_eq!(sent, Ok(bytes.len()));
    }

    fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
        let head = [request, flags, payload.len() as u32].map(u32::to_ne_bytes).concat();
        [head, payload.to_vec()].concat()
    }

    /// Sends a request; with acknowledgements on, says whether it succeeded.
    fn set(&mut self, request: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
        let flags = if self.acknowledged { 9 } else { 1 };
        self.send_raw(&Self::message(request, flags, payload), fds);
        !self.acknowledged || self.reply(request) == [0; 8]
    }

    fn get(&mut self, request: u32, payload: &[u8]) -> Vec<u8> {
        self.send_raw(&Self::message(request, 1, payload), &[]);
        self.reply(request)
    }

    fn get_number(&mut self, request: u32) -> u64 {
        u64::from_ne_bytes(self.get(request, &[]).try_into().unwrap())
    }

    fn reply(&mut self, request: u32) -> Vec<u8> {
        let mut head = [0; 12];
        self.stream.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(4)), (request, 5));
        let mut payload = vec![0; word(8) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    fn state(index: u32, number: u32) -> Vec<u8> {
        [index, number].map(u32::to_ne_bytes).concat()
    }

    fn negotiate(&mut self, features: u64) {
        let offered = self.get_number(1);
        assert_eq!(features & !offered, 0, "{features:#x} of {offered:#x}");
        let protocol = self.get_number(15);
        assert!(self.set(16, &protocol.to_ne_bytes(), &[]));
        self.acknowledged = true;
        assert!(self.set(3, &[], &[]));
        assert!(self.set(2, &(features | PROTOCOL_FEATURES).to_ne_bytes(), &[]));
    }

    /// One region of all the memory.
    fn share_memory(&mut self, vm: &Vm, bytes: u64) -> bool {
        let table = [1, GUEST_BASE, bytes, USER_BASE, 0_u64].map(u64::to_ne_bytes).concat();
        self.set(5, &table, &[vm.file.as_fd()])
    }

    fn start_ring(&mut self, index: u32, driver: &Driver<'_>, kick: &OwnedFd, call: &OwnedFd) {
        let user = |addr: u64| USER_BASE + addr - GUEST_BASE;
        assert!(self.set(8, &Self::state(index, u32::from(driver.size)), &[]));
        assert!(self.set(10, &Self::state(index, u32::from(driver.avail)), &[]));
        let addresses = [
            u64::from(index),
            user(driver.ring_addr),
            user(driver.used_at.0),
            user(driver.available_at.0),
            0,
        ];
        assert!(self.set(9, &addresses.map(u64::to_ne_bytes).concat(), &[]));
        assert!(self.set(13, &u64::from(index).to_ne_bytes(), &[call.as_fd()]));
        assert!(self.set(12, &u64::from(index).to_ne_bytes(), &[kick.as_fd()]));
        assert!(self.set(18, &Self::state(index, 1), &[]));
    }

    fn ring_base(&mut self, index: u32) -> u32 {
        let reply = self.get(11, &Self::state(index, 0));
        u32::from_ne_bytes(reply[4..8].try_into().unwrap())
    }
}

const BYTES: u64 = 0x80_0000;

fn wait_for(what: &str, mut is_true: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(5);
    while !is_true() {
        assert!(Instant::now() < limit, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A whole life: negotiation, traffic, stop, restart, departure.
fn session(bench: &Bench, mut front_end: FrontEnd) {
    let vm = Vm::with_regions(vec![BYTES]);
    let mut rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut tx = Driver::placed(&vm, 16, 0xfffc, GUEST_BASE + 0x2000);
    let (kick, call) = (event(), event());
    front_end.negotiate(VERSION_1 | MERGEABLE | CSUM | GUEST_CSUM);
    assert!(front_end.share_memory(&vm, BYTES));
    front_end.start_ring(0, &rx, &event(), &event());
    front_end.start_ring(1, &tx, &kick, &call);
    wait_for("both rings with the host", || bench.host.queues() == (1, 1));

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
            // The rings move on by stop and start, by new memory, and by enable.
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
    // A migrated guest is announced by its transmit ring, which is woken for it.
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
    drop(front_end);
    loop {
        if let DeviceNotice::LinkDown { reason } = bench.notice() {
            assert_eq!(reason, "the front-end left");
            break;
        }
    }
    assert_eq!(bench.host.queues(), (0, 0));
}

#[test]
fn frames_go_round_and_the_next_front_end_finds_the_nic_new() {
    let bench = Bench::new(2);
    for _ in 0..3 {
        session(&bench, FrontEnd::connect(&bench.socket));
    }
}

#[test]
fn as_client_it_connects_again_and_again() {
    let bench = Bench::with(1, VhostUserMode::Client);
    for _ in 0..2 {
        let listener = std::os::unix::net::UnixListener::bind(&bench.socket).unwrap();
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        std::fs::remove_file(&bench.socket).unwrap();
        session(&bench, FrontEnd::over(stream));
    }
}

#[test]
fn questions_are_answered() {
    let mut bench = Bench::new(4);
    let mut front_end = FrontEnd::connect(&bench.socket);
    assert_eq!(front_end.get_number(17), 4);
    assert_eq!(front_end.get_number(36), suimon_ring::REGIONS_MAX as u64);
    front_end.negotiate(VERSION_1);
    assert!(front_end.set(39, &7_u64.to_ne_bytes(), &[]));
    assert_eq!(front_end.get_number(40), 7);
    let ask = |offset: u32, size: u32| {
        let head = [offset, size, 0].map(u32::to_ne_bytes).concat();
        [head, vec![0; size as usize]].concat()
    };
    let config = front_end.get(24, &ask(0, 12));
    assert_eq!(config[12..], [0x52, 0x54, 0, 0x12, 0x34, 0x56, 1, 0, 4, 0, 0x28, 0x23]);
    assert_eq!(front_end.get(24, &ask(20, 12)).len(), 12, "outside: no bytes");
    // Refused, and the connection goes on.
    assert!(front_end.set(20, &1500_u64.to_ne_bytes(), &[]));
    assert!(!front_end.set(20, &9001_u64.to_ne_bytes(), &[]));
    assert!(!front_end.set(25, &[ask(0, 0), vec![]].concat(), &[]));
    assert!(front_end.set(34, &[], &[]));
    assert_eq!(front_end.get_number(40), 0);
    // A second front-end is turned away and the first stays.
    let mut second = UnixStream::connect(&bench.socket).unwrap();
    second.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(second.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(front_end.get_number(17), 4);
    let status = bench.nic().status();
    assert_eq!((status.link_up, status.features), (false, Some(VERSION_1 | PROTOCOL_FEATURES)));
    // Closing does not wait for anybody.
    let before = Instant::now();
    drop(bench.nic.take());
    assert!(before.elapsed() < Duration::from_secs(1));
    assert!(!bench.socket.exists());
}

#[test]
fn offloads_change_live_and_stay_offered_to_a_vm_that_has_them() {
    let mut bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let tx = Driver::placed(&vm, 16, 0, GUEST_BASE + 0x2000);
    let (kick, call) = (event(), event());
    let off = OffloadSwitches { rx_checksum: false, tx_checksum: false, ..Default::default() };
    for _ in 0..2 {
        let mut front_end = FrontEnd::connect(&bench.socket);
        front_end.negotiate(VERSION_1 | CSUM | GUEST_CSUM);
        assert!(front_end.share_memory(&vm, BYTES));
        front_end.start_ring(0, &rx, &kick, &call);
        front_end.start_ring(1, &tx, &kick, &call);
        let to = VhostUserSpec { offload: off, mtu: 1500, ..bench.spec.clone() };
        assert_eq!(bench.nic().change(&PortSpec::VhostUser(to)).ok(), Some(true));
        let status = bench.nic().status();
        assert!(status.ingress.checksum && !status.egress.checksum && status.mtu == 1500);
        let sinks = bench.host.sinks.lock().unwrap();
        assert!(!sinks[&0].offloads().checksum);
        drop(sinks);
        let more = VhostUserSpec { queue_pairs: 2, ..bench.spec.clone() };
        assert_eq!(bench.nic().change(&PortSpec::VhostUser(more)).ok(), Some(false));
        drop(front_end);
        wait_for("the rings' return", || bench.host.queues() == (0, 0));
    }
}

/// Each of these ends the front-end's time, by name, and the next one is served.
#[test]
fn hostile_front_ends_are_cut_off_and_the_nic_survives() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    type Attack<'a> = &'a dyn Fn(&mut FrontEnd);
    let table = |regions: &[[u64; 4]]| {
        let words = [&[regions.len() as u64], regions.as_flattened()].concat();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
    };
    let file = vm.file.as_fd();
    let message = FrontEnd::message;
    let attacks: [(&str, Attack<'_>); 14] = [
        ("request 99 is unknown", &|fe| fe.send_raw(&message(99, 1, &[]), &[])),
        ("SET_FEATURES: `size` 4096", &|fe| {
            let head = [2_u32, 1, 4096].map(u32::to_ne_bytes).concat();
            fe.send_raw(&head, &[]);
        }),
        ("SET_FEATURES: bits 0x200000000 were not offered", &|fe| {
            fe.send_raw(&message(2, 1, &(1_u64 << 33).to_ne_bytes()), &[]);
        }),
        ("SET_PROTOCOL_FEATURES: bits 0x100 were not", &|fe| {
            fe.send_raw(&message(16, 1, &0x100_u64.to_ne_bytes()), &[]);
        }),
        ("SET_VRING_NUM: vring 2, this NIC has 2", &|fe| {
            fe.send_raw(&message(8, 1, &FrontEnd::state(2, 16)), &[]);
        }),
        ("GET_FEATURES: 1 descriptors, 0 expected", &|fe| {
            fe.send_raw(&message(1, 1, &[]), &[file]);
        }),
        ("more than 8 descriptors", &|fe| fe.send_raw(&message(1, 1, &[]), &[file; 12])),
        ("the connection ended after 7 of 12 bytes", &|fe| {
            fe.send_raw(&message(1, 1, &[])[..7], &[]);
            fe.stream.shutdown(std::net::Shutdown::Both).unwrap();
        }),
        ("the connection ended after 15 of 20 bytes", &|fe| {
            fe.send_raw(&message(2, 1, &[0; 8])[..15], &[]);
            fe.stream.shutdown(std::net::Shutdown::Write).unwrap();
        }),
        ("memory regions overlap at guest address", &|fe| {
            let table = table(&[[0, 0x2000, 0, 0], [0x1000, 0x1000, 0x9000, 0]]);
            fe.send_raw(&message(5, 1, &table), &[file, file]);
        }),
        ("memory region 0: the file has 0x800000 bytes", &|fe| {
            fe.send_raw(&message(5, 1, &table(&[[0, BYTES + 1, 0, 0]])), &[file]);
        }),
        ("SET_VRING_KICK: vring 0: the descriptor is not an eventfd", &|fe| {
            fe.send_raw(&message(12, 1, &[0; 8]), &[file]);
        }),
        ("is not inside one memory region", &|fe| {
            assert!(fe.share_memory(&vm, 0x1000));
            fe.set(8, &FrontEnd::state(1, 1024), &[]);
            let addresses = [1_u64, USER_BASE, USER_BASE, USER_BASE, 0];
            fe.set(9, &addresses.map(u64::to_ne_bytes).concat(), &[]);
            fe.set(12, &1_u64.to_ne_bytes(), &[event().as_fd()]);
        }),
        ("REM_MEM_REG: no region", &|fe| {
            fe.set(38, &[0; 40], &[]);
        }),
    ];
    for (expected, attack) in attacks {
        let mut front_end = FrontEnd::connect(&bench.socket);
        attack(&mut front_end);
        bench.expect_violation(expected);
    }
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// The memory goes away under running rings.
#[test]
fn a_bad_table_while_rings_run_takes_them_back() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let driver = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1);
    assert!(front_end.share_memory(&vm, BYTES));
    front_end.start_ring(1, &driver, &event(), &event());
    assert_eq!(bench.host.queues(), (1, 0));
    assert!(!front_end.share_memory(&vm, 0));
    bench.expect_violation("memory region 0: size 0");
    let mut byte = front_end.stream;
    assert_eq!(byte.read(&mut [0]).unwrap(), 0);
    let _ = byte.write(&[0]);
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// QEMU 7.2 has a vhost device for each queue pair, and each adds all regions.
#[test]
fn a_region_that_is_added_again_changes_nothing() {
    let bench = Bench::new(2);
    let vm = Vm::with_regions(vec![BYTES]);
    let driver = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1);
    let region = [0, GUEST_BASE, BYTES, USER_BASE, 0_u64].map(u64::to_ne_bytes).concat();
    for _ in 0..2 {
        assert!(front_end.set(37, &region, &[vm.file.as_fd()]));
        front_end.start_ring(1, &driver, &event(), &event());
        assert_eq!(bench.host.queues(), (1, 0));
    }
}
