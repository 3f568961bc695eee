//! Commands that a worker receives in one iteration.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::DiskOp;
use suimon_quantity::{DiskId, StoreId};
use suimon_storage_engine::FullStorePolicy;
use suimon_storage_engine::testing::fake_file::FakeFile;
use suimon_storage_engine::testing::fake_queue::FakeQueue;
use suimon_storage_engine::testing::image_kinds::KINDS;
use suimon_storage_qos::StoreSpec;

use crate::command::queue_key::{QueueKey, QueueSelection};
use crate::command::revocable_value::RevocableValue;
use crate::command::{Command, DetachedDisk, MirrorSettings};
use crate::plane::test_workers::{DISK, submit};
use crate::worker::WAITERS_MAX;
use crate::worker::immediate_completion_tests::Worker;

/// The engine reuses the number of a closed queue. A queue added in the same iteration must not be
/// confused with the closed one. Otherwise it could not be detached, and the worker would continue
/// to use a ring that its VM has stopped.
#[test]
fn a_queue_added_when_another_one_is_closed_can_be_detached() {
    let mut worker = Worker::new();
    let queue = FakeQueue::new(4);
    let client = Arc::clone(&queue.client);
    let (detached, answer) = channel();
    for command in [
        Command::DetachQueues(DISK, QueueSelection::Clients, detached),
        Command::AddQueue(DISK, QueueKey::Client(1), Box::new(queue)),
    ] {
        worker.commands.send(command).unwrap();
    }
    worker.poll();
    assert!(answer.try_recv().is_err() && Arc::strong_count(&worker.client) == 1);
    assert_eq!(Arc::strong_count(&client), 2, "it is served");
    let (detached, answer) = channel();
    let which = QueueSelection::One(QueueKey::Client(1));
    worker.commands.send(Command::DetachQueues(DISK, which, detached)).unwrap();
    worker.poll();
    assert!(answer.try_recv().is_err());
    assert_eq!(Arc::strong_count(&client), 1, "the queue was returned");
}

/// The engine reuses the number of a closed disk.
#[test]
fn a_disk_added_when_another_one_is_closed_is_served() {
    const OTHER: DiskId = DiskId(77);
    let mut worker = Worker::new();
    let memory = (KINDS[0].create)();
    let image = (KINDS[0].open)(&memory);
    let layers = vec![DiskLayer { image, file: FakeFile::new(memory) }];
    let (spec, mirror) = (LayerStack { layers }, MirrorSettings::default());
    let full = FullStorePolicy::FAIL_AT_ONCE;
    let other_disk = DetachedDisk {
        spec,
        full_store_policy: full,
        store_slot: None,
        mirror,
        queues: Vec::new(),
    };
    let (take, answer) = channel();
    let (add, added) = channel();
    worker.commands.send(Command::DetachDisk(DISK, RevocableValue::new(take))).unwrap();
    let offer = RevocableValue::new(Box::new(other_disk));
    worker.commands.send(Command::AddDisk { disk: OTHER, detached: offer, reply: add }).unwrap();
    let result = (0..100).find_map(|_| {
        worker.poll();
        answer.try_recv().ok()
    });
    let detached = result.expect("the queue was returned").ok().unwrap();
    assert_eq!(detached.queues.len(), 1);
    assert!(added.recv().unwrap().is_ok());
    let (reply, views) = channel();
    worker.commands.send(Command::QueryState(Arc::default(), reply)).unwrap();
    worker.poll();
    let disks: Vec<_> = views.recv().unwrap().disks.iter().map(|disk| disk.disk).collect();
    assert_eq!(disks, [OTHER]);
}

/// A front end may repeat the detach request for a ring any number of times while a stalled store
/// holds one of the ring's requests. Of these requests, only the newest ones are kept.
#[test]
fn the_newest_detach_requests_for_a_stalled_queue_are_kept() {
    let mut worker = Worker::new();
    worker.faults.lock().unwrap().is_stalled = true;
    submit(&worker.client, 0, DiskOp::Read, 0);
    worker.poll();
    let completions: Vec<_> = (0..=WAITERS_MAX)
        .map(|_| {
            let (detached, answer) = channel();
            worker
                .commands
                .send(Command::DetachQueues(DISK, QueueSelection::Clients, detached))
                .unwrap();
            worker.poll();
            answer
        })
        .collect();
    let is_waiting = |answer: &Receiver<()>| answer.try_recv() == Err(TryRecvError::Empty);
    let (oldest, newer_answers) = completions.split_first().unwrap();
    assert!(!is_waiting(oldest), "it ends when there are {WAITERS_MAX} newer ones");
    assert!(newer_answers.iter().all(is_waiting));
    worker.faults.lock().unwrap().is_stalled = false;
    (0..100).for_each(|_| drop(worker.poll()));
    assert!(!newer_answers.iter().any(is_waiting), "the queue was returned");
}

/// Stores that are deleted and created again get other identifiers.
#[test]
fn stores_that_have_left_a_worker_are_not_kept() {
    let mut worker = Worker::new();
    for number in 100..1100 {
        let store = StoreId(number);
        let (spec, shared, changes) = (StoreSpec::default(), None, Vec::new());
        let join = Command::AddStore { store, spec, shared, changes };
        worker.commands.send(join).unwrap();
        worker.commands.send(Command::RemoveStore(store)).unwrap();
        let (reply, answer) = channel();
        worker.commands.send(Command::Sync(reply)).unwrap();
        worker.poll();
        assert!(answer.recv().is_err(), "the reply is dropped when the commands were executed");
    }
    assert!(worker.stores() <= 2, "{} stores", worker.stores());
    let (reply, views) = channel();
    worker.commands.send(Command::QueryState(Arc::default(), reply)).unwrap();
    worker.poll();
    assert_eq!(views.recv().unwrap().stores.len(), 1, "the store of its disk");
}
