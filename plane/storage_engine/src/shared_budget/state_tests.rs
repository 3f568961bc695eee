//! Membership of workers in a budget, and the worker that wakes up for the budget's deadline.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;

use suimon_quantity::{DiskId, Iops};
use suimon_storage_qos::{
    Capacity, Completion, DiskSlot, IoKind, Limits, LimitsSource, NextAction, Proposal, Store,
    StoreSpec, SubmitOutcome,
};

use super::*;
use crate::shared_budget::sync::{Lock, Primitives};
use crate::shared_budget::{BudgetMembership, read_flows};

const NOW: Time = Time::from_ns(1 << 40);
const MS: Duration = Duration::from_millis(1);

thread_local! {
    static YIELDS: Cell<u32> = const { Cell::new(0) };
}

/// Primitives that count how often this thread has yielded.
struct CountingPrimitives;

impl Primitives for CountingPrimitives {
    type Lock<T: Send> = Mutex<T>;
    type Flag = AtomicBool;

    fn yield_now() {
        YIELDS.set(YIELDS.get() + 1);
    }
}

type State = Arc<Mutex<BudgetState<AtomicBool>>>;

#[derive(Default)]
struct CountingWaker(AtomicU32);

impl Waker for CountingWaker {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Worker with one disk, whose slot has the number of the worker.
struct Worker {
    client: BudgetMembership<CountingPrimitives>,
    own: Borrower,
    disk: DiskSlot,
    waker: Arc<CountingWaker>,
}

impl Worker {
    fn join(state: &State, number: u16) -> Self {
        let waker = Arc::new(CountingWaker::default());
        let client = BudgetMembership::join(state, WorkerId(number), Some(Arc::clone(&waker) as _));
        let mut borrower = Borrower::new(StoreSpec::default().normalization, 64);
        let disk = DiskSlot(number.into());
        borrower.add(disk);
        borrower.set_draining(true);
        Self { client, own: borrower, disk, waker }
    }

    fn submit(&mut self, now: Time, requests: u32) {
        for tag in 0..requests {
            assert_eq!(self.own.submit(now, self.disk, 4096, tag), Ok(SubmitOutcome::Queued));
        }
    }

    /// Makes an exchange, and returns the number of requests that the worker may dispatch.
    fn exchange(&mut self, now: Time) -> u32 {
        self.client.exchange(now, &mut self.own);
        let mut dispatched = 0;
        while let NextAction::Dispatch { .. } = self.own.poll(now) {
            dispatched += 1;
        }
        dispatched
    }

    fn complete(&mut self, now: Time, requests: u32) {
        let (disk, operation, latency) = (self.disk, IoKind::Read, None);
        for _ in 0..requests {
            self.own.handle_completion(now, Completion { disk, operation, bytes: 4096, latency });
        }
    }
}

/// Creates the budget of a device with this queue depth, with three disks that have this maximum.
fn budget(max_iops: u64, depth: u32) -> State {
    let spec = StoreSpec { depth_min: depth, depth_max: depth, ..StoreSpec::default() };
    let mut borrower = Borrower::new(spec.normalization, 64);
    let mut scheduler = Recorded::record_scheduler(None, (NOW, "0"), spec);
    let mut store = Store::new(Capacity::Declared(1_000_000));
    let limits = Limits { max_iops: Iops::new(max_iops), ..Limits::default() };
    let disk = |disk| Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits));
    for change in store.apply(&[disk(0), disk(1), disk(2)], false).unwrap() {
        scheduler.apply(NOW, change);
    }
    let budget = scheduler.into_shared_budget(NOW, WorkerId(0), &mut borrower);
    let observation = SamplingState { sampled_at: NOW, has_new_requests: false };
    Arc::new(Mutex::new(BudgetState::new(NOW, budget, observation)))
}

fn in_flight(state: &State) -> u32 {
    state.with(|budget_state| budget_state.budget().map_or(0, |budget| budget.in_flight()))
}

#[test]
fn the_worker_with_the_last_exchange_arms_the_deadline() {
    let state = budget(100, 64);
    let mut workers = [0, 1].map(|number| Worker::join(&state, number));
    workers.iter_mut().for_each(|worker| worker.submit(NOW, 8));
    for worker in &mut workers {
        assert!(worker.exchange(NOW) > 0);
    }
    // Grants of the first worker's reports were added in its own exchange.
    assert_eq!(workers[0].client.next_deadline(false), None);
    let due = workers[1].client.next_deadline(false).unwrap();
    assert!(NOW < due && due <= NOW + 10 * MS, "{due:?}: one request per 10 ms");
    // The next exchange of the other worker takes over the deadline, with the same time.
    workers[0].complete(NOW + MS, 1);
    workers[0].exchange(NOW + MS);
    assert_eq!(workers[0].client.next_deadline(false), Some(due));
    assert_eq!(workers[1].client.next_deadline(false), None);
    // The worker with the deadline ends. Others are woken, and the next exchange takes it over.
    let [first, mut second] = workers;
    let wakes = second.waker.0.load(Ordering::Relaxed);
    drop(first);
    assert!(second.waker.0.load(Ordering::Relaxed) > wakes);
    assert_eq!(second.client.next_deadline(false), Some(Time::ZERO), "an exchange is due");
    second.exchange(NOW + MS);
    assert_eq!(second.client.next_deadline(false), Some(due));
}

