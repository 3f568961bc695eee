//! Search of the interleavings of workers that exchange with one budget.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::sync::{Condvar, Mutex};
use suimon_quantity::DiskId;
use suimon_storage_qos::{
    Capacity, Completion, DiskSlot, IoKind, Limits, LimitsSource, NextAction, Proposal, Store,
    StoreSpec, SubmitOutcome,
};

use super::*;

pub(crate) struct ModelPrimitives;

impl Primitives for ModelPrimitives {
    type Lock<T: Send> = Mutex<T>;
    type Flag = AtomicBool;

    fn yield_now() {
        shuttle::thread::yield_now();
    }
}

impl<T> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().unwrap())
    }

    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_lock().ok().map(|mut value| f(&mut value))
    }
}

impl Flag for AtomicBool {
    fn set(&self, value: bool) {
        self.store(value, Ordering::Release);
    }

    fn get(&self) -> bool {
        self.load(Ordering::Acquire)
    }
}

/// Sleep of a worker.
#[derive(Default)]
struct Sleeper {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Waker for Sleeper {
    fn wake(&self) {
        *self.is_woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

impl Sleeper {
    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = self.changed.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

const NOW: Time = Time::from_ns(1 << 40);
const UNUSED: SamplingState = SamplingState { sampled_at: NOW, has_new_requests: false };

/// Creates the budget of a device that serves one request at a time, with a disk for each worker.
fn budget(workers: u32) -> Locked<ModelPrimitives> {
    let spec = StoreSpec { depth_min: 1, depth_max: 1, waiting_max: 16, ..StoreSpec::default() };
    let mut borrower = Borrower::new(spec.normalization, 16);
    let mut scheduler = Recorded::record_scheduler(None, (NOW, "0"), spec);
    let mut store = Store::new(Capacity::Declared(1000));
    let disk = |disk| Proposal::SetDisk(DiskId(disk), LimitsSource::Own(Limits::default()));
    for change in store.apply(&(0..workers).map(disk).collect::<Vec<_>>(), false).unwrap() {
        scheduler.apply(NOW, change);
    }
    let budget = scheduler.into_shared_budget(NOW, WorkerId(0), &mut borrower);
    Arc::new(Mutex::new(State::<ModelPrimitives>::new(NOW, budget, UNUSED)))
}

/// Runs a worker with a number of requests. When it has nothing to do and `may_sleep` permits, it
/// sleeps. No deadline wakes it, so a lost wake-up is a deadlock.
fn run_worker(
    state: &Locked<ModelPrimitives>,
    number: u16,
    requests: u32,
    may_sleep: impl Fn(&BudgetMembership<ModelPrimitives>) -> bool,
) {
    let sleeper = Arc::new(Sleeper::default());
    let waker: Arc<dyn Waker> = Arc::clone(&sleeper) as _;
    let mut client =
        BudgetMembership::<ModelPrimitives>::join(state, WorkerId(number), Some(waker));
    let disk = DiskSlot(number.into());
    let mut borrower = Borrower::new(StoreSpec::default().normalization, 16);
    borrower.add(disk);
    // Loans would be returned by time only.
    borrower.set_draining(true);
    for tag in 0..requests {
        assert_eq!(borrower.submit(NOW, disk, 4096, tag).unwrap(), SubmitOutcome::Queued);
    }
    let mut completed = 0;
    while completed < requests {
        client.exchange(NOW, &mut borrower);
        let mut has_worked = false;
        while let NextAction::Dispatch { .. } = borrower.poll(NOW) {
            let (operation, latency) = (IoKind::Read, None);
            borrower.handle_completion(NOW, Completion { disk, operation, bytes: 4096, latency });
            completed += 1;
            has_worked = true;
        }
        if has_worked {
            continue;
        }
        if may_sleep(&client) {
            sleeper.sleep();
        } else {
            shuttle::thread::yield_now();
        }
    }
    while !borrower.is_drained() || client.needs_exchange() {
        client.exchange(NOW, &mut borrower);
        shuttle::thread::yield_now();
    }
    // The attempt is not repeated, so it must succeed even if another worker holds the lock.
    assert!(client.try_leave(), "the worker has no grants");
}

fn run(
    workers: u16,
    requests: u32,
    may_sleep: impl Fn(&BudgetMembership<ModelPrimitives>) -> bool + Copy + Send + 'static,
) {
    let state = budget(workers.into());
    let threads: Vec<_> = (0..workers)
        .map(|number| {
            let state = Arc::clone(&state);
            shuttle::thread::spawn(move || run_worker(&state, number, requests, may_sleep))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let in_flight = state.with(|state| state.budget().map(|budget| budget.in_flight()));
    assert_eq!(in_flight, Some(0), "a grant was lost");
}

fn has_nothing_pending(client: &BudgetMembership<ModelPrimitives>) -> bool {
    !client.needs_exchange()
}

/// A worker that does not get the lock tries again, so the tree of interleavings is not finite.
/// Both schedulers choose at random; the second one prefers few switches.
#[test]
fn interleavings_of_two_workers_lose_no_grant() {
    shuttle::check_random(|| run(2, 3, has_nothing_pending), 10_000);
    shuttle::check_pct(|| run(2, 3, has_nothing_pending), 5000, 3);
}

#[test]
fn interleavings_of_three_workers_lose_no_grant() {
    shuttle::check_random(|| run(3, 2, has_nothing_pending), 10_000);
}

/// Checks workers with a fault that the real ones do not have: they sleep although another worker
/// held the lock when they were to report. The checker must detect it, otherwise the other tests
/// prove nothing.
#[test]
#[should_panic(expected = "deadlock")]
fn the_check_finds_a_worker_that_sleeps_before_its_report() {
    shuttle::check_random(|| run(2, 2, |_| true), 10_000);
}
