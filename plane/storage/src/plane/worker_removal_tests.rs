//! Disks of retiring workers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use suimon_ports::{FileIo, FileIoFactory, WorkerTaskFactory};
use suimon_quantity::WorkerId;
use suimon_storage_engine::testing::fake_io::FakeIo;

use crate::plane::test_workers::{DISK, Workers, close, raw_disk, wait_until};
use crate::{PlaneError, PlaneNotice, StoragePlane};

/// I/O source that can create the I/O of a limited number of workers.
struct Scarce(AtomicUsize);

impl FileIoFactory for Scarce {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        let decrement = |count: usize| count.checked_sub(1);
        let decrement_result = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement);
        decrement_result.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Box::new(FakeIo::new(7, 16)))
    }
}

#[test]
fn a_disk_that_cannot_be_moved_is_closed_and_reported() {
    let source = Arc::new(Scarce(AtomicUsize::new(1)));
    let plane = StoragePlane::new(source.clone());
    let workers = Workers::start(&plane, 2);
    let (spec, file) = raw_disk();
    plane.add_disk(DISK, spec, None).unwrap();
    assert_eq!(plane.retire_workers(&[WorkerId(0)]), []);
    let Some(PlaneNotice::DiskLost { disk: lost, reason }) = plane.poll_notice() else {
        panic!("no notice is emitted")
    };
    assert!(lost == DISK && reason.contains("cannot create an io_uring"), "{reason}");
    assert_eq!(Arc::strong_count(&file), 1, "the disk's file is closed");
    assert!(matches!(plane.remove_disk(DISK), Err(PlaneError::NoSuchDisk)));
    // The disk can be opened again on a worker that has I/O.
    source.0.store(1, Ordering::Relaxed);
    plane.add_disk(DISK, raw_disk().0, None).unwrap();
    wait_until(|| plane.disks().iter().map(|view| view.worker).eq([WorkerId(1)]));
    close(plane.remove_disk(DISK).unwrap());
    drop(workers);
}

#[test]
fn a_disk_that_can_be_moved_is_moved_without_a_notice() {
    let plane = StoragePlane::new(Arc::new(Scarce(AtomicUsize::new(2))));
    let workers = Workers::start(&plane, 2);
    plane.add_disk(DISK, raw_disk().0, None).unwrap();
    assert_eq!(plane.retire_workers(&[WorkerId(0)]), []);
    assert!(plane.poll_notice().is_none());
    wait_until(|| plane.disks().iter().map(|view| view.worker).eq([WorkerId(1)]));
    close(plane.remove_disk(DISK).unwrap());
    drop(workers);
}
