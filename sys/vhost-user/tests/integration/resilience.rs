//! Tests of a NIC's resilience: unknown peers at its socket, guests that break their rings, and
//! reconnecting front-ends.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bench::rig::{Driver, GUEST_BASE, USER_BASE, Vm, event};
use crate::bench::{BYTES, Bench, FrontEnd, LIMIT, Loopback, MERGEABLE, VERSION_1, leave, session};
use suimon_ports::{DeviceNotice, PortDevice, PortDeviceSpec, VhostUserMode, VhostUserNicSpec};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const MTU: u64 = 1 << 3;

/// Returns a frame of 100 bytes as the driver submits it, with an empty virtio-net header.
pub(crate) fn frame(byte: u8) -> Vec<u8> {
    [vec![0; 12], vec![byte; 100]].concat()
}

/// Starts a VM with one pair of running rings.
pub(crate) fn start<'a>(
    front_end: &mut FrontEnd,
    vm: &'a Vm,
    features: u64,
) -> (Driver<'a>, Driver<'a>) {
    let rx = Driver::placed(vm, 16, 0, GUEST_BASE);
    let tx = Driver::placed(vm, 16, 0, GUEST_BASE + 0x2000);
    front_end.negotiate(features);
    assert!(front_end.share_memory(vm, BYTES));
    front_end.start_ring(0, &rx, &event(), &event());
    front_end.start_ring(1, &tx, &event(), &event());
    (rx, tx)
}

/// Sends one frame and receives it back.
pub(crate) fn echo(host: &Loopback, rx: &mut Driver<'_>, tx: &mut Driver<'_>, byte: u8) {
    rx.add(&[1600], false, true, &[]).unwrap();
    tx.add(&[112], false, false, &frame(byte)).unwrap();
    assert_eq!(host.turn(), 1);
    assert_eq!(tx.reap().len(), 1);
    let used = rx.reap();
    assert_eq!(used.len(), 1);
    assert_eq!(rx.contents(used[0].head, 112)[12..], vec![byte; 100][..]);
}

fn is_closed(stream: &mut UnixStream) -> bool {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.read(&mut [0]).unwrap_or(0) == 0
}

/// Returns the next notice other than `FeaturesCommitted`.
fn notice(bench: &Bench) -> DeviceNotice {
    loop {
        match bench.notice() {
            DeviceNotice::FeaturesCommitted(_) => {}
            other => return other,
        }
    }
}

#[test]
fn silent_connections_are_not_reported_and_do_not_block_others() {
    let bench = Bench::new(1);
    let mut silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&bench.socket).unwrap()).collect();
    drop(UnixStream::connect(&bench.socket).unwrap());
    // At most eight silent connections are kept; a further one replaces the oldest.
    assert!(silent[..20 - 8].iter_mut().all(is_closed));
    let mut front_end = FrontEnd::connect(&bench.socket);
    assert_eq!(front_end.get_number(17), 1);
    assert_eq!(bench.notice(), DeviceNotice::LinkUp);
    // Once there is a front-end, the other connections are closed.
    assert!(silent.iter_mut().all(is_closed));
    drop(front_end);
    assert!(matches!(bench.notice(), DeviceNotice::LinkDown { .. }));
    // A peer that sends invalid data is reported, but never was a front-end.
    let invalid_client = FrontEnd::connect(&bench.socket);
    invalid_client.send_raw(b"GET / HTTP/1.1\r\n\r\n", &[]);
    assert!(matches!(bench.notice(), DeviceNotice::ProtocolViolation { .. }));
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// Connections are served in the order in which they arrive: one that sends invalid data does not
/// affect the next one.
#[test]
fn a_client_behind_invalid_ones_is_served() {
    let invalid_client = Bench::new(1);
    for _ in 0..20 {
        let invalid_clients: Vec<_> = (0..3)
            .map(|_| {
                let stranger = FrontEnd::connect(&invalid_client.socket);
                stranger.send_raw(&[0xee; 64], &[]);
                stranger
            })
            .collect();
        let mut front_end = FrontEnd::connect(&invalid_client.socket);
        assert_eq!(front_end.get_number(17), 1);
        drop((invalid_clients, front_end));
        while !matches!(invalid_client.notice(), DeviceNotice::LinkDown { .. }) {}
    }
}

