//! Suspended disks in the storage plane, with workers on their own threads.

use std::sync::Arc;

use suimon_image::{DiskGeometry, ImageFile, LinearImage};
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::DiskOutcome;
use suimon_quantity::WorkerId;
use suimon_storage_engine::testing::fake_file::FakeFile;
use suimon_storage_engine::testing::fake_queue::FakeQueue;
use suimon_storage_engine::testing::image_kinds::KINDS;
use suimon_storage_engine::testing::requests::{SIZE, WRITE};

use crate::plane::test_workers::{
    DISK, FakeIoSource, Workers, close, submit, wait_for_completion, wait_until,
};
use crate::{PlaneError, StoragePlane};

#[test]
fn a_suspended_disk_is_enlarged_and_keeps_its_queues() {
    let plane = StoragePlane::new(Arc::new(FakeIoSource));
    let workers = Workers::start(&plane, 2);
    let raw = KINDS[0];
    let memory = (raw.create)();
    let image = (raw.open)(&memory);
    let file = FakeFile::new(memory);
    let layer = DiskLayer { image, file: Arc::clone(&file) as _ };
    plane.add_disk(DISK, LayerStack { layers: vec![layer] }, None).unwrap();
    let queue = FakeQueue::new(4);
    let (client, payloads) = (Arc::clone(&queue.client), Arc::clone(&queue.payloads));
    for payload in payloads.lock().unwrap().iter_mut() {
        *payload = vec![9; 512];
    }
    plane.attach_client(DISK, Box::new(queue)).unwrap();
    submit(&client, 0, WRITE, 0);
    assert_eq!(wait_for_completion(&client), (0, DiskOutcome::Done));

    let spec = plane.suspend_disk(DISK).unwrap();
    assert!(matches!(plane.suspend_disk(DISK), Err(PlaneError::Suspended)));
    for other in [WorkerId(0), WorkerId(1)] {
        // One of the workers already serves the disk. Moving the disk to that worker has no effect.
        assert!(!matches!(plane.move_disk(DISK, other), Err(PlaneError::Lost(_))));
    }
    let late_queue = FakeQueue::new(4);
    let late_client = Arc::clone(&late_queue.client);
    late_queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![8; 512]);
    plane.attach_client(DISK, Box::new(late_queue)).unwrap();
    submit(&client, 1, WRITE, SIZE);
    submit(&late_client, 2, WRITE, 512);
    take_turns(&plane);
    assert_eq!(client.lock().unwrap().requests.len(), 1, "it is not read");
    close(spec);

    file.memory().set_len(SIZE * 2).unwrap();
    let shape = DiskGeometry {
        size_bytes: SIZE * 2,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        block_bytes: 0,
    };
    let layer =
        DiskLayer { image: Box::new(LinearImage::new(shape, 0, false)), file: file.clone() };
    plane.resume_disk(DISK, LayerStack { layers: vec![layer] }).unwrap();
    assert_eq!(wait_for_completion(&client), (1, DiskOutcome::Done));
    assert_eq!(wait_for_completion(&late_client), (2, DiskOutcome::Done));
    assert_eq!(file.memory().bytes()[SIZE as usize..][..512], [9; 512]);
    assert_eq!(file.memory().bytes()[512..1024], [8; 512]);
    close(plane.remove_disk(DISK).unwrap());
    drop(workers);
}

/// Blocks until each worker has polled its queues since the call.
fn take_turns(plane: &StoragePlane) {
    // A worker replies between two iterations, so there is a complete iteration between the first
    // and the last reply.
    for _ in 0..3 {
        wait_until(|| plane.disks().iter().all(|view| view.is_current));
    }
}

#[test]
fn a_disk_that_cannot_be_resumed_remains_suspended() {
    let plane = StoragePlane::new(Arc::new(FakeIoSource));
    let workers = Workers::start(&plane, 1);
    assert!(matches!(plane.suspend_disk(DISK), Err(PlaneError::NoSuchDisk)));
    let raw = KINDS[0];
    let memory = (raw.create)();
    let layer = DiskLayer { image: (raw.open)(&memory), file: FakeFile::new(memory) };
    plane.add_disk(DISK, LayerStack { layers: vec![layer] }, None).unwrap();
    let error = plane.resume_disk(DISK, LayerStack { layers: Vec::new() }).unwrap_err();
    assert!(error.spec.is_some(), "it is in service");
    let spec = plane.suspend_disk(DISK).unwrap();
    let error = plane.resume_disk(DISK, LayerStack { layers: Vec::new() }).unwrap_err();
    assert!(error.spec.is_some());
    close(spec);
    assert!(plane.remove_disk(DISK).unwrap().layers.is_empty());
    assert!(plane.disks().is_empty());
    drop(workers);
}

/// Simulates that another node still has the disk's files open.
#[test]
fn a_disk_added_without_images_waits_and_does_not_use_its_store() {
    let plane = StoragePlane::new(Arc::new(FakeIoSource));
    let workers = Workers::start(&plane, 2);
    plane.add_disk(DISK, LayerStack { layers: Vec::new() }, None).unwrap();
    let queue = FakeQueue::new(4);
    let (client, payloads) = (Arc::clone(&queue.client), Arc::clone(&queue.payloads));
    payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    plane.attach_client(DISK, Box::new(queue)).unwrap();
    submit(&client, 0, WRITE, 0);
    assert!(matches!(plane.suspend_disk(DISK), Err(PlaneError::Suspended)));
    assert!(matches!(plane.begin_mirror(DISK, None), Err(PlaneError::Suspended)));
    take_turns(&plane);
    assert_eq!(client.lock().unwrap().requests.len(), 1, "it is not read");
    assert_eq!(plane.requests_in_flight(DISK).unwrap(), 0, "so its store hears of nothing");

    let memory = (KINDS[0].create)();
    let file = FakeFile::new(memory);
    let shape = DiskGeometry {
        size_bytes: SIZE,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        block_bytes: 0,
    };
    let layer =
        DiskLayer { image: Box::new(LinearImage::new(shape, 0, false)), file: file.clone() };
    plane.resume_disk(DISK, LayerStack { layers: vec![layer] }).unwrap();
    assert_eq!(wait_for_completion(&client), (0, DiskOutcome::Done));
    assert_eq!(file.memory().bytes()[..512], [9; 512]);
    close(plane.remove_disk(DISK).unwrap());

    // A disk that never receives images is taken out of service like any other.
    plane.add_disk(DISK, LayerStack { layers: Vec::new() }, None).unwrap();
    assert!(plane.remove_disk(DISK).unwrap().layers.is_empty());
    assert!(plane.disks().is_empty());
    drop(workers);
}
