//! Tests with many devices: number of threads, and isolation of devices from each other.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use suimon_ports::{
    DetachingQueue, DeviceNotice, DiskObserver, DiskQueue, DiskQueueHost, FrameSink, FrameSource,
    NegotiatedFeatures, OffloadToggles, QueueHost, VhostUserDiskSpec, VhostUserMode,
    VhostUserNicSpec,
};
use suimon_quantity::{DiskId, PortId, QueueId};
use suimon_socket_runtime::{SocketRuntime, ThreadHooks};
use suimon_vhost_user::{VhostUserDisk, VhostUserNic, VhostUserThreads};

use crate::bench::rig::{Driver, GUEST_BASE, Vm, event};
use crate::bench::{BYTES, FrontEnd, Loopback, NoticeSender, VERSION_1, wait_for};

/// Number of devices that a test opens.
const MANY: u32 = 150;

/// Number of threads permitted in addition to those of one device: a thread that executed a message
/// may not be idle again when the next message arrives, which then uses another thread.
const BACK_SOON: usize = 4;

fn spec(folder: &std::path::Path, port: u32) -> VhostUserNicSpec {
    VhostUserNicSpec {
        socket: folder.join(format!("{port}.sock")),
        mode: VhostUserMode::Server,
        queue_pairs: 1,
        mac: None,
        mtu: 1500,
        offload: OffloadToggles::default(),
        negotiated: NegotiatedFeatures::default(),
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

pub(crate) fn open(
    folder: &std::path::Path,
    port: u32,
    threads: &VhostUserThreads,
) -> VhostUserNic {
    let (sender, _notices) = channel();
    let observer = Arc::new(NoticeSender(Mutex::new(sender)));
    let host = Arc::new(Loopback::default());
    VhostUserNic::open(PortId(port), &spec(folder, port), host, observer, threads).unwrap()
}

#[test]
fn the_number_of_threads_does_not_depend_on_the_number_of_devices() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = VhostUserThreads::unconfined().unwrap();
    let single = open(folder.path(), 0, &runtime);
    let mut first = FrontEnd::connect(&folder.path().join("0.sock"));
    assert_eq!(first.get_number(17), 1);
    let max = threads() + BACK_SOON;
    let nics: Vec<_> = (1..MANY).map(|port| open(folder.path(), port, &runtime)).collect();
    let mut front_ends: Vec<_> = (1..MANY)
        .map(|port| FrontEnd::connect(&folder.path().join(format!("{port}.sock"))))
        .collect();
    for front_end in &mut front_ends {
        assert_eq!(front_end.get_number(17), 1);
    }
    assert!(threads() <= max, "{} threads, at most {max} are permitted", threads());
    // Connections that send nothing need no thread either.
    let silent: Vec<_> = (0..MANY)
        .map(|port| UnixStream::connect(folder.path().join(format!("{port}.sock"))).unwrap())
        .collect();
    assert_eq!(first.get_number(17), 1);
    assert!(threads() <= max, "{} threads, at most {max} are permitted", threads());
    drop((silent, single, nics, front_ends));
}

/// Queue host whose workers do not return a queue before `is_over` is set.
#[derive(Default)]
struct Stalled {
    is_over: Mutex<bool>,
    over: Condvar,
}

impl QueueHost for Stalled {
    fn attach_source(&self, _id: QueueId, _source: Box<dyn FrameSource>) {}

    fn attach_sink(&self, _id: QueueId, _sink: Box<dyn FrameSink>) {}

    fn detach(&self, _id: QueueId) {
        let is_over = self.is_over.lock().unwrap();
        drop(self.over.wait_while(is_over, |is_over| !*is_over).unwrap());
    }

    fn detach_port(&self, _port: PortId) {}
}

#[test]
fn devices_that_stall_do_not_hold_up_others() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = VhostUserThreads::unconfined().unwrap();
    let stalled = Arc::new(Stalled::default());
    let vm = Vm::with_regions(vec![BYTES]);
    let mut nics = Vec::new();
    let mut stuck = Vec::new();
    for port in 0..40 {
        let (sender, notices) = channel();
        let observer = Arc::new(NoticeSender(Mutex::new(sender)));
        let spec = spec(folder.path(), port);
        let host = Arc::clone(&stalled);
        nics.push(VhostUserNic::open(PortId(port), &spec, host, observer, &runtime).unwrap());
        let rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
        let mut front_end = FrontEnd::connect(&spec.socket);
        front_end.negotiate(VERSION_1);
        assert!(front_end.share_memory(&vm, BYTES));
        front_end.start_ring(0, &rx, &event(), &event());
        // GET_VRING_BASE, which gets its reply only when the queue is detached.
        front_end.send_raw(&FrontEnd::message(11, 1, &FrontEnd::state(0, 0)), &[]);
        stuck.push((front_end, notices));
    }
    let healthy = open(folder.path(), 1000, &runtime);
    let mut front_end = FrontEnd::connect(&folder.path().join("1000.sock"));
    for _ in 0..10 {
        assert_eq!(front_end.get_number(17), 1);
    }
    drop(healthy);
    *stalled.is_over.lock().unwrap() = true;
    stalled.over.notify_all();
    for (mut front_end, notices) in stuck {
        assert_eq!(front_end.reply(11).len(), 8);
        drop(front_end);
        wait_for("the end of the connection", || {
            notices
                .recv_timeout(Duration::from_secs(60))
                .is_ok_and(|notice| matches!(notice, DeviceNotice::LinkDown { .. }))
        });
    }
}