#[test]
fn other_connections_do_not_affect_the_front_end_that_is_served() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let mut front_end = FrontEnd::connect(&bench.socket);
    let (mut rx, mut tx) = start(&mut front_end, &vm, VERSION_1 | MERGEABLE);
    for round in 0..100 {
        let mut invalid_client = UnixStream::connect(&bench.socket).unwrap();
        assert!(is_closed(&mut invalid_client));
        echo(&bench.host, &mut rx, &mut tx, round);
    }
    assert_eq!(front_end.get_number(17), 1);
    assert_eq!(bench.notice(), DeviceNotice::LinkUp);
    assert!(matches!(notice(&bench), DeviceNotice::Negotiated { queue_pairs: 1, .. }));
    assert!(bench.notices.try_recv().is_err(), "another connection was reported");
}

/// Tracing subscriber that counts the log entries of all threads.
struct Lines(Arc<AtomicUsize>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Neither rejected messages nor other connections cause unlimited log entries, and other
/// connections are closed at a limited rate.
#[test]
fn log_lines_that_a_vm_can_cause_are_limited() {
    let lines = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::set_global_default(Lines(Arc::clone(&lines))).unwrap();
    let bench = Bench::new(1);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1 | MTU);
    let started_at = Instant::now();
    for _ in 0..1000 {
        // NET_SET_MTU with more than the port supports.
        assert!(!front_end.set(20, &65_000_u64.to_ne_bytes(), &[]));
    }
    for _ in 0..21 {
        assert!(is_closed(&mut UnixStream::connect(&bench.socket).unwrap()));
    }
    // 4 at the beginning of each period of 100 ms.
    assert!(started_at.elapsed() >= Duration::from_millis(500), "{:?}", started_at.elapsed());
    // At most one entry of each kind in 10 s, however long the test takes.
    let max = 2 * (1 + started_at.elapsed().as_secs() as usize / 10);
    let written = lines.load(Ordering::Relaxed);
    assert!((2..=max).contains(&written), "{written} lines, at most {max}");
    assert_eq!(front_end.get_number(17), 1);
}

/// Waits until a front-end's disconnect was reported.
fn wait_for_departure(bench: &Bench) {
    while !matches!(bench.notice(), DeviceNotice::LinkDown { .. }) {}
}

/// Minimum time for 12 successive front-ends that disconnect at once: the sum of the pauses between
/// them, which double from 5 ms to 100 ms.
const PAUSES_TOTAL_MIN: Duration = Duration::from_millis(755);

#[test]
fn front_ends_that_leave_at_once_are_slowed_down() {
    let bench = Bench::new(1);
    let started_at = Instant::now();
    for _ in 0..12 {
        let mut front_end = FrontEnd::connect(&bench.socket);
        assert_eq!(front_end.get_number(17), 1);
        drop(front_end);
        wait_for_departure(&bench);
    }
    assert!(started_at.elapsed() >= PAUSES_TOTAL_MIN, "{:?}", started_at.elapsed());
}

#[test]
fn a_front_end_that_listens_and_leaves_at_once_is_not_connected_to_in_a_loop() {
    let bench = Bench::with(1, VhostUserMode::Client);
    let listener = UnixListener::bind(&bench.socket).unwrap();
    drop(listener.accept().unwrap());
    let started_at = Instant::now();
    for _ in 1..12 {
        drop(listener.accept().unwrap());
    }
    assert!(started_at.elapsed() >= PAUSES_TOTAL_MIN, "{:?}", started_at.elapsed());
}