/// A worker joins again while its former membership still exists.
#[test]
fn a_worker_that_joins_again_does_not_keep_its_former_deadline() {
    let state = budget(100, 64);
    let mut former = Worker::join(&state, 0);
    former.submit(NOW, 8);
    former.exchange(NOW);
    assert!(former.client.next_deadline(false).is_some());
    let mut rejoined = Worker::join(&state, 0);
    assert_eq!(in_flight(&state), 0, "requests of the former membership are not counted");
    rejoined.exchange(NOW);
    assert!(rejoined.client.next_deadline(false).is_some(), "it arms the deadline");
    drop(former);
    assert_eq!(
        state.with(|budget_state| budget_state.members.len()),
        1,
        "the new membership remains"
    );
}

#[test]
fn a_worker_that_ends_leaves_the_budget_with_its_grants() {
    let state = budget(0, 4);
    let mut workers = [0, 1].map(|number| Worker::join(&state, number));
    workers[0].submit(NOW, 4);
    assert_eq!(workers[0].exchange(NOW), 4);
    workers[1].submit(NOW, 8);
    assert_eq!(workers[1].exchange(NOW), 0, "the device is full");
    // The completions of the first worker permit requests of the second one, which it does not
    // fetch.
    workers[0].complete(NOW, 4);
    workers[0].exchange(NOW);
    assert_eq!(
        (in_flight(&state), state.with(|budget_state| budget_state.unfetched_grants(WorkerId(1)))),
        (4, 4)
    );
    let [mut first, second] = workers;
    drop(second);
    assert_eq!(state.with(|budget_state| budget_state.members.len()), 1);
    // Requests of the worker that are still queued are granted once, and returned.
    first.submit(NOW, 4);
    for _ in 0..4 {
        let dispatched = first.exchange(NOW);
        first.complete(NOW, dispatched);
    }
    first.exchange(NOW);
    assert_eq!((in_flight(&state), first.own.is_drained()), (0, true));
    assert!(first.client.take_budget_if_settled(&first.own, 0).is_some(), "it is the only user");
}

#[test]
fn changes_wake_a_worker_that_leaves_the_store() {
    let state = budget(100, 64);
    let mut worker = Worker::join(&state, 0);
    worker.exchange(NOW);
    let mut to_wake = Vec::new();
    assert!(
        state.with(
            |budget_state| budget_state.add_changes(&[ConfigStep::SetCap(None)], &mut to_wake)
        )
    );
    assert!(worker.client.needs_exchange());
    assert_eq!(to_wake.len(), 1, "it sleeps, and receives no command");
    worker.exchange(NOW);
    assert!(worker.client.try_leave());
}

#[test]
fn a_worker_leaves_while_another_one_holds_the_lock() {
    let state = budget(0, 4);
    let mut worker = Worker::join(&state, 0);
    worker.exchange(NOW);
    let (locked, is_locked) = channel();
    let (release, is_released) = channel();
    let of_thread = Arc::clone(&state);
    let holder = std::thread::spawn(move || {
        of_thread.with(|_| {
            locked.send(()).unwrap();
            is_released.recv().unwrap();
        });
    });
    is_locked.recv().unwrap();
    let leaver = std::thread::spawn(move || worker.client.try_leave());
    release.send(()).unwrap();
    assert!(leaver.join().unwrap(), "no later event repeats the attempt");
    holder.join().unwrap();
    assert_eq!(state.with(|budget_state| budget_state.members.len()), 0);
}

#[test]
fn a_worker_yields_after_several_failed_attempts() {
    let state = budget(0, 4);
    let mut worker = Worker::join(&state, 0);
    worker.submit(NOW, 1);
    let lock = state.lock().unwrap();
    let before = YIELDS.get();
    for _ in 0..20 {
        assert_eq!(worker.exchange(NOW), 0);
        assert!(worker.client.needs_exchange(), "it does not sleep");
    }
    let yields = YIELDS.get() - before;
    assert!((1..20).contains(&yields), "{yields} of 20: the first attempts do not yield");
    drop(lock);
    assert_eq!(worker.exchange(NOW), 1);
    worker.complete(NOW, 1);
    worker.exchange(NOW);
    assert_eq!(YIELDS.get() - before, yields);
}

fn view(state: &State, disk: DiskSlot) -> DiskQosStatus {
    state.with(|budget_state| budget_state.budget().unwrap().view(NOW, disk).unwrap())
}

