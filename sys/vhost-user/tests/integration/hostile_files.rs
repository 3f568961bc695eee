//! Tests with descriptors of hostile front-ends: eventfds that block, other files in place of
//! eventfds, and files as guest memory whose pages are not in memory.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use suimon_ports::DeviceNotice;

use crate::bench::rig::{Driver, GUEST_BASE, Vm, event};
use crate::bench::{
    BYTES, Bench, FrontEnd, LIMIT, MERGEABLE, VERSION_1, session, threads, wait_for,
};
use crate::many::open;

/// Fills an eventfd and clears `O_NONBLOCK`, which all holders of the descriptor share. A plain
/// write to it then blocks.
fn jam(fd: &OwnedFd) {
    let _ = rustix::io::read(fd, &mut [0; 8]);
    rustix::io::write(fd, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let flags = fcntl_getfl(fd).unwrap();
    fcntl_setfl(fd, flags - OFlags::NONBLOCK).unwrap();
}

/// Executes `call` in another thread. Ends the process if `call` does not return, because the bench
/// cannot be dropped then.
fn returns<T: Send + 'static>(subject: &str, call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, outcome) = channel();
    thread::spawn(move || sender.send(call()));
    outcome.recv_timeout(LIMIT / 4).unwrap_or_else(|_| {
        eprintln!("{subject} blocks");
        std::process::abort()
    })
}

#[test]
fn full_blocking_interrupt_eventfds_block_neither_worker_nor_control_thread() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let mut rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut tx = Driver::placed(&vm, 16, 0, GUEST_BASE + 0x2000);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1 | MERGEABLE);
    assert!(front_end.share_memory(&vm, BYTES));
    let (call, error) = (event(), event());
    front_end.start_ring(0, &rx, &event(), &call);
    front_end.start_ring(1, &tx, &event(), &call);
    assert!(front_end.set(14, &1_u64.to_ne_bytes(), &[error.as_fd()]));
    jam(&call);
    jam(&error);
    // The worker interrupts the guest for each ring.
    rx.add(&[1600], false, true, &[]).unwrap();
    tx.add(&[112], false, false, &[0; 112]).unwrap();
    let host = Arc::clone(&bench.host);
    assert_eq!(returns("an interrupt of a worker", move || host.turn()), 1);
    // A ring that starts interrupts the guest in a control thread.
    assert!(front_end.set(18, &FrontEnd::state(1, 0), &[]));
    assert!(front_end.set(18, &FrontEnd::state(1, 1), &[]));
    // A faulty ring signals its error eventfd.
    tx.offer(999);
    let host = Arc::clone(&bench.host);
    assert_eq!(returns("an error signal of a worker", move || host.turn()), 0);
    while !matches!(bench.notice(), DeviceNotice::ProtocolViolation { .. }) {}
    drop(front_end);
    while !matches!(bench.notice(), DeviceNotice::LinkDown { .. }) {}
    session(&bench, FrontEnd::connect(&bench.socket));
}

#[test]
fn a_kick_that_another_process_clears_does_not_block_the_worker() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let tx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1);
    assert!(front_end.share_memory(&vm, BYTES));
    let kick = event();
    front_end.start_ring(1, &tx, &kick, &event());
    // The front-end clears the counter after the worker was woken and before the worker reads it.
    let _ = rustix::io::read(&kick, &mut [0; 8]);
    let flags = fcntl_getfl(&kick).unwrap();
    fcntl_setfl(&kick, flags - OFlags::NONBLOCK).unwrap();
    let host = Arc::clone(&bench.host);
    returns("a read of a kick", move || {
        host.sources.lock().unwrap().values_mut().for_each(|source| source.disarm());
    });
}

/// An epoll instance would stay readable although the worker reads it, so that the worker would
/// never sleep.
#[test]
fn only_eventfds_are_accepted_for_kicks_and_interrupts() {
    let bench = Bench::new(1);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let inotify = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).unwrap();
    for (request, name) in [(12, "SET_VRING_KICK"), (13, "SET_VRING_CALL"), (14, "SET_VRING_ERR")] {
        for fd in [&epoll, &inotify] {
            let front_end = FrontEnd::connect(&bench.socket);
            front_end.send_raw(&FrontEnd::message(request, 1, &[0; 8]), &[fd.as_fd()]);
            bench.expect_violation(&format!("{name}: the descriptor is not an eventfd"));
        }
    }
}