/// Queue host that counts attached queues.
#[derive(Default)]
struct Counting(AtomicU64);

impl QueueHost for Counting {
    fn attach_source(&self, _id: QueueId, _source: Box<dyn FrameSource>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn attach_sink(&self, _id: QueueId, _sink: Box<dyn FrameSink>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn detach(&self, _id: QueueId) {}

    fn detach_port(&self, _port: PortId) {}
}

/// A guest that changes its number of queues continuously enables and disables rings.
#[test]
fn repeated_starts_and_stops_of_rings_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = VhostUserThreads::unconfined().unwrap();
    let host = Arc::new(Counting::default());
    let (sender, _notices) = channel();
    let observer = Arc::new(NoticeSender(Mutex::new(sender)));
    let spec = spec(folder.path(), 0);
    let nic = VhostUserNic::open(PortId(0), &spec, host.clone(), observer, &runtime).unwrap();
    let vm = Vm::with_regions(vec![BYTES]);
    let rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    // The limit holds over connections, and the first one is spent on a burst.
    for _ in 0..2 {
        let mut front_end = FrontEnd::connect(&spec.socket);
        front_end.negotiate(VERSION_1);
        assert!(front_end.share_memory(&vm, BYTES));
        front_end.start_ring(0, &rx, &event(), &event());
        let (before, started_at) = (host.0.load(Ordering::Relaxed), Instant::now());
        for _ in 0..1500 {
            assert!(front_end.set(18, &FrontEnd::state(0, 0), &[]));
            assert!(front_end.set(18, &FrontEnd::state(0, 1), &[]));
        }
        let attached = host.0.load(Ordering::Relaxed) - before;
        assert_eq!(attached, 1500);
        // 1024 in a burst, then 200 a second. Waiting is never shorter than that.
        let min = Duration::from_millis((attached - 1024) * 5);
        assert!(started_at.elapsed() >= min, "{attached} rings in {:?}", started_at.elapsed());
    }
    drop(nic);
}

/// Store that returns a disk's queues only after [`release`](Self::release).
#[derive(Clone, Default)]
struct StalledStore(Arc<(Mutex<BTreeSet<DiskId>>, Condvar)>);

impl StalledStore {
    /// Lets this disk return its queues.
    fn release(&self, disk: DiskId) {
        self.0.0.lock().unwrap().insert(disk);
        self.0.1.notify_all();
    }
}

struct StalledQueue(StalledStore, DiskId);

impl DetachingQueue for StalledQueue {
    fn wait(&mut self, at_most: Duration) -> bool {
        let (released, changed) = &*self.0.0;
        let released = released.lock().unwrap();
        let is_held = |released: &mut BTreeSet<DiskId>| !released.contains(&self.1);
        let (_guard, result) = changed.wait_timeout_while(released, at_most, is_held).unwrap();
        !result.timed_out()
    }
}

impl DiskQueueHost for StalledStore {
    fn attach(&self, _disk: DiskId, _index: u16, _queue: Box<dyn DiskQueue>) {}

