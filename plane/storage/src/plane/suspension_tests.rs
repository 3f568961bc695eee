//! Suspended disks in the storage plane, with workers on their own threads.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_image::{DiskGeometry, ImageFile, Linear};
use suimon_ports::{
    DiskOp, DiskOutcome, DiskRequest, FileIo, FileIoSource, TaskDescriptors, Wait, Waker,
    WorkerTasks,
};
use suimon_quantity::{DiskId, Time, WorkerId};

use crate::plane::stalled_worker_tests::wait_until;
use crate::{PlaneError, StoragePlane};
use suimon_image_files::{DiskLayer, DiskSpec};
use suimon_storage_engine::testing::fakes::{Client, FakeFile, FakeIo, FakeQueue};
use suimon_storage_engine::testing::image_kinds::KINDS;
use suimon_storage_engine::testing::requests::{SIZE, WRITE, range};

pub(crate) struct Source;

impl FileIoSource for Source {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        Ok(Box::new(FakeIo::new(7, 16)))
    }
}

/// Worker that never sleeps, on a system with a limited number of watched descriptors.
pub(crate) struct PollingWait {
    left: Arc<AtomicUsize>,
    pub(crate) now: Time,
}

impl PollingWait {
    pub(crate) const fn new(remaining: Arc<AtomicUsize>) -> Self {
        Self { left: remaining, now: Time::ZERO }
    }
}

