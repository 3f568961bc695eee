//! Stalled stores in the storage plane.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::{DetachingQueue, DiskOutcome, DiskQueueHost, FileIo, FileIoFactory, FileSlot};
use suimon_quantity::{DiskId, WorkerId};
use suimon_storage_engine::STALLED_AFTER;
use suimon_storage_engine::testing::fake_file::FakeFile;
use suimon_storage_engine::testing::fake_io::{FakeIo, FaultInjection};
use suimon_storage_engine::testing::fake_queue::{Client, FakeQueue};
use suimon_storage_engine::testing::image_kinds::KINDS;
use suimon_storage_engine::testing::requests::WRITE;

use crate::plane::test_workers::{DISK, Workers, close, submit, wait_for_completion, wait_until};
use crate::{PlaneError, PlaneNotice, StoragePlane};

/// Other disk of the same worker, on a store that completes requests.
const OTHER: DiskId = DiskId(4);

/// I/O with faults that the test controls.
#[derive(Default)]
struct Source(Arc<Mutex<FaultInjection>>);

impl FileIoFactory for Source {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        let mut io = FakeIo::new(7, 16);
        io.faults = Arc::clone(&self.0);
        Ok(Box::new(io))
    }
}

impl Source {
    /// Stalls or resumes the operations of the file that was opened first.
    fn stall(&self, stalls: bool) {
        self.0.lock().unwrap().stalled_file = stalls.then_some(FileSlot(0));
    }
}

fn add(plane: &StoragePlane, disk: DiskId) -> (Arc<FakeFile>, Arc<Mutex<Client>>) {
    let memory = (KINDS[0].create)();
    let image = (KINDS[0].open)(&memory);
    let file = FakeFile::new(memory);
    let layer = DiskLayer { image, file: file.clone() };
    plane.add_disk(disk, LayerStack { layers: vec![layer] }, None).unwrap();
    let queue = FakeQueue::new(4);
    queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    let client = Arc::clone(&queue.client);
    plane.attach(disk, 0, Box::new(queue));
    (file, client)
}

