//! Queues that the system refuses to watch, in the storage plane.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::{DiskOutcome, FaultKind};
use suimon_storage_engine::testing::fake_file::FakeFile;
use suimon_storage_engine::testing::fake_queue::{Client, FakeQueue};
use suimon_storage_engine::testing::image_kinds::KINDS;
use suimon_storage_engine::testing::requests::WRITE;

use crate::plane::test_workers::{
    DISK, FakeIoSource, Workers, close, submit, wait_for_completion, wait_until,
};
use crate::{PlaneNotice, QueueKey, StoragePlane};

fn client(plane: &StoragePlane) -> (u64, Arc<Mutex<Client>>) {
    let queue = FakeQueue::new(4);
    queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    let client = Arc::clone(&queue.client);
    (plane.attach_client(DISK, Box::new(queue)).unwrap(), client)
}

#[test]
fn a_queue_that_cannot_be_watched_is_closed_and_others_continue() {
    let plane = StoragePlane::new(Arc::new(FakeIoSource));
    // Two descriptors: that of the I/O and that of one queue.
    let remaining_watches = Arc::new(AtomicUsize::new(2));
    let workers = Workers::start_with(&plane, 1, &remaining_watches);
    let memory = (KINDS[0].create)();
    let image = (KINDS[0].open)(&memory);
    let layer = DiskLayer { image, file: FakeFile::new(memory) };
    plane.add_disk(DISK, LayerStack { layers: vec![layer] }, None).unwrap();
    let (_, watched_client) = client(&plane);
    let (number, _) = client(&plane);
    let notice = loop {
        if let Some(notice) = plane.poll_notice() {
            break notice;
        }
        std::thread::yield_now();
    };
    let PlaneNotice::QueueFault { disk: DISK, queue, fault } = notice else { panic!("{notice:?}") };
    assert_eq!((queue, fault.kind), (QueueKey::Client(number), FaultKind::SystemCallFailed));
    assert!(fault.detail.contains("os error 28"), "{fault}");
    wait_until(|| plane.disks().iter().map(|view| (view.is_current, view.clients)).eq([(true, 1)]));
    submit(&watched_client, 0, WRITE, 0);
    assert_eq!(wait_for_completion(&watched_client), (0, DiskOutcome::Done));

    // A queue that is added after the system permits further watches is served.
    remaining_watches.store(1, Ordering::Relaxed);
    let (_, late_client) = client(&plane);
    submit(&late_client, 1, WRITE, 512);
    assert_eq!(wait_for_completion(&late_client), (1, DiskOutcome::Done));
    close(plane.remove_disk(DISK).unwrap());
    drop(workers);
}
