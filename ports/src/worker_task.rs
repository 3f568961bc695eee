//! Work of a worker other than switching frames, such as servicing disk queues.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use suimon_quantity::{Time, WorkerId};

use crate::{ServedDeviceCell, WaitSet, Waker};

/// First [`WaitSet`] token of a [`WorkerTask`]; lower tokens belong to frame queues.
const FIRST_TOKEN: u64 = 1 << 63;

/// Descriptors that a worker watches for its [`WorkerTask`].
pub struct TaskDescriptors<'a>(&'a mut dyn WaitSet);

impl<'a> TaskDescriptors<'a> {
    /// Wraps the wait of a worker.
    pub fn new(wait: &'a mut dyn WaitSet) -> Self {
        Self(wait)
    }

    /// Registers a descriptor for readability; [`WorkerTask::handle_readable`] reports it by
    /// `token`.
    ///
    /// # Errors
    /// Error of the system call.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: u32) -> io::Result<()> {
        self.0.watch(fd, FIRST_TOKEN | u64::from(token))
    }

    /// Returns the current time of the workers' clock, which may be later than the start of the
    /// polling round.
    #[must_use]
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Unregisters a descriptor. Unknown descriptors are ignored.
    pub fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        self.0.unwatch(fd);
    }

    /// Converts a token returned by [`WaitSet::wait`] to a token of the [`WorkerTask`]; `None` if
    /// it belongs to a frame queue.
    pub fn task_token(token: u64) -> Option<u32> {
        u32::try_from(token.checked_sub(FIRST_TOKEN)?).ok()
    }
}

/// Input that a [`WorkerTask`] expects; determines how long polling is worthwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedInput {
    /// No input that polling detects sooner than a wake-up.
    None,
    /// Possibly more of the requests that arrived recently.
    Requests,
    /// Completions, which are certain to arrive.
    Completions,
}

/// Work of a worker other than switching frames, serviced alternately with its frame queues. The
/// worker polls it once per round and sleeps only after [`WorkerTask::arm`] returned true.
pub trait WorkerTask: Send {
    /// Performs the pending work without blocking and returns true if there was any. Nearly free of
    /// cost if there is none. `is_busy`: the worker's last round made progress, so that polling
    /// without result takes time from other queues.
    fn poll(&mut self, now: Time, is_busy: bool, watches: &mut TaskDescriptors<'_>) -> bool;

    /// Reports that the worker's thread was runnable but not running for `span`, which has just
    /// ended. Called before [`WorkerTask::poll`].
    fn handle_unscheduled(&mut self, _span: Duration) {}

    /// Sets where the work records the device that it serves. Called once, before the first poll.
    fn set_serving(&mut self, _serving: Arc<ServedDeviceCell>) {}

    /// Reports that a watched descriptor is readable.
    fn handle_readable(&mut self, token: u32);

    /// Returns true if a descriptor is watched that a busy worker must check from time to time.
    fn needs_descriptor_check(&self) -> bool;

    /// Returns the input that may arrive soon and that polling detects immediately.
    fn expected_input(&self) -> ExpectedInput;

    /// Enables notifications. Returns true if no work is pending: the worker may sleep until a
    /// watched descriptor is readable, its waker is called or the deadline passes.
    fn arm(&mut self) -> bool;

    /// Returns the time at which work is due even without a wake-up.
    fn next_deadline(&self) -> Option<Time>;
}

/// Creates the [`WorkerTask`] of each worker.
pub trait WorkerTaskFactory: Send + Sync {
    /// Creates the task of the worker numbered `processor`, which is about to start. `waker` wakes
    /// that worker.
    fn create(&self, processor: WorkerId, waker: Arc<dyn Waker>) -> Box<dyn WorkerTask>;

    /// Reports that these workers are about to stop. Blocks until their tasks have moved their work
    /// to other workers, for a bounded time. Returns the workers that must not stop: they do not
    /// respond, or have work that could not be moved.
    #[must_use]
    fn retire_workers(&self, processors: &[WorkerId]) -> Vec<WorkerId>;

    /// Reports that all workers have stopped.
    fn handle_workers_ended(&self);
}

/// Worker tasks without work, for workers that switch frames only.
pub struct NoTasks;

impl WorkerTaskFactory for NoTasks {
    fn create(&self, _processor: WorkerId, _waker: Arc<dyn Waker>) -> Box<dyn WorkerTask> {
        Box::new(Self)
    }

    fn retire_workers(&self, _processors: &[WorkerId]) -> Vec<WorkerId> {
        Vec::new()
    }

    fn handle_workers_ended(&self) {}
}

impl WorkerTask for NoTasks {
    fn poll(&mut self, _now: Time, _is_busy: bool, _watches: &mut TaskDescriptors<'_>) -> bool {
        false
    }

    fn handle_readable(&mut self, _token: u32) {}

    fn needs_descriptor_check(&self) -> bool {
        false
    }

    fn expected_input(&self) -> ExpectedInput {
        ExpectedInput::None
    }

    fn arm(&mut self) -> bool {
        true
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