/// One read does not clear a semaphore: the worker would be woken again and again.
#[test]
fn a_semaphore_is_not_accepted_as_kick() {
    let bench = Bench::new(1);
    let semaphore = eventfd(1000, EventfdFlags::SEMAPHORE).unwrap();
    let front_end = FrontEnd::connect(&bench.socket);
    front_end.send_raw(&FrontEnd::message(12, 1, &[0; 8]), &[semaphore.as_fd()]);
    bench.expect_violation("SET_VRING_KICK: vring 0: the eventfd is a semaphore");
}

/// A page fault on any other file can wait for a disk, a server or a process.
#[test]
fn only_files_in_memory_are_mapped() {
    let bench = Bench::new(1);
    let other_file = File::open("/proc/version").unwrap();
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let cases: [(u32, &str, Vec<u8>); 4] = [
        (5, "SET_MEM_TABLE", words(&[1, GUEST_BASE, 4096, 0, 0])),
        (37, "ADD_MEM_REG", words(&[0, GUEST_BASE, 4096, 0, 0])),
        (6, "SET_LOG_BASE", words(&[4096, 0])),
        (32, "SET_INFLIGHT_FD", words(&[4096, 0, 0x0010_0001])),
    ];
    for (request, name, payload) in cases {
        let front_end = FrontEnd::connect(&bench.socket);
        front_end.send_raw(&FrontEnd::message(request, 1, &payload), &[other_file.as_fd()]);
        bench.expect_violation(&format!(
            "{name}: the descriptor is not a file on tmpfs or \
                                        hugetlbfs"
        ));
    }
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// A front-end can describe any amount of memory with sparse files.
#[test]
fn a_device_maps_no_more_than_its_limit() {
    let bench = Bench::new(1);
    let file = memfd_create("sparse", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, 1 << 62).unwrap();
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1);
    let half = suimon_ring::device_bytes_max() / 2;
    let region =
        |address: u64, bytes| [0, address, bytes, address, 0].map(u64::to_ne_bytes).concat();
    assert!(front_end.set(37, &region(0, half), &[file.as_fd()]));
    assert!(front_end.set(37, &region(half, half), &[file.as_fd()]));
    // A removed region does not count.
    assert!(front_end.set(38, &region(half, half), &[]));
    assert!(front_end.set(37, &region(half, half), &[file.as_fd()]));
    assert!(!front_end.set(37, &region(2 * half, 4096), &[file.as_fd()]));
    bench.expect_violation("ADD_MEM_REG: memory region 2: with its 0x1000 bytes the mapped memory of the device exceeds");
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// Socket whose last close blocks. Dropping closes it in a separate thread: if the device has
/// closed its descriptor before, this close is the last one.
struct Lingering(Option<TcpStream>);

impl AsFd for Lingering {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().unwrap().as_fd()
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let socket = self.0.take();
        std::thread::spawn(move || drop(socket));
    }
}

/// Runs an attack of a front-end that receives a socket whose last close waits for its peer, as
/// that of a file on FUSE waits for its server. Only the device of the front-end may wait.
fn expect_no_other_device_waits(attack: impl FnOnce(&FrontEnd, Lingering)) {
    expect_no_other_device_waits_for(|path, lingering| {
        let attacker = FrontEnd::connect(path);
        attack(&attacker, lingering);
        attacker
    });
}

/// As [`expect_no_other_device_waits`], for an attack that connects to the socket itself.
fn expect_no_other_device_waits_for(attack: impl FnOnce(&Path, Lingering) -> FrontEnd) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = threads();
    let nics: Vec<_> = (0..2).map(|port| open(folder.path(), port, &runtime)).collect();
    let path = |port: u32| folder.path().join(format!("{port}.sock"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut lingering = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    lingering.set_nonblocking(true).unwrap();
    while lingering.write(&[0; 1 << 16]).is_ok() {}
    lingering.set_nonblocking(false).unwrap();
    set_socket_linger(&lingering, Some(10 * LIMIT)).unwrap();
    let attacker = attack(&path(0), Lingering(Some(lingering)));
    // The device that received the descriptor is cut off, and the other one is served.
    let mut stream = attacker.stream;
    stream.set_read_timeout(Some(LIMIT / 4)).unwrap();
    // A socket with unread messages is reset.
    let end = std::io::Read::read(&mut stream, &mut [0]);
    assert!(
        end.as_ref()
            .map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |count| *count == 0),
        "not cut off: {end:?}"
    );
    let mut other = FrontEnd::connect(&path(1));
    other.stream.set_read_timeout(Some(LIMIT / 4)).unwrap();
    assert_eq!(other.get_number(17), 1);
    // The first device is served again when the descriptor is closed.
    let mut next = FrontEnd::connect(&path(0));
    drop(peer);
    assert_eq!(next.get_number(17), 1);
    drop(nics);
}

