//! Workers with disks on one modelled device, in virtual time. Time advances directly to the next
//! event: an action of a client, the device or a worker.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use suimon_image::{ByteRange, DiskGeometry, LinearImage};
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::testing::NullFile;
use suimon_ports::{
    ArmResult, DiskFile, DiskOp, DiskRequest, FileCompletion, FileIo, FileRequest, FileSlot,
};
use suimon_quantity::{DiskId, Iops, StoreId, Time, WorkerId};
use suimon_storage_qos::{
    CATCH_UP_WINDOW, Capacity, DiskSlot, Limits, LimitsSource, Normalization, Proposal, Store,
    StoreSpec,
};

use crate::queue::QueueKind;
use crate::testing::fake_queue::{Client, FakeQueue, Payloads};
use crate::testing::random_numbers::RandomNumbers;
use crate::{SharedBudget, StorageEngine, StoreDiskSlot};

pub(crate) const STORE: StoreId = StoreId(7);
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Maximum duration of a worker's round in nanoseconds, if there are several workers.
pub(crate) const DELAY_MAX_NS: u64 = 50_000;
const DISK_BYTES: u64 = 1 << 30;

/// Device that serves a number of requests concurrently, and further ones in order of arrival.
pub(crate) struct Device {
    pub(crate) now: u64,
    pub(crate) service_ns: u64,
    /// Service time in ns of a write; `None` if it is that of other requests.
    pub(crate) write_ns: Option<u64>,
    /// Times in ns at which the servers become free, earliest first.
    servers: BinaryHeap<Reverse<u64>>,
    /// Start time in ns and charged operations of each started request, by disk.
    pub(crate) started: BTreeMap<u32, Vec<(u64, u64)>>,
    /// Started requests in order: address of the payloads of the request's queue, and tag.
    order: Vec<(usize, u32)>,
}

impl Device {
    /// Returns the number of operations of a disk that started from `start` to `until`, in ns.
    pub(crate) fn count(&self, disk: u32, start: u64, until: u64) -> u64 {
        let is_within = |(time, _): &&(u64, u64)| (start..until).contains(time);
        self.started.get(&disk).map_or(0, |starts| {
            starts.iter().filter(is_within).map(|start_entry| start_entry.1).sum()
        })
    }

    /// Returns the maximum, over all time windows from `since` on, of the operations started by
    /// these disks together minus the operations that `rate` permits in the window.
    pub(crate) fn excess(&self, disks: &[u32], rate: u64, since: u64) -> f64 {
        let mut starts: Vec<(u64, u64)> =
            disks.iter().filter_map(|disk| self.started.get(disk)).flatten().copied().collect();
        starts.retain(|(time, _)| *time >= since);
        starts.sort_unstable();
        let (mut sum, mut lowest, mut highest) = (0.0f64, f64::MAX, 0.0f64);
        for (time, cost) in starts {
            let allowed = rate as f64 * time as f64 / SECOND as f64;
            lowest = lowest.min(sum - allowed);
            sum += cost as f64;
            highest = highest.max(sum - allowed - lowest);
        }
        highest
    }
}

struct DeviceIo {
    device: Arc<Mutex<Device>>,
    files: Vec<u32>,
    pending: BTreeMap<(u64, u64), u64>,
    next: u64,
    fd: File,
}

