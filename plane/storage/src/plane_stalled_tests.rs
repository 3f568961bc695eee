//! Control of a store's disks while one of the store's workers does not proceed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use suimon_ports::{TaskDescriptors, WorkerTasks};
use suimon_quantity::{DiskId, StoreId, TimedRateLimit, WorkerId};
use suimon_storage_qos::{Assignment, Capacity, Limits, Proposal, StoreSpec};

use crate::StoragePlane;
use crate::fakes::FakeQueue;
use crate::plane_retire_tests::disk;
use crate::plane_suspend_tests::{NoWaker, Sleepless, Source, answer, ask, close};
use crate::queue_key::QueueKey;
use crate::work_tests::WRITE;

const STORE: StoreId = StoreId(7);
const LIMIT: Duration = Duration::from_secs(90);

/// Worker on a thread of its own.
struct Worker {
    ended: AtomicBool,
    is_to_stall: AtomicBool,
    is_stalled: AtomicBool,
}

impl Worker {
    fn start(plane: &StoragePlane, id: u16) -> Arc<Self> {
        let [ended, is_to_stall, is_stalled] = [(); 3].map(|()| AtomicBool::new(false));
        let worker = Arc::new(Self { ended, is_to_stall, is_stalled });
        let mut task = plane.create(WorkerId(id), Arc::new(NoWaker));
        let of_thread = Arc::clone(&worker);
        std::thread::spawn(move || {
            let mut wait = Sleepless::new(Arc::new(AtomicUsize::new(usize::MAX)));
            while !of_thread.ended.load(Ordering::Relaxed) {
                let is_stalled = of_thread.is_to_stall.load(Ordering::Relaxed);
                of_thread.is_stalled.store(is_stalled, Ordering::Relaxed);
                if !is_stalled {
                    let now = wait.now + Duration::from_micros(20);
                    wait.now = now;
                    // Simulates a wake-up of each queue in each iteration.
                    (0..4).for_each(|queue| task.wake(queue));
                    task.poll(now, false, &mut TaskDescriptors::new(&mut wait));
                }
                std::thread::yield_now();
            }
        });
        worker
    }

    /// Stops the worker between two rounds, or lets it proceed.
    fn set_stalled(&self, is_stalled: bool) {
        self.is_to_stall.store(is_stalled, Ordering::Relaxed);
        while self.is_stalled.load(Ordering::Relaxed) != is_stalled {
            std::thread::yield_now();
        }
    }
}

/// Ends the workers when it is dropped.
struct Ends(Vec<Arc<Worker>>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.iter().for_each(|worker| worker.ended.store(true, Ordering::Relaxed));
    }
}

#[test]
fn changes_and_the_removal_of_a_disk_do_not_wait_for_a_stalled_worker() {
    for stalled in 0..2 {
        let plane = StoragePlane::new(Arc::new(Source));
        let workers = Ends([0, 1].map(|id| Worker::start(&plane, id)).into());
        plane.add_store(STORE, StoreSpec::default()).unwrap();
        plane.set_capacity(STORE, Capacity::Declared(10_000));
        for id in [DiskId(0), DiskId(1)] {
            let assigned = Assignment::Own(Limits::default());
            plane.propose(STORE, &[Proposal::Disk(id, assigned)], false).unwrap();
            plane.add_disk(id, disk().0, Some(STORE)).unwrap();
        }
        let served: Vec<WorkerId> = plane.disks().iter().map(|view| view.worker).collect();
        assert_eq!(served, [WorkerId(0), WorkerId(1)]);
        workers.0[stalled].set_stalled(true);
        let other = DiskId(1 - stalled as u32);
        let (report, reports) = channel();
        let of_thread = plane.clone();
        std::thread::spawn(move || {
            let cap = TimedRateLimit::default();
            of_thread.set_cap(STORE, Some(cap));
            of_thread.set_cap(STORE, None);
            let queue = FakeQueue::new(4);
            queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
            let client = Arc::clone(&queue.client);
            of_thread.attach_queue(other, QueueKey::Ring(0), Box::new(queue)).unwrap();
            ask(&client, 1, WRITE, 0);
            let done = answer(&client);
            close(of_thread.take_disk(other).unwrap());
            report.send(done).unwrap();
        });
        let done = reports.recv_timeout(LIMIT).expect("no operation waits for the worker");
        assert_eq!(done.0, 1);
        workers.0[stalled].set_stalled(false);
        // The worker proceeds, and becomes the only user of the store.
        let stays = DiskId(stalled as u32);
        assert_eq!(plane.disks().len(), 1);
        plane.add_disk(other, disk().0, Some(STORE)).unwrap();
        for id in [stays, other] {
            close(plane.take_disk(id).unwrap());
        }
    }
}
