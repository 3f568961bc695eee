//! Descriptors of hostile front-ends: eventfds that block, other files in place of eventfds, and
//! files as guest memory whose pages are not in memory.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use rustix::event::epoll;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use suimon_ports::DeviceNotice;

use crate::bench::rig::{Driver, GUEST_BASE, Vm, event};
use crate::bench::{BYTES, Bench, FrontEnd, LIMIT, MERGEABLE, VERSION_1, session};

/// Fills an eventfd and clears `O_NONBLOCK`, which all holders of the descriptor share. A plain
/// write to it then blocks.
fn jam(fd: &OwnedFd) {
    let _ = rustix::io::read(fd, &mut [0; 8]);
    rustix::io::write(fd, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let flags = fcntl_getfl(fd).unwrap();
    fcntl_setfl(fd, flags - OFlags::NONBLOCK).unwrap();
}

/// Calls `call` in another thread. If it does not return, ends the process, because the bench can
/// then not be dropped.
fn returns<T: Send + 'static>(what: &str, call: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = channel();
    thread::spawn(move || done.send(call()));
    outcome.recv_timeout(LIMIT / 4).unwrap_or_else(|_| {
        eprintln!("{what} blocks");
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
    while !matches!(bench.notice(), DeviceNotice::Violation { .. }) {}
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
            bench.expect_violation(&format!("{name}: vring 0: the descriptor is not an eventfd"));
        }
    }
}