impl FileIo for DeviceIo {
    fn capacity(&self) -> usize {
        4096
    }
    fn add_file(&mut self, file: Arc<dyn DiskFile>) -> io::Result<FileSlot> {
        self.files.push(file.as_any().downcast_ref::<NullFile>().unwrap().number);
        Ok(FileSlot(self.files.len() as u32 - 1))
    }
    fn remove_file(&mut self, _: FileSlot) {}
    fn submit(&mut self, file: FileSlot, op: FileRequest<'_>, token: u64) -> bool {
        let mut device = self.device.lock().unwrap();
        let is_write = matches!(op, FileRequest::Write { .. });
        let bytes = match op {
            FileRequest::Read { destination: part, .. }
            | FileRequest::Write { source: part, .. } => {
                let payloads = part.payloads.downcast_ref::<Payloads>().unwrap();
                device.order.push((Arc::as_ptr(payloads) as usize, part.tag));
                part.len
            }
            _ => 0,
        };
        let cost = Normalization::default().cost(bytes as u32);
        let now = device.now;
        let disk = self.files[file.0 as usize];
        device.started.entry(disk).or_default().push((now, cost.into()));
        let Reverse(free) = device.servers.pop().unwrap();
        let service_ns = device.write_ns.filter(|_| is_write).unwrap_or(device.service_ns);
        let completed_at = free.max(now) + service_ns;
        device.servers.push(Reverse(completed_at));
        self.pending.insert((completed_at, self.next), token);
        self.next += 1;
        true
    }
    fn submit_queued(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn poll_completions(&mut self, completions: &mut Vec<FileCompletion>) -> usize {
        let now = self.device.lock().unwrap().now;
        let before = completions.len();
        while let Some(first) = self.pending.first_entry().filter(|first| first.key().0 <= now) {
            completions.push(FileCompletion { token: first.remove(), result: Ok(Vec::new()) });
        }
        completions.len() - before
    }
    fn in_flight(&self) -> usize {
        self.pending.len()
    }
    fn arm(&mut self) -> ArmResult {
        ArmResult::Armed
    }
    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Load of a disk's client: operation and size of its requests, and number of requests in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) op: DiskOp,
    pub(crate) bytes: u64,
    pub(crate) depth: u32,
}

impl Load {
    pub(crate) fn reads(bytes: u64, depth: u32) -> Self {
        Self { op: DiskOp::Read, bytes, depth }
    }
}

/// Queue together with its client.
pub(crate) struct TestClient {
    pub(crate) worker: usize,
    pub(crate) queue: usize,
    pub(crate) client: Arc<Mutex<Client>>,
    pub(crate) load: Option<Load>,
    free: Vec<u32>,
    /// Tags of requests that were submitted and have not completed.
    submitted_tags: Vec<u32>,
    /// Address of the queue's payloads, which identifies the queue in [`Device`].
    payloads: usize,
    /// Reads and writes that were submitted and have not started, in order.
    to_begin: VecDeque<u32>,
    pub(crate) completion_count: u64,
}

/// Test bench: workers that share one modelled device.
pub(crate) struct Bench {
    pub(crate) engines: Vec<StorageEngine>,
    pub(crate) device: Arc<Mutex<Device>>,
    pub(crate) store: Store,
    pub(crate) clients: Vec<TestClient>,
    pub(crate) disks: BTreeMap<u32, (usize, usize)>,
    /// Budget of the store; `None` with one worker.
    pub(crate) shared: Option<SharedBudget>,
    /// Time at which each worker's round ends, in ns, and true for workers that do not proceed.
    rounds: Vec<u64>,
    stalled: Vec<bool>,
    pub(crate) random: RandomNumbers,
    pub(crate) polls: u64,
}

pub(crate) fn limits(min: u64, max: u64) -> Limits {
    Limits { min_iops: Iops::new(min), max_iops: Iops::new(max), ..Limits::default() }
}

impl Bench {
    /// Creates `workers` workers on a device with `servers` servers and this service time. If there
    /// are several workers, they share the store's budget.
    pub(crate) fn new(workers: usize, spec: &StoreSpec, servers: usize, service_ns: u64) -> Self {
        let device = Arc::new(Mutex::new(Device {
            now: SECOND,
            service_ns,
            write_ns: None,
            servers: (0..servers).map(|_| Reverse(0)).collect(),
            started: BTreeMap::new(),
            order: Vec::new(),
        }));
        let engine = |worker: usize| {
            let io = DeviceIo {
                device: Arc::clone(&device),
                files: Vec::new(),
                pending: BTreeMap::new(),
                next: 0,
                fd: File::open("/dev/null").unwrap(),
            };
            let mut engine = StorageEngine::new(Box::new(io));
            engine.set_worker(WorkerId(worker as u16));
            engine
        };
        let now = Time::from_ns(SECOND);
        let mut engines: Vec<StorageEngine> = (0..workers).map(engine).collect();
        let mut shared = None;
        for engine in &mut engines {
            assert!(engine.add_store(now, STORE, spec.clone(), shared.as_ref()));
            if workers > 1 && shared.is_none() {
                shared = engine.share_store(now, STORE);
            }
        }
        Self {
            engines,
            shared,
            rounds: vec![0; workers],
            stalled: vec![false; workers],
            store: Store::new(Capacity::Declared(10_000_000)),
            device,
            clients: Vec::new(),
            disks: BTreeMap::new(),
            random: RandomNumbers(7),
            polls: 0,
        }
    }