impl Wait for PollingWait {
    fn watch(&mut self, _: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        let ordering = Ordering::Relaxed;
        let result =
            self.left.fetch_update(ordering, ordering, |remaining| remaining.checked_sub(1));
        // ENOSPC, as returned for `fs.epoll.max_user_watches`.
        result.map(|_| ()).map_err(|_| io::Error::from_raw_os_error(28))
    }
    fn unwatch(&mut self, _: BorrowedFd<'_>) {}
    fn wait(&mut self, _: Option<Time>, _: &mut Vec<u64>) -> io::Result<()> {
        Ok(())
    }
    fn yield_now(&mut self) {}
    fn now(&self) -> Time {
        self.now
    }
    fn cpu_time(&self) -> Duration {
        Duration::ZERO
    }
}

pub(crate) struct NoWaker;

impl Waker for NoWaker {
    fn wake(&self) {}
}

/// Workers that run until the value is dropped.
pub(crate) struct Workers {
    ended: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Workers {
    pub(crate) fn start(plane: &StoragePlane, count: u16) -> Self {
        Self::start_with(plane, count, &Arc::new(AtomicUsize::new(usize::MAX)))
    }

    /// Starts workers on a system with a limited number of watched descriptors.
    pub(crate) fn start_with(
        plane: &StoragePlane,
        count: u16,
        remaining: &Arc<AtomicUsize>,
    ) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|number| {
            let mut engine = plane.create(WorkerId(number), Arc::new(NoWaker));
            let (is_stopped, remaining) = (Arc::clone(&is_stopped), Arc::clone(remaining));
            std::thread::spawn(move || {
                let mut wait = PollingWait::new(remaining);
                while !is_stopped.load(Ordering::Relaxed) {
                    let now = wait.now + Duration::from_micros(20);
                    wait.now = now;
                    // Simulates a wake-up of each queue in each iteration.
                    (0..4).for_each(|queue| engine.wake(queue));
                    engine.poll(now, false, &mut TaskDescriptors::new(&mut wait));
                }
            })
        });
        Self { threads: threads.collect(), ended: is_stopped }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

pub(crate) const DISK: DiskId = DiskId(3);

pub(crate) fn submit(client: &Mutex<Client>, tag: u32, op: DiskOp, offset: u64) {
    client.lock().unwrap().requests.push_back(DiskRequest { tag, op, range: range(offset, 512) });
}

pub(crate) fn wait_for_completion(client: &Mutex<Client>) -> (u32, DiskOutcome) {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(answer) = client.lock().unwrap().completions.pop() {
            return answer;
        }
        assert!(Instant::now() < deadline, "no answer");
        std::thread::yield_now();
    }
}

pub(crate) fn close(spec: DiskSpec) {
    for DiskLayer { image, file } in spec.layers {
        image.close(&*file).unwrap();
    }
}

#[test]
fn a_suspended_disk_is_enlarged_and_keeps_its_queues() {
    let plane = StoragePlane::new(Arc::new(Source));
    let workers = Workers::start(&plane, 2);
    let raw = KINDS[0];
    let memory = (raw.create)();
    let image = (raw.open)(&memory);
    let file = FakeFile::new(memory);
    let layer = DiskLayer { image, file: Arc::clone(&file) as _ };
    plane.add_disk(DISK, DiskSpec { layers: vec![layer] }, None).unwrap();
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
    let shape =
        DiskGeometry { size: SIZE * 2, logical_sector: 512, physical_sector: 4096, block: 0 };
    let layer = DiskLayer { image: Box::new(Linear::new(shape, 0, false)), file: file.clone() };
    plane.resume_disk(DISK, DiskSpec { layers: vec![layer] }).unwrap();
    assert_eq!(wait_for_completion(&client), (1, DiskOutcome::Done));
    assert_eq!(wait_for_completion(&late_client), (2, DiskOutcome::Done));
    assert_eq!(file.memory().bytes()[SIZE as usize..][..512], [9; 512]);
    assert_eq!(file.memory().bytes()[512..1024], [8; 512]);
    close(plane.take_disk(DISK).unwrap());
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
    let plane = StoragePlane::new(Arc::new(Source));
    let workers = Workers::start(&plane, 1);
    assert!(matches!(plane.suspend_disk(DISK), Err(PlaneError::NoSuchDisk)));
    let raw = KINDS[0];
    let memory = (raw.create)();
    let layer = DiskLayer { image: (raw.open)(&memory), file: FakeFile::new(memory) };
    plane.add_disk(DISK, DiskSpec { layers: vec![layer] }, None).unwrap();
    let error = plane.resume_disk(DISK, DiskSpec { layers: Vec::new() }).unwrap_err();
    assert!(error.spec.is_some(), "it is in service");
    let spec = plane.suspend_disk(DISK).unwrap();
    let error = plane.resume_disk(DISK, DiskSpec { layers: Vec::new() }).unwrap_err();
    assert!(error.spec.is_some());
    close(spec);
    assert!(plane.take_disk(DISK).unwrap().layers.is_empty());
    assert!(plane.disks().is_empty());
    drop(workers);
}

/// Simulates that another node still has the disk's files open.
#[test]
fn a_disk_added_without_images_waits_and_does_not_use_its_store() {
    let plane = StoragePlane::new(Arc::new(Source));
    let workers = Workers::start(&plane, 2);
    plane.add_disk(DISK, DiskSpec { layers: Vec::new() }, None).unwrap();
    let queue = FakeQueue::new(4);
    let (client, payloads) = (Arc::clone(&queue.client), Arc::clone(&queue.payloads));
    payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    plane.attach_client(DISK, Box::new(queue)).unwrap();
    submit(&client, 0, WRITE, 0);
    assert!(matches!(plane.suspend_disk(DISK), Err(PlaneError::Suspended)));
    assert!(matches!(plane.begin_mirror(DISK, None), Err(PlaneError::Suspended)));
    take_turns(&plane);
    assert_eq!(client.lock().unwrap().requests.len(), 1, "it is not read");
    assert_eq!(plane.in_flight(DISK).unwrap(), 0, "so its store hears of nothing");

    let memory = (KINDS[0].create)();
    let file = FakeFile::new(memory);
    let shape = DiskGeometry { size: SIZE, logical_sector: 512, physical_sector: 4096, block: 0 };
    let layer = DiskLayer { image: Box::new(Linear::new(shape, 0, false)), file: file.clone() };
    plane.resume_disk(DISK, DiskSpec { layers: vec![layer] }).unwrap();
    assert_eq!(wait_for_completion(&client), (0, DiskOutcome::Done));
    assert_eq!(file.memory().bytes()[..512], [9; 512]);
    close(plane.take_disk(DISK).unwrap());

    // A disk that never receives images is taken out of service like any other.
    plane.add_disk(DISK, DiskSpec { layers: Vec::new() }, None).unwrap();
    assert!(plane.take_disk(DISK).unwrap().layers.is_empty());
    assert!(plane.disks().is_empty());
    drop(workers);
}
