//! Queues that the system does not watch, by way of the plane.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_ports::{DiskOutcome, FaultKind, FileIo, FileIoSource, Wait};
use suimon_quantity::Time;

use crate::fakes::{Client, FakeFile, FakeIo, FakeQueue};
use crate::kinds::KINDS;
use crate::plane_suspend_tests::{DISK, Processors, answer, ask, close};
use crate::work_tests::WRITE;
use crate::{DiskLayer, DiskSpec, PlaneNotice, QueueKey, StoragePlane};

struct Source;

impl FileIoSource for Source {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        Ok(Box::new(FakeIo::new(7, 16)))
    }
}

/// A system that watches so many descriptors and no more.
struct Limited(Arc<AtomicUsize>);

impl Wait for Limited {
    fn watch(&mut self, _: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        let ordering = Ordering::Relaxed;
        let taken = self.0.fetch_update(ordering, ordering, |left| left.checked_sub(1));
        // ENOSPC, as `fs.epoll.max_user_watches` has it.
        taken.map(|_| ()).map_err(|_| io::Error::from_raw_os_error(28))
    }
    fn unwatch(&mut self, _: BorrowedFd<'_>) {}
    fn wait(&mut self, _: Option<Time>, _: &mut Vec<u64>) -> io::Result<()> {
        Ok(())
    }
    fn now(&self) -> Time {
        Time::ZERO
    }
    fn cpu_time(&self) -> Duration {
        Duration::ZERO
    }
}

fn client(plane: &StoragePlane) -> (u64, Arc<Mutex<Client>>) {
    let queue = FakeQueue::new(4);
    queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    let client = Arc::clone(&queue.client);
    (plane.attach_client(DISK, Box::new(queue)).unwrap(), client)
}

#[test]
fn a_queue_that_cannot_be_watched_is_given_up_and_others_go_on() {
    let plane = StoragePlane::new(Arc::new(Source));
    // The I/O's descriptor and that of one queue.
    let left = Arc::new(AtomicUsize::new(2));
    let of_processor = Arc::clone(&left);
    let processors =
        Processors::start_with(&plane, 1, move || Limited(Arc::clone(&of_processor)));
    let memory = (KINDS[0].create)();
    let image = (KINDS[0].open)(&memory);
    let layer = DiskLayer { image, file: FakeFile::new(memory) };
    plane.add_disk(DISK, DiskSpec { layers: vec![layer] }, None).unwrap();
    let (_, good) = client(&plane);
    let (number, _) = client(&plane);
    let told = loop {
        if let Some(told) = plane.poll_notice() {
            break told;
        }
        std::thread::yield_now();
    };
    let PlaneNotice::QueueFault { disk: DISK, queue, fault } = told else { panic!("{told:?}") };
    assert_eq!((queue, fault.kind), (QueueKey::Client(number), FaultKind::Host));
    assert!(fault.detail.contains("os error 28"), "{fault}");
    assert_eq!(plane.disks()[0].clients, 1, "it is gone");
    ask(&good, 0, WRITE, 0);
    assert_eq!(answer(&good), (0, DiskOutcome::Done));

    // Whoever comes when there is room again is served.
    left.store(1, Ordering::Relaxed);
    let (_, late) = client(&plane);
    ask(&late, 1, WRITE, 512);
    assert_eq!(answer(&late), (1, DiskOutcome::Done));
    close(plane.take_disk(DISK).unwrap());
    drop(processors);
}