    pub(crate) fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap()
    }

    pub(crate) fn time(&self) -> Time {
        Time::from_ns(self.device().now)
    }

    pub(crate) fn propose(&mut self, proposals: &[Proposal]) {
        let now = self.time();
        for change in self.store.apply(proposals, true).unwrap() {
            let is_in_budget = self.shared.as_ref().is_some_and(|budget| budget.apply(&[change]));
            for engine in &mut self.engines {
                if is_in_budget {
                    engine.handle_budget_change(now, STORE, change);
                } else {
                    engine.apply_store_change(now, STORE, change);
                }
            }
        }
    }

    pub(crate) fn slot(&self, disk: u32) -> DiskSlot {
        self.store.slot(DiskId(disk)).unwrap()
    }

    pub(crate) fn set_limits(&mut self, disk: u32, limits: Limits) {
        self.propose(&[Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits))]);
    }

    /// Adds a disk whose slot exists in the store already.
    pub(crate) fn add_known(&mut self, worker: usize, disk: u32) {
        self.add_of_spec(worker, disk, spec(disk));
    }

    /// Adds a disk with these images whose slot exists in the store already.
    pub(crate) fn add_of_spec(&mut self, worker: usize, disk: u32, spec: LayerStack) {
        let location = StoreDiskSlot { store: STORE, slot: self.slot(disk) };
        let number = self.engines[worker].add_disk(spec, Some(location)).unwrap();
        self.disks.insert(disk, (worker, number));
    }

    pub(crate) fn add_disk(&mut self, worker: usize, disk: u32, limits: Limits) {
        self.set_limits(disk, limits);
        self.add_known(worker, disk);
    }

    /// Adds a queue with a client of this load to a disk. Returns the number of the client.
    pub(crate) fn add_client(&mut self, disk: u32, load: Load) -> usize {
        self.add_queue(disk, load, FakeQueue::new(load.depth as usize), false)
    }

    /// Adds `queue`, which may be the queue of a copy, to a disk, with a client of this load.
    /// Returns the number of the client.
    pub(crate) fn add_queue(
        &mut self,
        disk: u32,
        load: Load,
        queue: FakeQueue,
        is_mirror: bool,
    ) -> usize {
        let (worker, number) = self.disks[&disk];
        let client = Arc::clone(&queue.client);
        let payloads = Arc::as_ptr(&queue.payloads) as usize;
        let kind = if is_mirror { QueueKind::Mirror } else { QueueKind::Ring };
        let queue = self.engines[worker].add_queue_of_kind(number, Box::new(queue), kind).unwrap();
        let free = (0..load.depth).collect();
        let (asked_tags, answered) = (Vec::new(), 0);
        let load = Some(load);
        let to_begin = VecDeque::new();
        let client = TestClient {
            worker,
            queue,
            client,
            load,
            free,
            submitted_tags: asked_tags,
            payloads,
            to_begin,
            completion_count: answered,
        };
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// Advances the simulated time by `span_ns`, with all events in it.
    pub(crate) fn run(&mut self, span_ns: u64) {
        let until = self.device().now + span_ns;
        loop {
            self.run_now();
            let next = self.next_event();
            let now = self.device().now;
            if next > until {
                self.device().now = until;
                return;
            }
            self.device().now = next.max(now + 100);
        }
    }

    /// Advances time while the workers run only once per `gap_ns` although they are runnable all
    /// the time.
    pub(crate) fn run_starved(&mut self, span_ns: u64, gap_ns: u64) {
        let until = self.device().now + span_ns;
        while self.device().now < until {
            self.device().now += gap_ns;
            for engine in &mut self.engines {
                engine.handle_unscheduled(Duration::from_nanos(gap_ns));
            }
            self.run_now();
        }
    }

    /// Stalls a worker, or lets it proceed.
    pub(crate) fn set_stalled(&mut self, worker: usize, is_stalled: bool) {
        self.stalled[worker] = is_stalled;
    }

    fn next_event(&self) -> u64 {
        let now = self.device().now;
        let workers = self.engines.iter().zip(&self.rounds).zip(&self.stalled);
        let deadlines =
            workers.filter(|(_, is_stalled)| !**is_stalled).flat_map(|((engine, end), _)| {
                let deadline = engine.next_deadline().map(|time| time.as_ns().max(*end));
                deadline.into_iter().chain(Some(*end).filter(|end| *end > now))
            });
        // Completes requests when a server becomes free; soon, if that is now.
        let device = self.device();
        let servers = device.servers.iter().map(|free| free.0).filter(|free| *free > now);
        deadlines.chain(servers).min().unwrap_or(u64::MAX)
    }

    /// Runs all clients and workers until none has an action at the current time.
    fn run_now(&mut self) {
        let now = self.device().now;
        for _ in 0..1000 {
            self.clients();
            let mut has_worked = false;
            let are_several = self.engines.len() > 1;
            for (worker, engine) in self.engines.iter_mut().enumerate() {
                if self.stalled[worker] || self.rounds[worker] > now {
                    continue;
                }
                self.polls += 1;
                if engine.poll(Time::from_ns(now)) {
                    has_worked = true;
                    if are_several {
                        self.rounds[worker] = now + self.random.below(DELAY_MAX_NS);
                    }
                }
            }
            if !has_worked {
                return;
            }
        }
        panic!("it never rests");
    }

    fn clients(&mut self) {
        let started_requests = std::mem::take(&mut self.device().order);
        for (payloads, tag) in started_requests {
            // The device does not know the queue of a request any more if the queue was removed.
            let client = self.clients.iter_mut().find(|client| client.payloads == payloads);
            if let Some(client) = client {
                assert_eq!(client.to_begin.pop_front(), Some(tag), "out of order");
            }
        }
        for test_client in &mut self.clients {
            let mut client = test_client.client.lock().unwrap();
            for (tag, outcome) in client.completions.drain(..) {
                assert_eq!(outcome, suimon_ports::DiskOutcome::Done);
                let position =
                    test_client.submitted_tags.iter().position(|tag_asked| *tag_asked == tag);
                test_client.submitted_tags.remove(position.expect("each request completes once"));
                test_client.free.push(tag);
                test_client.completion_count += 1;
            }
            let Some(load) = test_client.load else { continue };
            let was_idle = client.requests.is_empty();
            while let Some(tag) = test_client.free.pop() {
                let len = if load.op == DiskOp::Flush { 0 } else { load.bytes };
                let range = ByteRange::new(0, len).unwrap();
                client.requests.push_back(DiskRequest { tag, op: load.op, range });
                test_client.submitted_tags.push(tag);
                if matches!(load.op, DiskOp::Read | DiskOp::Write { .. }) {
                    test_client.to_begin.push_back(tag);
                }
            }
            drop(client);
            if was_idle {
                self.engines[test_client.worker].wake_queue(test_client.queue);
            }
        }
    }

    /// Returns the number of submitted requests that have not completed, of all clients.
    pub(crate) fn open(&self) -> usize {
        self.clients.iter().map(|client| client.submitted_tags.len()).sum()
    }

    /// Returns the number of operations by which a disk may exceed `rate` in a window: the burst
    /// amount and one request of `largest` operations.
    pub(crate) fn tolerance(rate: u64, largest: u64) -> f64 {
        (rate as f64 * CATCH_UP_WINDOW.as_secs_f64()) + largest as f64 + 1.0
    }
}

pub(crate) fn spec(disk: u32) -> LayerStack {
    let (logical_sector, physical_sector) = (512, 4096);
    let shape = DiskGeometry {
        size_bytes: DISK_BYTES,
        logical_sector_bytes: logical_sector,
        physical_sector_bytes: physical_sector,
        block_bytes: 0,
    };
    let image = Box::new(LinearImage::new(shape, 0, false));
    let file = Arc::new(NullFile { number: disk, len: DISK_BYTES });
    LayerStack { layers: vec![DiskLayer { image, file }] }
}

/// Returns the specification of a store that never limits its disks.
pub(crate) fn deep() -> StoreSpec {
    StoreSpec { depth_min: 256, depth_max: 256, ..StoreSpec::default() }
}

pub(crate) const MILLISECOND: u64 = 1_000_000;
