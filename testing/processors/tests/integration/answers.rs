//! Tests how long a worker polls for completions of devices before it sleeps, and how it yields its
//! CPU while it polls. The clock is virtual and advances by one microsecond per round.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_ports::{
    ExpectedInput, TaskDescriptors, Waker, WorkerRuntime, WorkerTask, WorkerTaskFactory,
};
use suimon_processor_tests::TestClockRuntime;
use suimon_quantity::{Time, WorkerId};
use suimon_switch::DataPlane;

const ROUND_NS: u64 = 1000;
const POLL: Duration = Duration::from_micros(50);
/// Longer than the polling time of rings, and less than four times that time.
const SOON: Duration = Duration::from_micros(120);
const LATE: Duration = Duration::from_millis(1);
const ANSWERS: u64 = 100;

/// Device that always has one outstanding request.
#[derive(Default)]
struct Device {
    clock_ns: AtomicU64,
    takes_ns: AtomicU64,
    /// Duration of a round that receives a completion, in ns. The next request is issued at its
    /// end.
    turn_takes_ns: AtomicU64,
    due_ns: AtomicU64,
    answers: AtomicU64,
    /// Number of times the worker yielded the CPU, and time that other threads then use, in ns.
    gave_way: AtomicU64,
    others_take_ns: AtomicU64,
    waker: Mutex<Option<Arc<dyn Waker>>>,
}

struct Devices(Arc<Device>);

impl WorkerTaskFactory for Devices {
    fn create(&self, _: WorkerId, waker: Arc<dyn Waker>) -> Box<dyn WorkerTask> {
        *self.0.waker.lock().unwrap() = Some(waker);
        Box::new(Work(Arc::clone(&self.0)))
    }

    fn retire_workers(&self, _: &[WorkerId]) -> Vec<WorkerId> {
        Vec::new()
    }

    fn handle_workers_ended(&self) {}
}

struct Work(Arc<Device>);

impl WorkerTask for Work {
    fn poll(&mut self, now: Time, _: bool, _: &mut TaskDescriptors<'_>) -> bool {
        let device_state = &self.0;
        device_state.clock_ns.fetch_add(ROUND_NS, SeqCst);
        if now.as_ns() < device_state.due_ns.load(SeqCst) {
            return false;
        }
        let turn_takes = device_state.turn_takes_ns.load(SeqCst);
        device_state.clock_ns.fetch_add(turn_takes, SeqCst);
        device_state
            .due_ns
            .store(now.as_ns() + turn_takes + device_state.takes_ns.load(SeqCst), SeqCst);
        device_state.answers.fetch_add(1, SeqCst);
        true
    }

    fn handle_readable(&mut self, _: u32) {}

    fn needs_descriptor_check(&self) -> bool {
        false
    }

    fn expected_input(&self) -> ExpectedInput {
        ExpectedInput::Completions
    }

    fn arm(&mut self) -> bool {
        true
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

/// Starts a worker whose device completes late and that has slept before a completion. The wake-ups
/// caused by the start, and their effect on the estimate of completion times, are over.
fn started() -> (Arc<Device>, DataPlane) {
    let device = Arc::new(Device::default());
    set_time(&device, LATE);
    let clock = Arc::clone(&device);
    let now = move || Time::from_ns(clock.clock_ns.load(SeqCst));
    let others = Arc::clone(&device);
    let give_way = move || {
        others.gave_way.fetch_add(1, SeqCst);
        others.clock_ns.fetch_add(others.others_take_ns.load(SeqCst), SeqCst);
    };
    let runtime: Arc<dyn WorkerRuntime> = Arc::new(TestClockRuntime::new(now).with_yield(give_way));
    let cpu = runtime.allowed_cpus()[0];
    let storage_tasks = Arc::new(Devices(Arc::clone(&device)));
    let plane = DataPlane::start_with_tasks(&[cpu], runtime, storage_tasks).unwrap();
    plane.set_polling_time(POLL);
    for _ in 0..2 {
        answer_a_sleeper(&device, &plane);
    }
    (device, plane)
}

/// Sets the duration of requests issued from now on.
fn set_time(device: &Device, duration: Duration) {
    device.takes_ns.store(u64::try_from(duration.as_nanos()).unwrap(), SeqCst);
}

fn wait(description: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "not {description}");
        suimon_processor_tests::sleep_briefly();
    }
}

/// Waits until the worker sleeps, and wakes it when the next completion is due.
fn answer_a_sleeper(device: &Device, plane: &DataPlane) {
    wait("asleep", || plane.workers()[0].is_asleep);
    wake_at(device, device.due_ns.load(SeqCst));
}

/// Advances the clock to at least `ns`, wakes the worker, and waits for a completion.
fn wake_at(device: &Device, ns: u64) {
    let answers = device.answers.load(SeqCst);
    device.clock_ns.fetch_max(ns, SeqCst);
    device.waker.lock().unwrap().as_ref().unwrap().wake();
    wait("answered", || device.answers.load(SeqCst) > answers);
}