    fn detach(&self, disk: DiskId, _index: u16) {
        while !StalledQueue(self.clone(), disk).wait(Duration::from_secs(1)) {}
    }

    fn begin_detach(&self, disk: DiskId, _index: u16) -> Box<dyn DetachingQueue> {
        Box::new(StalledQueue(self.clone(), disk))
    }

    fn detach_disk(&self, _disk: DiskId) {}
}

struct DiskNoticeSender(Mutex<Sender<DeviceNotice>>);

impl DiskObserver for DiskNoticeSender {
    fn handle_notice(&self, _disk: DiskId, notice: DeviceNotice) {
        let _ = self.0.lock().unwrap().send(notice);
    }
}

/// Creates threads for at most `blocking_max` concurrent blocking calls.
fn limited(blocking_max: usize) -> VhostUserThreads {
    let start = |name| {
        SocketRuntime::with_blocking_max(name, 1, blocking_max, ThreadHooks::default()).unwrap()
    };
    VhostUserThreads { serving_runtime: start("front-ends"), connecting_runtime: start("connect") }
}

fn disk_spec(folder: &std::path::Path, disk: u32) -> VhostUserDiskSpec {
    VhostUserDiskSpec {
        socket: folder.join(format!("disk-{disk}.sock")),
        mode: VhostUserMode::Server,
        queues: 1,
        size_bytes: 1 << 20,
        sector_bytes: 512,
        physical_sector_bytes: 4096,
        serial: String::new(),
        is_read_only: false,
        negotiated: NegotiatedFeatures::default(),
    }
}

/// Disk that stalls while its front-end waits for a ring, or after it has disconnected.
struct StalledDisk {
    disk: VhostUserDisk,
    front_end: Option<FrontEnd>,
    notices: Receiver<DeviceNotice>,
}

fn stalled_disk(
    (folder, index): (&std::path::Path, u32),
    store: &StalledStore,
    threads: &VhostUserThreads,
    vm: &Vm,
) -> StalledDisk {
    let (sender, notices) = channel();
    let (spec, observer) =
        (disk_spec(folder, index), Arc::new(DiskNoticeSender(Mutex::new(sender))));
    let host = Arc::new(store.clone());
    let disk = VhostUserDisk::open(DiskId(index), &spec, host, observer, threads).unwrap();
    let ring = Driver::placed(vm, 16, 0, GUEST_BASE);
    let mut front_end = FrontEnd::connect(&spec.socket);
    front_end.negotiate(VERSION_1);
    assert!(front_end.share_memory(vm, BYTES));
    front_end.start_ring(0, &ring, &event(), &event());
    let front_end = (index % 2 == 0).then_some(front_end);
    if let Some(front_end) = &front_end {
        front_end.send_raw(&FrontEnd::message(11, 1, &FrontEnd::state(0, 0)), &[]);
    }
    StalledDisk { disk, front_end, notices }
}

/// More disks stall than blocking calls are permitted: some with front-ends that wait for
/// GET_VRING_BASE, some whose front-ends have disconnected.
#[test]
fn more_disks_than_threads_stall_and_others_are_served_and_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (threads, store) = (limited(2), StalledStore::default());
    let vm = Vm::with_regions(vec![BYTES]);
    let mut stalled: Vec<_> =
        (0..8).map(|index| stalled_disk((folder.path(), index), &store, &threads, &vm)).collect();
    let healthy = open(folder.path(), 1000, &threads);
    let mut front_end = FrontEnd::connect(&folder.path().join("1000.sock"));
    for _ in 0..10 {
        assert_eq!(front_end.get_number(17), 1);
    }
    // Devices can be closed meanwhile, including a stalled disk that is released.
    drop(healthy);
    for index in [7, 6] {
        store.release(DiskId(index));
        drop(stalled.pop());
    }
    (0..6).for_each(|index| store.release(DiskId(index)));
    for StalledDisk { disk, front_end, notices } in stalled {
        if let Some(mut front_end) = front_end {
            assert_eq!(front_end.reply(11).len(), 8);
        }
        wait_for("the end of the connection", || {
            notices
                .recv_timeout(Duration::from_secs(60))
                .is_ok_and(|notice| matches!(notice, DeviceNotice::LinkDown { .. }))
        });
        drop(disk);
    }
}
