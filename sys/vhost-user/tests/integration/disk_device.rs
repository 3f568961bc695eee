//! Tests of the disk with a front-end written from the specification alone, over a real socket,
//! with real memory and rings.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::bench::rig::any::AnyDriver;
use crate::bench::rig::{Driver, GUEST_BASE, Used, Vm, event};
use crate::bench::{BYTES, FrontEnd, LIMIT, PROTOCOL_FEATURES, VERSION_1, threads, wait_for};
use crate::requests::{
    DISK_BYTES, DISK_FEATURES, MemoryDisk, Offered, S_OK, Wanted, offer, writable_bytes,
};
use suimon_ports::{
    DeviceNotice, DiskObserver, DiskOp, DiskQueue, DiskQueueHost, NegotiatedFeatures,
    VhostUserDiskSpec, VhostUserDiskStatus, VhostUserMode,
};
use suimon_quantity::DiskId;
use suimon_vhost_user::VhostUserDisk;

const CONFIG_WCE: u64 = 1 << 11;
const IN_ORDER: u64 = 1 << 35;

/// Attached queue, and the simulated disk that executes its requests.
type Served = (Box<dyn DiskQueue>, MemoryDisk);

/// Queue host that services queues when `serve` is called, and completes requests in flight before
/// it returns a queue.
#[derive(Default)]
struct Store {
    queues: Mutex<BTreeMap<u16, Served>>,
}

impl Store {
    fn len(&self) -> usize {
        self.queues.lock().unwrap().len()
    }

    /// Receives the requests of queue `index`, and executes those at the positions `answers` of the
    /// requests in flight.
    fn serve(&self, index: u16, answers: &[usize]) -> Vec<DiskOp> {
        let mut queues = self.queues.lock().unwrap();
        let (queue, disk) = queues.get_mut(&index).unwrap();
        disk.receive(&mut **queue, 100);
        let operations =
            answers.iter().map(|number| disk.carry_out(&mut **queue, *number).op).collect();
        queue.flush().unwrap();
        operations
    }

    fn sectors_under_way(&self, index: u16) -> Vec<u64> {
        let queues = self.queues.lock().unwrap();
        queues[&index].1.under_way.iter().map(|request| request.range.offset() / 512).collect()
    }

    /// Simulates the death of the process: queues are not returned.
    fn die(&self) {
        for (_, (queue, _)) in std::mem::take(&mut *self.queues.lock().unwrap()) {
            std::mem::forget(queue);
        }
    }
}

impl DiskQueueHost for Store {
    fn attach(&self, disk: DiskId, index: u16, queue: Box<dyn DiskQueue>) {
        assert_eq!(disk, DiskId(3));
        let served = (queue, MemoryDisk::new(DISK_BYTES));
        assert!(self.queues.lock().unwrap().insert(index, served).is_none());
    }

    fn detach(&self, _disk: DiskId, index: u16) {
        let Some((mut queue, mut disk)) = self.queues.lock().unwrap().remove(&index) else {
            return;
        };
        while !disk.under_way.is_empty() {
            disk.carry_out(&mut *queue, 0);
        }
        let _ = queue.flush();
    }

    fn detach_disk(&self, disk: DiskId) {
        let indices: Vec<_> = self.queues.lock().unwrap().keys().copied().collect();
        indices.into_iter().for_each(|index| self.detach(disk, index));
    }
}

struct NoticeSender(Mutex<Sender<DeviceNotice>>);

impl DiskObserver for NoticeSender {
    fn handle_notice(&self, disk: DiskId, notice: DeviceNotice) {
        assert_eq!(disk, DiskId(3));
        let _ = self.0.lock().unwrap().send(notice);
    }
}

/// Disk under test, and its notices.
struct DiskBench {
    device: VhostUserDisk,
    store: Arc<Store>,
    notices: Receiver<DeviceNotice>,
    spec: VhostUserDiskSpec,
    _directory: tempfile::TempDir,
}

