//! Fuzz oracle of vhost-user: an arbitrary sequence of messages of a front-end.
//!
//! The input is split into messages: request, flags, descriptors, payload. The oracle checks that
//! the device does not panic; that no queue is attached twice, and none remains attached after the
//! device is dropped; that no ring is stopped that [`VhostUserDevice::rings_to_stop`] omits; and
//! that a reply has the length in its header. Values that are no request stand for other events:
//! reading a fault, and changing the MTU.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use suimon_frame::Offloads;
use suimon_ports::{DiskQueue, DiskQueueHost, FrameSink, FrameSource, OffloadToggles, QueueHost};
use suimon_quantity::{Direction, DiskId, PortId, QueueId};
use suimon_ring::{DiskDescription, DiskProperties, OffloadMask};
use suimon_vhost_user::{
    DeviceModel, DeviceParameters, DiskModel, FeatureOffer, FrontEndMessage, HEADER_BYTES, Header,
    NicModel, Request, VhostUserDevice,
};

const MESSAGES_MAX: usize = 64;
const MEMORY_BYTES: u64 = 0x1_0000;
/// First value of the request byte that stands for another event, because no request has such a
/// code.
const BESIDE: u8 = 0xf0;

/// Queue host that records the attached queues and the number of detached ones.
#[derive(Default)]
struct Register(Mutex<BTreeSet<Queue>>, AtomicUsize);

/// Direction and index of a queue of the only port or disk.
type Queue = (Direction, u16);

impl Register {
    fn enter(&self, id: QueueId) {
        assert!(self.0.lock().unwrap().insert((id.direction, id.index)), "{id:?} attached twice");
    }
}

impl QueueHost for Register {
    fn attach_source(&self, id: QueueId, _source: Box<dyn FrameSource>) {
        self.enter(id);
    }
    fn attach_sink(&self, id: QueueId, _sink: Box<dyn FrameSink>) {
        self.enter(id);
    }
    fn detach(&self, id: QueueId) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap().remove(&(id.direction, id.index));
    }
    fn detach_port(&self, _port: PortId) {
        self.0.lock().unwrap().clear();
    }
}

impl DiskQueueHost for Register {
    fn attach(&self, disk: DiskId, index: u16, _queue: Box<dyn DiskQueue>) {
        let queue = (Direction::Ingress, index);
        assert!(self.0.lock().unwrap().insert(queue), "{index} of {disk:?} attached twice");
    }
    fn detach(&self, _disk: DiskId, index: u16) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap().remove(&(Direction::Ingress, index));
    }
    fn detach_disk(&self, _disk: DiskId) {
        self.0.lock().unwrap().clear();
    }
}

/// Sends the messages in `input` to a NIC and to a disk.
///
/// # Panics
///
/// A device violates a rule above.
pub fn check(input: &[u8]) {
    check_device(input, 2, |host| {
        let nic = NicModel {
            port: PortId(1),
            host,
            mask: Arc::new(OffloadMask::new(Offloads::TCP)),
            mac: None,
            mtu: 1500,
        };
        (DeviceModel::Nic(nic), FeatureOffer::for_nic(2, true, &OffloadToggles::default(), 0))
    });
    check_device(input, 1, |host| {
        let disk = DiskDescription {
            bytes: 1 << 20,
            sector_bytes: 512,
            is_read_only: false,
            serial: String::new(),
        };
        let facts = Arc::new(DiskProperties::new(&disk));
        let disk =
            DiskModel { disk: DiskId(1), host, properties: facts, physical_sector_bytes: 4096 };
        (DeviceModel::Disk(disk), FeatureOffer::for_disk(2, false, 0))
    });
}

/// Sends the messages to one device whose queues have `rings` rings each.
fn check_device(
    input: &[u8],
    rings: usize,
    model: impl Fn(Arc<Register>) -> (DeviceModel, FeatureOffer),
) {
    let host = Arc::new(Register::default());
    let (model, offer) = model(host.clone());
    let mut device = VhostUserDevice::new(DeviceParameters {
        model,
        offer,
        fault_eventfd: Arc::new(
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap(),
        ),
    });
    let mut remaining = input;
    for _ in 0..MESSAGES_MAX {
        let Some(([request, flags, kinds, size_words], tail)) = remaining.split_first_chunk::<4>()
        else {
            break;
        };
        let payload_bytes = (usize::from(size_words & 0x3f) * 4).min(tail.len());
        let (payload, tail) = tail.split_at(payload_bytes);
        remaining = tail;
        let header = [u32::from(*request), u32::from(*flags), payload_bytes as u32];
        let header: [u8; HEADER_BYTES] =
            header.map(u32::to_ne_bytes).as_flattened().try_into().unwrap();
        if *request >= BESIDE {
            device.set_mtu(68 + u16::from(*flags));
            assert!(device.take_fault().is_none(), "no ring was processed, so none has a fault");
            continue;
        }
        let Ok(header) = Header::decode(&header) else { continue };
        let Ok(message) = FrontEndMessage::parse(&header, payload, descriptors(*kinds)) else {
            continue;
        };
        let detached = || host.1.load(Ordering::Relaxed);
        let stops = device.rings_to_stop(&message);
        // Half of the messages are executed as by the device's task, which stops the rings first.
        if kinds & 32 == 0 {
            assert!(device.try_stop(stops, Duration::ZERO), "the register returns rings at once");
            assert!(!device.is_any_running(stops));
        }
        let before = detached();
        let is_one = !device.is_any_running(stops);
        let handled = device.handle(message);
        assert!(!is_one || detached() == before, "a ring was detached that {stops:?} omits");
        match handled {
            Ok(Some(reply)) => {
                let bytes = reply.encode(header.request);
                let size = u32::from_ne_bytes(bytes[8..12].try_into().unwrap());
                assert_eq!(bytes.len(), HEADER_BYTES + size as usize);
                let has_fd = header.request == Request::GetInflightFd;
                assert_eq!(reply.fd().is_some(), has_fd);
            }
            Ok(None) => {}
            Err(fault) => assert!(!fault.to_string().is_empty()),
        }
        assert!(usize::from(device.running_queues()) * rings <= host.0.lock().unwrap().len());
    }
    drop(device);
    assert!(host.0.lock().unwrap().is_empty(), "a queue remains attached");
}

/// Returns up to seven descriptors of one kind: eventfds, memory or sockets.
fn descriptors(kinds: u8) -> Vec<OwnedFd> {
    (0..kinds & 7)
        .map(|_| {
            if kinds & 16 != 0 {
                UnixStream::pair().unwrap().0.into()
            } else if kinds & 8 == 0 {
                eventfd(0, EventfdFlags::CLOEXEC).unwrap()
            } else {
                let fd = memfd_create("vm", MemfdFlags::CLOEXEC).unwrap();
                ftruncate(&fd, MEMORY_BYTES).unwrap();
                fd
            }
        })
        .collect()
}