#[test]
fn a_descriptor_whose_close_blocks_delays_no_other_device() {
    expect_no_other_device_waits(|attacker, lingering| {
        attacker.send_raw(&FrontEnd::message(1, 1, &[]), &[lingering.as_fd()]);
    });
}

/// Sends more descriptors than any message has.
#[test]
fn descriptors_that_are_too_many_delay_no_other_device() {
    expect_no_other_device_waits(|attacker, lingering| {
        let usual: Vec<OwnedFd> = (0..8).map(|_| event()).collect();
        let mut fds: Vec<_> = usual.iter().map(AsFd::as_fd).collect();
        fds.push(lingering.as_fd());
        attacker.send_raw(&FrontEnd::message(1, 1, &[]), &fds);
    });
}

#[test]
fn a_descriptor_in_a_message_that_is_not_read_delays_no_other_device() {
    expect_no_other_device_waits_for(|path, lingering| {
        // The first message ends the connection.
        let messages = [FrontEnd::message(9999, 1, &[]), FrontEnd::message(1, 1, &[])];
        let file = File::open("/dev/null").unwrap();
        // The device may have ended the connection before the second message is sent. An attacker
        // then tries again: the attack begins when the device has the message to discard.
        for _ in 0..100 {
            let attacker = FrontEnd::connect(path);
            attacker.send_raw(&messages[0], &[file.as_fd()]);
            match attacker.try_send_raw(&messages[1], &[lingering.as_fd()]) {
                Ok(12) => return attacker,
                sent => assert_eq!(sent, Err(Errno::PIPE)),
            }
        }
        panic!("the device always ends the connection first");
    });
}

#[test]
fn a_descriptor_within_a_socket_delays_no_other_device() {
    expect_no_other_device_waits(|attacker, lingering| {
        let (peer, channel) = UnixStream::pair().unwrap();
        let carrier = FrontEnd::over(peer);
        carrier.send_raw(b"x", &[lingering.as_fd()]);
        drop(lingering);
        attacker.send_raw(&FrontEnd::message(21, 1, &[]), &[channel.as_fd()]);
    });
}

/// Variable with the socket to which [`front_end_that_exits`] connects.
const CHILD_SOCKET: &str = "SUIMON_TEST_FRONT_END";

/// Process of a front-end: passes its own end of the connection as back-end channel, and exits.
/// Does nothing if it is executed as a test.
#[test]
fn front_end_that_exits() {
    let Some(path) = std::env::var_os(CHILD_SOCKET) else { return };
    let mut front_end = FrontEnd::connect(&PathBuf::from(path));
    front_end.negotiate(VERSION_1);
    let own_socket = front_end.stream.try_clone().unwrap();
    assert!(front_end.set(21, &[], &[own_socket.as_fd()]));
}

#[test]
fn a_front_end_whose_channel_is_its_own_socket_is_replaced_after_it_exits() {
    let bench = Bench::new(1);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile_files::front_end_that_exits"])
        .env(CHILD_SOCKET, &bench.socket)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    assert!(matches!(bench.notice(), DeviceNotice::LinkUp));
    // The connection is open, although no process has the other end.
    assert!(bench.notices.recv_timeout(Duration::from_millis(300)).is_err());
    // A connection that arrives replaces it, and is served.
    let next = FrontEnd::connect(&bench.socket);
    match bench.notice() {
        DeviceNotice::LinkDown { reason } => assert!(reason.contains("process exited"), "{reason}"),
        other => panic!("{other:?}"),
    }
    session(&bench, next);
    wait_for("the end", || bench.host.queues() == (0, 0));
}
