//! Tests of the events that wake a thread that waits for an uplink's queues.

use std::sync::Arc;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use suimon_ports::{DeviceNotice, FrameSink, UplinkDriver};
use suimon_quantity::PortId;

use crate::NetDevices;
use crate::testing::*;

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The kernel would wake the waiters of a socket for each of its frames that has left, to report
/// free space. Over AF_XDP this costs a tenth of the cost of the frame.
#[test]
fn sent_frames_do_not_wake_receivers() {
    for driver in [UplinkDriver::AfXdp, UplinkDriver::AfPacket] {
        let (cable, shelf) = (TestCable::new(), Arc::new(TestQueueHost::default()));
        let (observer, notices) = Notices::new();
        let spec = uplink_spec(&cable.near, driver);
        let devices = NetDevices::new().unwrap();
        let _device = devices.open_uplink(PortId(1), &spec, shelf.clone(), observer).unwrap();
        expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
        let (mut far_source, mut far_sink) = cable.far_queues();
        let (source, mut sink) = (shelf.source(1, 0), shelf.sink(1, 0));
        let waiting = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&waiting, source.wake_fd(), EventData::new_u64(0), flags).unwrap();
        let poll_events = || {
            let mut events: Vec<Event> = Vec::with_capacity(4);
            epoll::wait(&waiting, spare_capacity(&mut events), Some(&NO_WAIT)).unwrap();
            events.iter().fold(EventFlags::empty(), |all_flags, event| all_flags | event.flags)
        };
        // Free space is not reported from here on.
        poll_events();
        for index in 0..3 {
            sink.transmit(&plain_frame(100)).unwrap();
            sink.flush().unwrap();
            receive_where(&mut far_source, is_ours)
                .expect("the far end has not received the frame");
            assert!(!poll_events().contains(EventFlags::OUT), "{driver:?}, frame {index}");
        }
        far_sink.transmit(&plain_frame(100)).unwrap();
        // The kernel may deliver the frame on another CPU.
        let limit = Instant::now() + LIMIT;
        while !poll_events().contains(EventFlags::IN) {
            assert!(Instant::now() < limit, "{driver:?}");
        }
    }
}