fn spec(socket: PathBuf) -> VhostUserDiskSpec {
    VhostUserDiskSpec {
        socket,
        mode: VhostUserMode::Server,
        queues: 2,
        size_bytes: DISK_BYTES as u64,
        sector_bytes: 512,
        physical_sector_bytes: 4096,
        serial: "the serial number".into(),
        is_read_only: false,
        negotiated: NegotiatedFeatures::default(),
    }
}

impl DiskBench {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut VhostUserDiskSpec)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut spec = spec(directory.path().join("disk.sock"));
        change(&mut spec);
        let store = Arc::new(Store::default());
        let (sender, notices) = channel();
        let observer = Arc::new(NoticeSender(Mutex::new(sender)));
        let device =
            VhostUserDisk::open(DiskId(3), &spec, store.clone(), observer, &threads()).unwrap();
        Self { device, store, notices, spec, _directory: directory }
    }

    fn connect(&self, features: u64) -> FrontEnd {
        let mut front_end = FrontEnd::connect(&self.spec.socket);
        front_end.negotiate(features);
        front_end
    }

    fn promise(&self) -> NegotiatedFeatures {
        loop {
            let notice = self.notices.recv_timeout(LIMIT).expect("a notice");
            if let DeviceNotice::FeaturesCommitted(promise) = notice {
                return promise;
            }
        }
    }
}

/// VM with one ring.
struct Guest<'a> {
    vm: &'a Vm,
    driver: AnyDriver<'a>,
}

impl<'a> Guest<'a> {
    fn new(vm: &'a Vm) -> Self {
        let driver = Driver::placed(vm, 16, 0xfffc, GUEST_BASE);
        Self { vm, driver: AnyDriver::Split(Box::new(driver)) }
    }

    fn split(&self) -> &Driver<'a> {
        match &self.driver {
            AnyDriver::Split(driver) => driver,
            AnyDriver::Packed(_) => unreachable!("it was made as a split one"),
        }
    }

    fn start(&self, front_end: &mut FrontEnd) {
        assert!(front_end.share_memory(self.vm, BYTES));
        front_end.start_ring(0, self.split(), &event(), &event());
    }

    fn offer(&mut self, request: Wanted) -> Offered {
        offer(&mut self.driver, &(request, vec![], false)).unwrap()
    }

    fn write(&mut self, sector: u64) -> Offered {
        self.offer(Wanted::write(sector, vec![sector as u8; 512]))
    }

    fn heads(&mut self) -> Vec<u16> {
        self.driver.reap_any_order().iter().map(|used| used.head).collect()
    }
}

fn ask(offset: u32, bytes: &[u8]) -> Vec<u8> {
    let header = [offset, bytes.len() as u32, 0].map(u32::to_ne_bytes).concat();
    [header, bytes.to_vec()].concat()
}

fn config(front_end: &mut FrontEnd, offset: u32, size: usize) -> Vec<u8> {
    front_end.get(24, &ask(offset, &vec![0; size]))[12..].to_vec()
}

#[test]
fn questions_are_answered() {
    let bench = DiskBench::new();
    let mut front_end = FrontEnd::connect(&bench.spec.socket);
    let features = front_end.get_number(1);
    assert_eq!(features & IN_ORDER, 0);
    // SEG_MAX, BLK_SIZE, FLUSH, TOPOLOGY, CONFIG_WCE, MQ, DISCARD, WRITE_ZEROES.
    assert_eq!(features & 0x7fff, 0x7e44 & !(1 << 8));
    assert_eq!(front_end.get_number(17), 2);
    front_end.negotiate(DISK_FEATURES | CONFIG_WCE);
    assert_eq!(config(&mut front_end, 0, 8), (DISK_BYTES as u64 / 512).to_le_bytes());
    assert_eq!(config(&mut front_end, 34, 2), [2, 0]);
    assert_eq!(config(&mut front_end, 0, 60).len(), 60);
    for (value, is_taken) in [(0, true), (1, true), (2, false)] {
        assert_eq!(front_end.set(25, &ask(32, &[value]), &[]), is_taken);
    }
    assert!(!front_end.set(25, &ask(0, &[0; 8]), &[]), "a front-end can change the capacity");
    assert!(front_end.set(25, &ask(32, &[0]), &[]));
    assert_eq!(config(&mut front_end, 32, 1), [0]);
    assert!(front_end.set(34, &[], &[]));
    assert_eq!(config(&mut front_end, 32, 1), [1], "a reset keeps the driver's choice");
    let status = VhostUserDiskStatus {
        queues: 0,
        features: Some(DISK_FEATURES | CONFIG_WCE | PROTOCOL_FEATURES),
    };
    assert_eq!(bench.device.status(), status);
}

