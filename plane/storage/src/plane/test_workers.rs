//! Workers on threads of their own, and disks, for tests of the storage plane.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::{
    DiskOp, DiskOutcome, DiskRequest, FileIo, FileIoFactory, TaskDescriptors, WaitSet, Waker,
    WorkerTaskFactory,
};
use suimon_quantity::{DiskId, StoreId, Time, WorkerId};
use suimon_storage_engine::testing::fake_file::FakeFile;
use suimon_storage_engine::testing::fake_io::FakeIo;
use suimon_storage_engine::testing::fake_queue::Client;
use suimon_storage_engine::testing::image_kinds::KINDS;
use suimon_storage_engine::testing::requests::range;
use suimon_storage_qos::{Capacity, Limits, LimitsSource, Proposal, StoreSpec};

use crate::command::wait_limits::WaitLimits;
use crate::{PlaneError, StoragePlane};

pub(crate) struct FakeIoSource;

impl FileIoFactory for FakeIoSource {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        Ok(Box::new(FakeIo::new(7, 16)))
    }
}

/// Worker that never sleeps, on a system with a limited number of watched descriptors.
pub(crate) struct PollingWait {
    remaining: Arc<AtomicUsize>,
    pub(crate) now: Time,
}

impl PollingWait {
    pub(crate) const fn new(remaining: Arc<AtomicUsize>) -> Self {
        Self { remaining, now: Time::ZERO }
    }
}

impl WaitSet for PollingWait {
    fn watch(&mut self, _: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        let ordering = Ordering::Relaxed;
        let result =
            self.remaining.fetch_update(ordering, ordering, |remaining| remaining.checked_sub(1));
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
            let mut task = plane.create(WorkerId(number), Arc::new(NoWaker));
            let (is_stopped, remaining) = (Arc::clone(&is_stopped), Arc::clone(remaining));
            std::thread::spawn(move || {
                let mut wait = PollingWait::new(remaining);
                while !is_stopped.load(Ordering::Relaxed) {
                    let now = wait.now + Duration::from_micros(20);
                    wait.now = now;
                    // Simulates a wake-up of each queue in each iteration.
                    (0..4).for_each(|queue| task.handle_readable(queue));
                    task.poll(now, false, &mut TaskDescriptors::new(&mut wait));
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

pub(crate) fn close(spec: LayerStack) {
    for DiskLayer { image, file } in spec.layers {
        image.close(&*file).unwrap();
    }
}

pub(crate) const STORE: StoreId = StoreId(7);
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// Returns a plane whose wait for a store's only user does not expire.
pub(crate) fn plane_with_long_waits() -> StoragePlane {
    StoragePlane::with_wait_limits(
        Arc::new(FakeIoSource),
        None,
        WaitLimits::new(10 * TEST_TIMEOUT, 10 * TEST_TIMEOUT),
    )
}

/// Waker that counts its calls: each command to the worker causes one.
#[derive(Default)]
pub(crate) struct CountingWaker(AtomicUsize);

impl Waker for CountingWaker {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Worker on a thread of its own.
pub(crate) struct Worker {
    ended: AtomicBool,
    is_to_stall: AtomicBool,
    is_stalled: AtomicBool,
    waker: Arc<CountingWaker>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    pub(crate) fn start(plane: &StoragePlane, id: u16) -> Arc<Self> {
        let [is_stopped, is_to_stall, is_stalled] = [(); 3].map(|()| AtomicBool::new(false));
        let waker = Arc::<CountingWaker>::default();
        let mut task = plane.create(WorkerId(id), Arc::clone(&waker) as _);
        let thread = Mutex::default();
        let worker = Arc::new(Self { ended: is_stopped, is_to_stall, is_stalled, waker, thread });
        let of_thread = Arc::clone(&worker);
        let thread = std::thread::spawn(move || {
            let mut wait = PollingWait::new(Arc::new(AtomicUsize::new(usize::MAX)));
            while !of_thread.ended.load(Ordering::Relaxed) {
                let is_stalled = of_thread.is_to_stall.load(Ordering::Relaxed);
                of_thread.is_stalled.store(is_stalled, Ordering::Relaxed);
                if !is_stalled {
                    let now = wait.now + Duration::from_micros(20);
                    wait.now = now;
                    // Simulates a wake-up of each queue in each iteration.
                    (0..4).for_each(|queue| task.handle_readable(queue));
                    task.poll(now, false, &mut TaskDescriptors::new(&mut wait));
                }
                std::thread::yield_now();
            }
        });
        *worker.thread.lock().unwrap() = Some(thread);
        worker
    }

    /// Stops the worker between two rounds, or lets it proceed.
    pub(crate) fn set_stalled(&self, is_stalled: bool) {
        self.is_to_stall.store(is_stalled, Ordering::Relaxed);
        while self.is_stalled.load(Ordering::Relaxed) != is_stalled {
            std::thread::yield_now();
        }
    }

    /// Ends the worker after its round.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Ends the worker as a panic does: its channel remains. Returns when it has ended.
    pub(crate) fn end_and_join(&self) {
        self.end();
        if let Some(thread) = self.thread.lock().unwrap().take() {
            thread.join().unwrap();
        }
    }

    /// Returns the number of wake-ups of the worker: one per command, and those for other reasons.
    pub(crate) fn wakes(&self) -> usize {
        self.waker.0.load(Ordering::Relaxed)
    }
}

/// Ends the workers when it is dropped.
pub(crate) struct StopOnDrop(pub(crate) Vec<Arc<Worker>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(|worker| worker.end());
    }
}

pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + TEST_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < until, "the condition does not become true");
        std::thread::yield_now();
    }
}

/// Takes a disk out of service and closes its images. Its worker counts as blocked until it has
/// proceeded, and may take the disk out of service itself after the caller's wait.
pub(crate) fn take_and_close(plane: &StoragePlane, disk: DiskId) {
    wait_until(|| match plane.remove_disk(disk) {
        Ok(spec) => {
            close(spec);
            true
        }
        Err(PlaneError::NoSuchDisk) => true,
        Err(_) => false,
    });
}

/// Returns a plane with two workers that have a disk each.
pub(crate) fn two_disks() -> (StoragePlane, StopOnDrop) {
    let plane = plane_with_long_waits();
    let workers = StopOnDrop([0, 1].map(|id| Worker::start(&plane, id)).into());
    plane.add_store(STORE, StoreSpec::default()).unwrap();
    plane.set_capacity(STORE, Capacity::Declared(10_000));
    for id in [DiskId(0), DiskId(1)] {
        let assigned = LimitsSource::Own(Limits::default());
        plane.apply_proposals(STORE, &[Proposal::SetDisk(id, assigned)], false).unwrap();
        plane.add_disk(id, raw_disk().0, Some(STORE)).unwrap();
    }
    (plane, workers)
}

/// Creates a disk with a raw image.
pub(crate) fn raw_disk() -> (LayerStack, Arc<FakeFile>) {
    let memory = (KINDS[0].create)();
    let image = (KINDS[0].open)(&memory);
    let file = FakeFile::new(memory);
    (LayerStack { layers: vec![DiskLayer { image, file: file.clone() }] }, file)
}