/// Asserts that the worker receives `ANSWERS` completions without sleeping.
fn assert_polls(device: &Device, plane: &DataPlane) {
    let (sleeps, answers) = (plane.workers()[0].sleeps, device.answers.load(SeqCst));
    wait("answered by polling", || device.answers.load(SeqCst) > answers + ANSWERS);
    assert_eq!(plane.workers()[0].sleeps, sleeps);
}

/// Asserts that the worker sleeps before each of `count` completions and receives none by polling.
fn assert_sleeps_for_each(device: &Device, plane: &DataPlane, count: u64) {
    wait("asleep", || plane.workers()[0].is_asleep);
    let (sleeps, answers) = (plane.workers()[0].sleeps, device.answers.load(SeqCst));
    for _ in 0..count {
        answer_a_sleeper(device, plane);
    }
    wait("asleep", || plane.workers()[0].is_asleep);
    assert_eq!(device.answers.load(SeqCst) - answers, count);
    assert!(plane.workers()[0].sleeps >= sleeps + count);
}

#[test]
fn answers_that_come_soon_are_slept_for_once() {
    let (device, plane) = started();
    set_time(&device, SOON);
    answer_a_sleeper(&device, &plane);
    // The worker still sleeps before the first early completion.
    answer_a_sleeper(&device, &plane);
    assert_polls(&device, &plane);
    plane.stop();
}

/// The time that the worker spends on earlier completions and on new requests does not count.
#[test]
fn answers_that_come_soon_after_a_long_turn_are_polled_for() {
    let (device, plane) = started();
    device.turn_takes_ns.store(u64::try_from(LATE.as_nanos()).unwrap(), SeqCst);
    set_time(&device, Duration::from_micros(20));
    answer_a_sleeper(&device, &plane);
    assert_polls(&device, &plane);
    plane.stop();
}

#[test]
fn answers_that_come_late_are_slept_for_each_time() {
    let (device, plane) = started();
    assert_sleeps_for_each(&device, &plane, 10);
    plane.stop();
}

#[test]
fn a_worker_that_does_not_poll_sleeps_for_each_answer() {
    let (device, plane) = started();
    plane.set_polling_time(Duration::ZERO);
    set_time(&device, SOON);
    assert_sleeps_for_each(&device, &plane, 10);
    plane.stop();
}

/// A polling worker yields the CPU, because the thread that completes the requests may need it.
#[test]
fn a_polling_worker_yields_to_threads_that_run_briefly() {
    let (device, plane) = started();
    set_time(&device, SOON);
    device.others_take_ns.store(20_000, SeqCst);
    for _ in 0..2 {
        answer_a_sleeper(&device, &plane);
    }
    let (gave_way, answers) = (device.gave_way.load(SeqCst), device.answers.load(SeqCst));
    assert_polls(&device, &plane);
    // About five yields per completion after 120 µs: each round takes 4 µs plus 20 µs.
    let gave_way = device.gave_way.load(SeqCst) - gave_way;
    let answers = device.answers.load(SeqCst) - answers;
    assert!((4 * answers..=6 * answers).contains(&gave_way), "{gave_way} for {answers}");
    plane.stop();
}

#[test]
fn a_worker_that_regains_its_cpu_late_pauses_polling() {
    let (device, plane) = started();
    set_time(&device, SOON);
    answer_a_sleeper(&device, &plane);
    let worker_state = || {
        let view = &plane.workers()[0];
        (view.polling_pauses, view.is_polling_paused)
    };
    assert_eq!(worker_state(), (0, false));
    device.others_take_ns.store(2_000_000, SeqCst);
    // The worker polls once more and detects that other threads use the CPU.
    answer_a_sleeper(&device, &plane);
    wait("asleep", || plane.workers()[0].is_asleep);
    let (start_ns, gave_way) = (device.clock_ns.load(SeqCst), device.gave_way.load(SeqCst));
    assert_sleeps_for_each(&device, &plane, 20);
    assert_eq!(device.gave_way.load(SeqCst), gave_way);
    assert_eq!(worker_state(), (1, true));
    // The other threads have stopped.
    device.others_take_ns.store(0, SeqCst);
    wake_at(&device, start_ns + 100_000_000);
    answer_a_sleeper(&device, &plane);
    assert_polls(&device, &plane);
    assert_eq!(worker_state(), (1, false));
    plane.stop();
}

/// A wake-up without a completion, for example a repeated notification, does not change the
/// estimate of completion times.
#[test]
fn a_wake_up_without_a_completion_does_not_change_the_estimate() {
    let (device, plane) = started();
    set_time(&device, SOON);
    answer_a_sleeper(&device, &plane);
    for _ in 0..3 {
        wait("asleep", || plane.workers()[0].is_asleep);
        let sleeps = plane.workers()[0].sleeps;
        device.waker.lock().unwrap().as_ref().unwrap().wake();
        wait("asleep again", || plane.workers()[0].sleeps > sleeps);
    }
    // If these wake-ups had doubled the polling time each, the worker would not sleep here.
    answer_a_sleeper(&device, &plane);
    plane.stop();
}