#[test]
fn writeback_is_changed_only_by_front_ends_that_negotiated_it() {
    let bench = DiskBench::new();
    let mut front_end = bench.connect(VERSION_1);
    assert!(!front_end.set(25, &ask(32, &[0]), &[]));
}

#[test]
fn a_disk_has_no_mtu() {
    let bench = DiskBench::new();
    let mut front_end = bench.connect(VERSION_1);
    assert!(!front_end.set(20, &1500_u64.to_ne_bytes(), &[]));
}

#[test]
fn requests_complete_in_any_order_and_stopping_a_ring_waits_for_them() {
    let bench = DiskBench::new();
    let vm = Vm::with_regions(vec![BYTES]);
    let mut guest = Guest::new(&vm);
    for round in 0..3 {
        let mut front_end = bench.connect(DISK_FEATURES);
        guest.start(&mut front_end);
        wait_for("the ring to be attached", || bench.store.len() == 1);
        let read = guest.offer(Wanted::read(0, 1024));
        let offered = [guest.write(5), guest.write(6), guest.write(7)];
        assert_eq!(bench.store.serve(0, &[2, 0]).len(), 2);
        assert_eq!(guest.heads(), [offered[1].head, read.head]);
        assert_eq!(writable_bytes(&vm, &guest.driver, &read)[1024], S_OK);
        assert_eq!(bench.device.status().queues, 1);
        // Stopping waits for the two requests in flight; the position then includes them.
        assert_eq!(front_end.ring_base(0), (0xfffc_u32 + 4 * (round + 1)) & 0xffff);
        assert_eq!(guest.heads(), [offered[0].head, offered[2].head]);
        assert_eq!(bench.store.len(), 0);
        drop(front_end);
        wait_for("the end of the front-end", || bench.device.status().features.is_none());
    }
}

#[test]
fn requests_in_flight_when_the_process_died_are_repeated_in_order() {
    let vm = Vm::with_regions(vec![BYTES]);
    let mut guest = Guest::new(&vm);
    let bench = DiskBench::new();
    let mut front_end = bench.connect(DISK_FEATURES);
    let payload =
        [[0_u64; 2].map(u64::to_ne_bytes).concat(), [2_u16, 16].map(u16::to_ne_bytes).concat()];
    front_end.send_raw(&FrontEnd::message(31, 1, &payload.concat()), &[]);
    let (description, file) = front_end.reply_with_fd(31);
    assert!(front_end.set(32, &description, &[file.as_fd()]));
    guest.start(&mut front_end);
    let heads: Vec<u16> = (10..15).map(|sector| guest.write(sector).head).collect();
    bench.store.serve(0, &[3, 1]);
    assert_eq!(guest.heads(), [heads[3], heads[1]]);
    let negotiated = bench.promise();
    bench.store.die();
    drop(bench);
    guest.write(20);
    // The next process with the same front-end.
    let bench = DiskBench::with(|spec| spec.negotiated = negotiated);
    let mut front_end = bench.connect(DISK_FEATURES);
    assert!(front_end.set(32, &description, &[file.as_fd()]));
    guest.start(&mut front_end);
    bench.store.serve(0, &[]);
    assert_eq!(bench.store.sectors_under_way(0), [10, 12, 14, 20]);
    bench.store.serve(0, &[3, 2, 1, 0]);
    let returned: Vec<Used> = guest.driver.reap_any_order();
    assert_eq!(returned.len(), 4);
    assert!(guest.driver.outstanding().is_empty());
}