#[test]
fn a_worker_that_ends_frees_the_depth_of_the_device_and_notifies_others() {
    let state = budget(0, 4);
    let mut workers = [0, 1].map(|number| Worker::join(&state, number));
    workers[0].submit(NOW, 4);
    assert_eq!(workers[0].exchange(NOW), 4);
    workers[1].submit(NOW, 8);
    assert_eq!(workers[1].exchange(NOW), 0, "the device is full");
    // The ended worker does not have the deadline, and has no unfetched grants.
    let [first, mut second] = workers;
    let wakes = second.waker.0.load(Ordering::Relaxed);
    let disk = first.disk;
    drop(first);
    assert_eq!(second.waker.0.load(Ordering::Relaxed), wakes + 1);
    assert!(second.client.needs_exchange(), "an exchange is due");
    assert_eq!(second.exchange(NOW), 4);
    assert_eq!((in_flight(&state), view(&state, disk).in_flight), (4, 0));
}

/// Another worker holds the lock whenever the last report is to be passed to the budget.
#[test]
fn the_last_report_of_a_worker_that_ends_is_not_lost() {
    let state = budget(0, 4);
    let mut workers = [0, 1].map(|number| Worker::join(&state, number));
    workers[0].submit(NOW, 3);
    assert_eq!(workers[0].exchange(NOW), 3);
    workers[1].exchange(NOW);
    let lock = state.lock().unwrap();
    workers[0].complete(NOW, 2);
    workers[0].exchange(NOW);
    // Requests that are not reported yet are not granted to the ended worker.
    workers[0].submit(NOW, 1);
    workers[0].exchange(NOW);
    drop(lock);
    let [first, mut second] = workers;
    let disk = first.disk;
    drop(first);
    let flow = view(&state, disk);
    assert_eq!((flow.counters.delivered_operations, flow.waiting, flow.in_flight), (2, 0, 0));
    assert!(second.client.needs_exchange());
    second.exchange(NOW);
    assert_eq!(in_flight(&state), 0);
    assert!(second.client.take_budget_if_settled(&second.own, 0).is_some());
}

/// The report is not collected from the borrower yet. It includes the loans, which are refunded.
#[test]
fn a_worker_that_ends_returns_its_loans() {
    let state = budget(100, 4);
    let mut worker = Worker::join(&state, 0);
    worker.own.set_draining(false);
    worker.submit(NOW, 1);
    assert_eq!(worker.exchange(NOW), 1);
    worker.complete(NOW, 1);
    worker.exchange(NOW);
    assert_eq!(in_flight(&state), 1, "a loan");
    let demanded = view(&state, worker.disk).counters.demanded_operations;
    let (borrower, disk) = (&mut worker.own, worker.disk);
    worker.client.end(borrower);
    let flow = view(&state, disk);
    assert_eq!(
        (in_flight(&state), flow.counters.demanded_operations),
        (0, demanded - 1),
        "it is refunded"
    );
    let state_of = state.with(|budget_state| budget_state.members.len());
    assert_eq!(state_of, 0);
    drop(worker);
    assert_eq!(view(&state, disk).counters.demanded_operations, demanded - 1, "once");
}

#[test]
fn a_worker_with_queued_requests_takes_the_place_of_one_that_does_not_arm_the_deadline() {
    let state = budget(100, 64);
    let mut workers = [0, 1].map(|number| Worker::join(&state, number));
    workers.iter_mut().for_each(|worker| worker.submit(NOW, 8));
    workers.iter_mut().for_each(|worker| assert!(worker.exchange(NOW) > 0));
    let due = workers[1].client.next_deadline(true).unwrap();
    assert_eq!(workers[0].client.next_deadline(false), None, "without queued requests");
    let later = workers[0].client.next_deadline(true).unwrap();
    assert!(due < later && later <= due + 20 * MS, "{due:?} {later:?}");
    // Its exchange at that time grants the requests that are due.
    assert!(workers[0].exchange(later) > 0);
    assert!(state.with(|budget_state| budget_state.unfetched_grants(WorkerId(1))) > 0);
    let next = workers[0].client.next_deadline(true).unwrap();
    assert!(later < next && next <= later + 10 * MS, "it arms the next deadline: {next:?}");
}

#[test]
fn the_state_of_many_disks_is_read_in_blocks() {
    let state = budget(0, 4);
    let slots: Vec<DiskSlot> = (0..100).map(|slot| DiskSlot(slot % 3)).collect();
    let mut pauses = 0;
    let pause = || {
        assert!(state.try_with(|_| ()).is_some(), "workers can use the budget");
        pauses += 1;
    };
    let flows = read_flows::<CountingPrimitives>(&state, NOW, &slots, pause).unwrap();
    let disks: Vec<DiskId> = slots.iter().map(|slot| DiskId(slot.0)).collect();
    assert!(flows.iter().map(|flow| flow.disk).eq(disks));
    assert_eq!(pauses, 3);
}
