//! Requests whose I/O completes during its submission, in the same iteration of the engine.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::{DiskOp, DiskOutcome, TaskDescriptors, WorkerTask};
use suimon_quantity::{StoreId, WorkerId};
use suimon_storage_engine::testing::fake_file::FakeFile;
use suimon_storage_engine::testing::fake_io::{FakeIo, FaultInjection};
use suimon_storage_engine::testing::fake_queue::{Client, FakeQueue};
use suimon_storage_engine::testing::image_kinds::KINDS;
use suimon_storage_engine::{DiskIoCounters, FullStorePolicy, StoreDiskSlot};
use suimon_storage_qos::{Capacity, Limits, LimitsSource, Proposal, Store, StoreSpec};

use crate::QueueKey;
use crate::command::revocable_value::RevocableValue;
use crate::command::{Command, DetachedDisk, DetachedQueue, MirrorSettings};
use crate::plane::test_workers::{DISK, NoWaker, PollingWait, submit};
use crate::worker::StorageWorker;

const STORE: StoreId = StoreId(1);
/// Time from the beginning of an iteration to the completion of its I/O.
const TAKES: Duration = Duration::from_nanos(700);

/// Worker with one disk on a store with a queue depth of 1.
pub(crate) struct Worker {
    storage_worker: StorageWorker,
    pub(crate) commands: Sender<Command>,
    wait: PollingWait,
    pub(crate) client: Arc<Mutex<Client>>,
    pub(crate) faults: Arc<Mutex<FaultInjection>>,
}

impl Worker {
    pub(crate) fn new() -> Self {
        let (commands, receiver) = channel();
        let waker = Arc::new(NoWaker);
        let storage_worker = StorageWorker::new(WorkerId(0), receiver, Arc::default(), waker, None);
        let wait = PollingWait::new(Arc::new(AtomicUsize::new(usize::MAX)));
        let io = FakeIo::new(7, 16);
        let queue = FakeQueue::new(4);
        queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
        let (client, faults) = (Arc::clone(&queue.client), Arc::clone(&io.faults));
        let mut worker = Self { storage_worker, commands, wait, client, faults };
        worker.ensure_io(io, queue);
        worker
    }

    fn ensure_io(&mut self, io: FakeIo, queue: FakeQueue) {
        let mut store = Store::new(Capacity::Declared(1000));
        let proposal = Proposal::SetDisk(DISK, LimitsSource::Own(Limits::default()));
        let changes = store.apply(&[proposal], false).unwrap();
        let location = store.slot(DISK).map(|slot| StoreDiskSlot { store: STORE, slot });
        let spec = StoreSpec { depth_min: 1, depth_max: 1, ..StoreSpec::default() };
        let memory = (KINDS[0].create)();
        let image = (KINDS[0].open)(&memory);
        let layers = vec![DiskLayer { image, file: FakeFile::new(memory) }];
        let (key, found_full) = (QueueKey::Client(0), Vec::new());
        let queues =
            vec![DetachedQueue { key, queue: Box::new(queue), no_space_requests: found_full }];
        let full = FullStorePolicy::default();
        let detached = DetachedDisk {
            spec: LayerStack { layers },
            full_store_policy: full,
            store_slot: location,
            mirror: MirrorSettings::default(),
            queues,
        };
        let (equipped, added) = (channel(), channel());
        for command in [
            Command::SetIo(RevocableValue::new(Box::new(io)), equipped.0),
            Command::AddStore { store: STORE, spec, shared: None, changes },
            Command::AddDisk {
                disk: DISK,
                detached: RevocableValue::new(Box::new(detached)),
                reply: added.0,
            },
        ] {
            self.commands.send(command).unwrap();
        }
        self.poll();
        equipped.1.recv().unwrap().unwrap();
        assert!(added.1.recv().unwrap().is_ok());
    }

    /// Returns the number of stores on the worker.
    pub(crate) fn stores(&self) -> usize {
        self.storage_worker.stores.len()
    }

    /// Runs one iteration. Returns the completions (tag, outcome) that were published by its end.
    pub(crate) fn poll(&mut self) -> Vec<(u32, DiskOutcome)> {
        let now = self.wait.now + Duration::from_micros(20);
        self.wait.now = now + TAKES;
        self.storage_worker.poll(now, false, &mut TaskDescriptors::new(&mut self.wait));
        std::mem::take(&mut self.client.lock().unwrap().completions)
    }

    fn counters(&mut self) -> DiskIoCounters {
        let (reply, views) = channel();
        self.commands.send(Command::QueryState(Arc::default(), reply)).unwrap();
        self.poll();
        views.recv().unwrap().disks[0].counters
    }
}

#[test]
fn immediate_completions_are_published_in_the_same_iteration() {
    let mut worker = Worker::new();
    worker.faults.lock().unwrap().completes_at_once = true;
    submit(&worker.client, 0, DiskOp::Read, 0);
    assert_eq!(worker.poll(), [(0, DiskOutcome::Done)]);
    // The latency is the duration of the iteration up to the completion.
    let reads = worker.counters().reads;
    assert_eq!((reads.requests, reads.latency_sum_ns), (1, TAKES.as_nanos() as u64));
    assert_eq!(worker.poll(), []);
}

#[test]
fn requests_queued_behind_others_are_dispatched_in_later_iterations() {
    let mut worker = Worker::new();
    worker.faults.lock().unwrap().completes_at_once = true;
    (0..3).for_each(|tag| submit(&worker.client, tag, DiskOp::Read, u64::from(tag) * 512));
    // The store's queue depth is 1, so each iteration completes one request and dispatches the
    // next.
    for tag in 0..3 {
        assert_eq!(worker.poll(), [(tag, DiskOutcome::Done)]);
    }
    assert_eq!(worker.poll(), []);
}

#[test]
fn other_requests_are_completed_when_their_operation_has_ended() {
    let mut worker = Worker::new();
    worker.faults.lock().unwrap().is_stalled = true;
    submit(&worker.client, 0, DiskOp::Read, 0);
    assert_eq!(worker.poll(), []);
    assert_eq!(worker.poll(), []);
    worker.faults.lock().unwrap().is_stalled = false;
    let answer = (0..100).find_map(|_| worker.poll().pop());
    assert_eq!(answer, Some((0, DiskOutcome::Done)));
}
