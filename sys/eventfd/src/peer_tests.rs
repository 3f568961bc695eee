use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create};
use rustix::pipe::pipe;

use super::*;

const DEADLINE: Duration = Duration::from_secs(60);

fn event(count: u32, flags: EventfdFlags) -> OwnedFd {
    eventfd(count, flags | EventfdFlags::CLOEXEC).unwrap()
}

fn is_readable(fd: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).unwrap() == 1
}

/// Returns the result of `call`, which runs in another thread. Panics, and abandons the thread, if
/// `call` blocks.
fn returns<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, outcome) = channel();
    thread::spawn(move || sender.send(call()));
    outcome.recv_timeout(DEADLINE).expect("the call blocks")
}

/// Fills the counter and makes the descriptor blocking, as a hostile peer could.
fn jam(fd: &OwnedFd) {
    let _ = rustix::io::write(fd, &(u64::MAX - 1).to_ne_bytes());
    let flags = fcntl_getfl(fd).unwrap();
    fcntl_setfl(fd, flags - OFlags::NONBLOCK).unwrap();
}

#[test]
fn a_signal_increments_the_counter() {
    let far = event(0, EventfdFlags::NONBLOCK);
    let peer = PeerEventFd::for_signalling(far.try_clone().unwrap()).unwrap();
    assert!(!is_readable(&far), "the check changes nothing");
    // More than a context has room for.
    for _ in 0..1000 {
        peer.signal();
    }
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(&far, &mut count), Ok(8));
    assert_eq!(u64::from_ne_bytes(count), 1000);
    assert!(!is_readable(&peer));
}

#[test]
fn threads_signal_at_the_same_time_and_no_signal_is_lost() {
    let far = event(0, EventfdFlags::NONBLOCK);
    let peer = PeerEventFd::for_signalling(far).unwrap();
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| (0..200).for_each(|_| peer.signal()));
        }
    });
    assert_eq!(peer.clear(), Some(64 * 200));
}

#[test]
fn a_full_blocking_eventfd_does_not_block_a_signal() {
    let far = event(0, EventfdFlags::NONBLOCK);
    let peer = PeerEventFd::for_signalling(far.try_clone().unwrap()).unwrap();
    jam(&far);
    let peer = returns(move || {
        (0..3).for_each(|_| peer.signal());
        peer
    });
    assert!(is_readable(&peer));
    assert!(returns(move || peer.clear()).is_some());
}

#[test]
fn an_empty_blocking_eventfd_does_not_block_a_clear() {
    let far = event(0, EventfdFlags::empty());
    let peer = PeerEventFd::for_waiting(far).unwrap();
    assert_eq!(peer.clear(), Some(1), "the check signals once");
    assert_eq!(returns(move || peer.clear()), None);
}

#[test]
fn only_eventfds_are_accepted() {
    let (read_end, write_end) = pipe().unwrap();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(
        &epoll,
        event(1, EventfdFlags::empty()),
        epoll::EventData::new_u64(0),
        epoll::EventFlags::IN,
    )
    .unwrap();
    let memory = memfd_create("m", MemfdFlags::CLOEXEC).unwrap();
    let inotify = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).unwrap();
    for other in [read_end, write_end, epoll, memory, inotify] {
        let twin = other.try_clone().unwrap();
        assert!(
            matches!(PeerEventFd::for_signalling(twin), Err(EventFdError::NotAnEventFd)),
            "{other:?}"
        );
        assert!(matches!(PeerEventFd::for_waiting(other), Err(EventFdError::NotAnEventFd)));
    }
}

#[test]
fn a_semaphore_is_signalled_but_not_awaited() {
    let semaphore = event(1000, EventfdFlags::SEMAPHORE);
    assert!(PeerEventFd::for_signalling(semaphore.try_clone().unwrap()).is_ok());
    assert!(matches!(PeerEventFd::for_waiting(semaphore), Err(EventFdError::Semaphore)));
}
