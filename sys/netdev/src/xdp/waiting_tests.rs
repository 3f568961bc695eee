//! Who waits for frames of an AF_XDP uplink, and what wakes him.

use std::os::fd::AsFd;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use suimon_ports::FrameSink;

use super::tests::{Bench, patterned};

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The kernel runs whoever waits for a socket of which a frame has left, and says then
/// that there is room. It takes a tenth of the time that the frame takes.
#[test]
fn frames_that_leave_wake_nobody_who_waits_for_those_that_come() {
    let mut bench = Bench::new(None);
    let waiting = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
    epoll::add(&waiting, bench.source.wake_fd(), EventData::new_u64(0), flags).unwrap();
    let woken = || {
        let mut events = Vec::with_capacity(4);
        let events_room = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(waiting.as_fd(), events_room, Some(&AT_ONCE)).unwrap();
        events.iter().map(|event: &epoll::Event| event.flags).collect::<Vec<_>>()
    };
    woken();
    for _ in 0..3 {
        bench.send(&patterned(100));
        let woken_for_room = woken().iter().any(|flags| flags.contains(EventFlags::OUT));
        assert!(!woken_for_room);
    }
    bench.far_sink.transmit(&patterned(100)).unwrap();
    assert!(woken().iter().any(|flags| flags.contains(EventFlags::IN)));
}