#[test]
fn a_resized_disk_is_reported_and_its_configuration_read_again() {
    let bench = DiskBench::new();
    let mut front_end = bench.connect(DISK_FEATURES);
    let (mut local, peer) = UnixStream::pair().unwrap();
    assert!(front_end.set(21, &[], &[peer.as_fd()]));
    drop(peer);
    bench.device.resize(DISK_BYTES as u64 * 2).unwrap();
    local.set_read_timeout(Some(LIMIT)).unwrap();
    let mut message = [0; 12];
    local.read_exact(&mut message).unwrap();
    assert_eq!(message[..], FrontEnd::message(2, 1, &[])[..]);
    assert_eq!(config(&mut front_end, 0, 8), (DISK_BYTES as u64 / 256).to_le_bytes());
    assert_eq!(bench.device.resize(1).unwrap_err().field, "bytes");
    assert_eq!(config(&mut front_end, 0, 8), (DISK_BYTES as u64 / 256).to_le_bytes());
}

#[test]
fn negotiated_features_are_kept_for_the_vm() {
    let vm = Vm::with_regions(vec![BYTES]);
    let guest = Guest::new(&vm);
    let bench = DiskBench::new();
    let mut front_end = bench.connect(DISK_FEATURES | CONFIG_WCE);
    guest.start(&mut front_end);
    let negotiated = bench.promise();
    assert_eq!(negotiated.features & DISK_FEATURES, DISK_FEATURES);
    assert_eq!(negotiated.queue_pairs, 1);
    // A read-only disk still offers the VM's features, and regardless of its earlier choice,
    // completed writes are durable.
    let bench = DiskBench::with(|spec| {
        spec.negotiated = negotiated;
        spec.is_read_only = true;
    });
    let mut front_end = FrontEnd::connect(&bench.spec.socket);
    assert_eq!(negotiated.features & !front_end.get_number(1), 0);
    assert_eq!(config(&mut front_end, 32, 1), [0]);
    let mut spec = bench.spec.clone();
    spec.queues = 1;
    assert!(
        VhostUserDisk::probe(&VhostUserDiskSpec { socket: "none".into(), ..spec.clone() }).is_ok()
    );
    spec.negotiated.queue_pairs = 2;
    assert_eq!(VhostUserDisk::probe(&spec).unwrap_err().field, "queues");
    spec.negotiated = NegotiatedFeatures { features: IN_ORDER, queue_pairs: 1 };
    assert!(VhostUserDisk::probe(&spec).is_err());
}

#[test]
fn disks_that_cannot_be_are_refused_by_field() {
    type Change = fn(&mut VhostUserDiskSpec);
    let cases: [(&str, Change); 9] = [
        ("queues", |spec| spec.queues = 0),
        ("queues", |spec| spec.queues = 65),
        ("sector_bytes", |spec| spec.sector_bytes = 256),
        ("sector_bytes", |spec| spec.sector_bytes = 8192),
        ("sector_bytes", |spec| spec.sector_bytes = 0),
        ("physical_sector_bytes", |spec| spec.physical_sector_bytes = 0),
        ("physical_sector_bytes", |spec| spec.physical_sector_bytes = 1 << 25),
        ("serial", |spec| spec.serial = "more than twenty bytes".into()),
        ("bytes", |spec| spec.size_bytes = 1000),
    ];
    for (field, change) in cases {
        let mut spec = spec("none".into());
        change(&mut spec);
        assert_eq!(VhostUserDisk::probe(&spec).unwrap_err().field, field, "{spec:?}");
    }
}