#[test]
fn an_incomplete_message_ends_the_session() {
    let bench = Bench::new(1);
    let stuck = FrontEnd::connect(&bench.socket);
    stuck.send_raw(&FrontEnd::message(2, 1, &[0; 8])[..15], &[]);
    bench.expect_violation("15 of 20 bytes of a message were received, the rest did not follow");
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// A guest breaks its ring. Its NIC reports that and stops, and the connection stays open. The NIC
/// starts again when the guest reinitialises its driver.
#[test]
fn a_broken_ring_stops_its_nic_until_the_guest_restarts_it() {
    let mut bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let mut front_end = FrontEnd::connect(&bench.socket);
    for round in 0..3 {
        let (mut rx, mut tx) = start(&mut front_end, &vm, VERSION_1 | MERGEABLE);
        front_end.acknowledged = true;
        echo(&bench.host, &mut rx, &mut tx, round);
        loop {
            if matches!(bench.notice(), DeviceNotice::Negotiated { .. }) {
                break;
            }
        }
        // The driver claims more entries than the ring has.
        tx.available.idx().store(u16::to_le(tx.avail.wrapping_add(17)));
        assert_eq!(bench.host.turn(), 0);
        match notice(&bench) {
            DeviceNotice::ProtocolViolation { detail } => {
                assert!(detail.contains("queue 1: available index"), "{detail}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(bench.host.queues(), (0, 0), "the other ring stops too");
        assert!(!bench.nic().status().link_up);
        // Only an orderly stop permits a new start.
        assert!(front_end.set(18, &FrontEnd::state(0, 0), &[]));
        assert!(front_end.set(18, &FrontEnd::state(0, 1), &[]));
        assert_eq!(bench.host.queues(), (0, 0));
        assert_eq!(front_end.ring_base(1), 1);
        assert_eq!(front_end.ring_base(0), 1);
        front_end.acknowledged = false;
    }
    // Otherwise the next session would receive this one's notice.
    leave(&bench, front_end);
    session(&bench, FrontEnd::connect(&bench.socket));
}

#[test]
fn memory_that_every_queue_pair_removes_is_removed_once() {
    let bench = Bench::new(2);
    let vm = Vm::with_regions(vec![BYTES]);
    let driver = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1);
    let region = [0, GUEST_BASE, BYTES, USER_BASE, 0_u64].map(u64::to_ne_bytes).concat();
    for _ in 0..2 {
        assert!(front_end.set(37, &region, &[vm.file.as_fd()]));
    }
    front_end.start_ring(1, &driver, &event(), &event());
    assert_eq!(bench.host.queues(), (1, 0));
    for _ in 0..2 {
        assert!(front_end.set(38, &region, &[]));
        assert_eq!(bench.host.queues(), (0, 0), "no ring runs without memory");
    }
    assert!(front_end.set(37, &region, &[vm.file.as_fd()]));
    assert_eq!(bench.host.queues(), (1, 0));
}

/// The front-end may cache configuration space, so it is notified.
#[test]
fn a_front_end_is_notified_when_configuration_space_changes() {
    let mut changed = Bench::new(1);
    let mut front_end = FrontEnd::connect(&changed.socket);
    front_end.negotiate(VERSION_1);
    let (mut local, peer) = UnixStream::pair().unwrap();
    assert!(front_end.set(21, &[], &[peer.as_fd()]));
    drop(peer);
    let changed_spec = VhostUserNicSpec { mtu: 1400, ..changed.spec.clone() };
    assert_eq!(changed.nic().apply_spec(&PortDeviceSpec::VhostUser(changed_spec)).ok(), Some(true));
    local.set_read_timeout(Some(LIMIT)).unwrap();
    let mut message = [0; 12];
    local.read_exact(&mut message).unwrap();
    assert_eq!(message[..], FrontEnd::message(2, 1, &[])[..]);
    let payload = [[10_u32, 2, 0].map(u32::to_ne_bytes).concat(), vec![0; 2]].concat();
    assert_eq!(front_end.get(24, &payload)[12..], 1400_u16.to_le_bytes());
    // A descriptor that is not a socket is rejected, as is a channel that was not negotiated.
    assert!(!front_end.set(21, &[], &[event().as_fd()]));
    changed.expect_violation("SET_BACKEND_REQ_FD: the descriptor is not a Unix socket");
    let front_end = FrontEnd::connect(&changed.socket);
    front_end.send_raw(&FrontEnd::message(21, 1, &[]), &[local.as_fd()]);
    changed.expect_violation("SET_BACKEND_REQ_FD: its protocol feature (bit 5) was not negotiated");
}

/// The MTU that a running guest has negotiated does not change.
#[test]
fn a_negotiated_mtu_is_not_changed() {
    let mut bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let mut front_end = FrontEnd::connect(&bench.socket);
    let _rings = start(&mut front_end, &vm, VERSION_1 | MTU);
    let changed = VhostUserNicSpec { mtu: 1400, ..bench.spec.clone() };
    assert_eq!(bench.nic().apply_spec(&PortDeviceSpec::VhostUser(changed)).ok(), Some(false));
}