/// Waits for the next stall notice. Returns its disk, whether the disk stalls, and the time without
/// completions.
fn stall(plane: &StoragePlane) -> (DiskId, bool, Duration) {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        assert!(Instant::now() < deadline, "no notice is emitted");
        if let Some(PlaneNotice::DiskStall { disk, is_beginning: stalls, stalled_for }) =
            plane.poll_notice()
        {
            return (disk, stalls, stalled_for);
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_beginning_and_end_of_a_stall_are_reported() {
    let source = Arc::new(Source::default());
    let plane = StoragePlane::new(source.clone());
    let workers = Workers::start(&plane, 1);
    let ((_, client), (_, other)) = (add(&plane, DISK), add(&plane, OTHER));
    source.stall(true);
    submit(&client, 0, WRITE, 0);
    let (disk, stalls, stalled_for) = stall(&plane);
    assert!((disk, stalls) == (DISK, true) && stalled_for >= STALLED_AFTER, "{stalled_for:?}");
    submit(&other, 1, WRITE, 0);
    assert_eq!(wait_for_completion(&other), (1, DiskOutcome::Done));
    let stalled = || plane.disks().into_iter().map(|view| view.stalled_for.is_some());
    wait_until(|| stalled().eq([true, false]));
    assert!(matches!(plane.suspend_disk(DISK), Err(PlaneError::Stalled)));

    source.stall(false);
    assert_eq!(wait_for_completion(&client), (0, DiskOutcome::Done));
    let (disk, stalls, _) = stall(&plane);
    assert_eq!((disk, stalls), (DISK, false));
    wait_until(|| stalled().eq([false, false]));
    for disk in [DISK, OTHER] {
        close(plane.remove_disk(disk).unwrap());
    }
    drop(workers);
}

#[test]
fn removing_a_stalled_disk_does_not_block_and_closes_it_later() {
    let source = Arc::new(Source::default());
    let plane = StoragePlane::new(source.clone());
    let workers = Workers::start(&plane, 1);
    let ((file, client), (_, other)) = (add(&plane, DISK), add(&plane, OTHER));
    source.stall(true);
    submit(&client, 0, WRITE, 0);
    assert!(stall(&plane).1);
    plane.announce_removal(DISK);
    plane.detach_disk(DISK);
    assert!(matches!(plane.remove_disk(DISK), Err(PlaneError::Stalled)));
    assert!(Arc::strong_count(&file) > 1, "the system still works on it");
    assert!(matches!(plane.remove_disk(DISK), Err(PlaneError::NoSuchDisk)));
    submit(&other, 1, WRITE, 0);
    assert_eq!(wait_for_completion(&other), (1, DiskOutcome::Done));

    source.stall(false);
    let deadline = Instant::now() + Duration::from_secs(90);
    while Arc::strong_count(&file) > 1 {
        assert!(Instant::now() < deadline, "the file of the disk is not closed");
        std::thread::yield_now();
    }
    close(plane.remove_disk(OTHER).unwrap());
    drop(workers);
}

/// Attaches a virtqueue with a request to a stalled disk, and requests its detachment.
fn with_detached_ring(plane: &StoragePlane, client: &Mutex<Client>) -> Box<dyn DetachingQueue> {
    submit(client, 0, WRITE, 0);
    assert!(stall(plane).1);
    let mut detaching = plane.begin_detach(DISK, 0);
    assert!(!detaching.wait(Duration::from_millis(10)), "the request of the disk is not completed");
    detaching
}

/// Creates a client's connection, and the client's end of it.
fn connection() -> (FakeQueue, Arc<Mutex<Client>>) {
    let queue = FakeQueue::new(4);
    queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    let client = Arc::clone(&queue.client);
    (queue, client)
}

#[test]
fn a_ring_being_detached_from_a_stalled_disk_does_not_block_the_disk() {
    let source = Arc::new(Source::default());
    let plane = StoragePlane::new(source.clone());
    let workers = Workers::start(&plane, 1);
    let (_, client) = add(&plane, DISK);
    source.stall(true);
    let mut detaching = with_detached_ring(&plane, &client);
    // Another thread waits for the disk while the store stalls.
    let waiting = {
        let plane = plane.clone();
        std::thread::spawn(move || plane.detach(DISK, 0))
    };
    std::thread::sleep(Duration::from_millis(50));
    let (queue, connected) = connection();
    plane.attach_client(DISK, Box::new(queue)).unwrap();
    assert!(!detaching.wait(Duration::ZERO) && !waiting.is_finished());
    source.stall(false);
    assert!(detaching.wait(Duration::from_secs(90)));
    waiting.join().unwrap();
    assert_eq!(wait_for_completion(&client), (0, DiskOutcome::Done));
    submit(&connected, 1, WRITE, 0);
    assert_eq!(wait_for_completion(&connected), (1, DiskOutcome::Done));
    close(plane.remove_disk(DISK).unwrap());
    drop(workers);
}

#[test]
fn detaching_a_ring_of_a_stalled_disk_that_ends_does_not_block() {
    let source = Arc::new(Source::default());
    let plane = StoragePlane::new(source.clone());
    let workers = Workers::start(&plane, 1);
    let (_, client) = add(&plane, DISK);
    source.stall(true);
    let mut detaching = with_detached_ring(&plane, &client);
    plane.announce_removal(DISK);
    assert!(detaching.wait(Duration::from_millis(10)));
    source.stall(false);
    close(plane.remove_disk(DISK).unwrap());
    drop(workers);
}

/// A request of the detached ring completes on the disk's old worker; the new worker gets the disk
/// without the ring.
#[test]
fn a_detached_ring_does_not_move_with_its_disk() {
    let source = Arc::new(Source::default());
    let plane = StoragePlane::new(source.clone());
    let workers = Workers::start(&plane, 2);
    let (_, client) = add(&plane, DISK);
    wait_until(|| plane.disks().len() == 1);
    let from = plane.disks().first().unwrap().worker;
    let to = WorkerId(1 - from.0);
    source.stall(true);
    submit(&client, 0, WRITE, 0);
    let deadline = Instant::now() + Duration::from_secs(90);
    while !client.lock().unwrap().requests.is_empty() {
        assert!(Instant::now() < deadline, "its request is not taken");
        std::thread::yield_now();
    }
    let mut detaching = plane.begin_detach(DISK, 0);
    let moving = {
        let plane = plane.clone();
        std::thread::spawn(move || plane.move_disk(DISK, to))
    };
    // Waits until the move has begun.
    while plane.disk_record(DISK).unwrap().owner.try_lock().is_ok() {
        assert!(Instant::now() < deadline, "it is not moved");
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(50));
    source.stall(false);
    moving.join().unwrap().unwrap();
    assert!(detaching.wait(Duration::from_secs(90)));
    assert_eq!(wait_for_completion(&client), (0, DiskOutcome::Done));
    assert_eq!(Arc::strong_count(&client), 1, "the ring is with the new processor");
    close(plane.remove_disk(DISK).unwrap());
    drop(workers);
}
