//! Operations: every change under way, and the last that ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, Operation, OperationState, Plan};

use crate::{NodeListener, UnixClock};

/// Operations remembered, those under way included.
pub const OPERATIONS_MAX: usize = 1000;

/// Operations under way at a time; more are refused.
pub const RUNNING_MAX: usize = 128;

/// What a waiting operation shows as its step.
const WAITING: &str = "waiting for the change before it";

/// The table of operations.
pub(crate) struct Operations {
    inner: Mutex<Inner>,
    changed: Condvar,
    clock: UnixClock,
    listener: Arc<dyn NodeListener>,
}

#[derive(Default)]
struct Inner {
    last_id: u64,
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    operation: Operation,
    cancelled: Arc<AtomicBool>,
    /// Whether somebody works on it; until then it ends at once when cancelled.
    begun: bool,
    /// Whether it takes its turn among the changes.
    serialised: bool,
}

impl Operations {
    pub(crate) fn new(clock: UnixClock, listener: Arc<dyn NodeListener>) -> Self {
        Self { inner: Mutex::default(), changed: Condvar::new(), clock, listener }
    }

    /// Adds an operation that waits for its turn (`serialised`) or is about to
    /// begin.
    ///
    /// # Errors
    /// Too many are under way.
    pub(crate) fn add(
        self: &Arc<Self>,
        kind: &str,
        subject: &str,
        serialised: bool,
    ) -> Result<OperationHandle, ApiError> {
        let mut inner = self.lock();
        if inner.entries.values().filter(|entry| is_running(entry)).count() >= RUNNING_MAX {
            return Err(ApiError::new(
                ErrorCode::Conflict,
                format!("{RUNNING_MAX} operations are under way; wait until one has ended"),
            ));
        }
        inner.last_id += 1;
        let id = inner.last_id;
        let operation = Operation {
            id,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            state: OperationState::Running,
            steps_done: 0,
            steps: 1,
            step: serialised.then(|| WAITING.to_owned()),
            plan: None,
            report: Vec::new(),
            error: None,
            started_unix_ms: (self.clock)(),
            ended_unix_ms: None,
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        let entry = Entry { operation, cancelled: cancelled.clone(), begun: false, serialised };
        inner.entries.insert(id, entry);
        forget_oldest(&mut inner);
        drop(inner);
        self.tell(id);
        Ok(OperationHandle { id, cancelled, table: self.clone() })
    }

    /// All operations known, ascending by id.
    pub(crate) fn list(&self) -> Vec<Operation> {
        self.lock().entries.values().map(|entry| entry.operation.clone()).collect()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Operation> {
        self.lock().entries.get(&id).map(|entry| entry.operation.clone())
    }

    /// Waits until the operation has ended, `timeout` at most, and returns it as
    /// it is then.
    pub(crate) fn wait(&self, id: u64, timeout: Duration) -> Option<Operation> {
        let (inner, _) = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |inner| {
                inner.entries.get(&id).is_some_and(is_running)
            })
            .unwrap_or_else(PoisonError::into_inner);
        inner.entries.get(&id).map(|entry| entry.operation.clone())
    }

    /// Waits until no change is waiting or under way, `timeout` at most. Whether it is so.
    pub(crate) fn wait_idle(&self, timeout: Duration) -> bool {
        let (held, waited) = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |inner| {
                inner.entries.values().any(|entry| entry.serialised && is_running(entry))
            })
            .unwrap_or_else(PoisonError::into_inner);
        drop(held);
        !waited.timed_out()
    }

    /// Asks an operation to stop. One that waits ends at once, one under way
    /// before its next step, unless it ends by itself first. Returns it as it is
    /// now; `None` if it is unknown.
    pub(crate) fn cancel(&self, id: u64) -> Option<Operation> {
        let mut inner = self.lock();
        let entry = inner.entries.get_mut(&id)?;
        entry.cancelled.store(true, Ordering::Release);
        if !entry.begun && is_running(entry) {
            end(entry, &Err(cancelled_error()), (self.clock)());
        }
        let operation = entry.operation.clone();
        drop(inner);
        self.tell(id);
        Some(operation)
    }

    /// Whether a change is waiting or under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.lock().entries.values().any(|entry| entry.serialised && is_running(entry))
    }

    fn update(&self, id: u64, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            change(entry);
        }
        self.tell(id);
    }

    fn tell(&self, id: u64) {
        self.changed.notify_all();
        self.listener.handle_operation(id);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The side of an operation that works on it. Dropped without an end (its
/// worker died), the operation has failed.
pub(crate) struct OperationHandle {
    id: u64,
    cancelled: Arc<AtomicBool>,
    table: Arc<Operations>,
}

impl OperationHandle {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The operation as others see it.
    pub(crate) fn view(&self) -> Option<Operation> {
        self.table.find(self.id)
    }

    /// It takes its time from now on, and changes go on beside it.
    pub(crate) fn step_aside(&self) {
        self.table.update(self.id, |entry| entry.serialised = false);
    }

    /// Its turn has come. `false` if it was cancelled meanwhile.
    pub(crate) fn begin(&self) -> bool {
        let mut go = false;
        self.table.update(self.id, |entry| {
            entry.begun = true;
            entry.operation.step = None;
            go = is_running(entry);
        });
        go
    }

    /// What it will do, as found out when its turn came.
    pub(crate) fn set_plan(&self, plan: &Plan, steps: usize) {
        self.table.update(self.id, |entry| {
            entry.operation.plan = Some(plan.clone());
            entry.operation.steps = steps;
        });
    }

    /// The next step begins, `done` are behind it.
    pub(crate) fn step(&self, done: usize, step: &str) {
        self.table.update(self.id, |entry| {
            entry.operation.steps_done = done;
            entry.operation.step = Some(step.to_owned());
        });
    }

    /// Where it stands, if it has no steps that are known before.
    pub(crate) fn progress(&self, done: usize, of: usize, step: &str) {
        self.table.update(self.id, |entry| {
            entry.operation.steps_done = done;
            entry.operation.steps = of;
            entry.operation.step = Some(step.to_owned());
        });
    }

    /// What it has found.
    pub(crate) fn report(&self, lines: Vec<String>) {
        self.table.update(self.id, |entry| entry.operation.report = lines);
    }

    /// # Errors
    /// Somebody asked for it to stop.
    pub(crate) fn check_cancelled(&self) -> Result<(), ApiError> {
        if self.is_cancelled() { Err(cancelled_error()) } else { Ok(()) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Removes the operation from the table: its change was refused before it was queued.
    pub(crate) fn withdraw(self) {
        self.table.lock().entries.remove(&self.id);
        self.table.tell(self.id);
    }

    /// It has ended. Only the first end counts.
    pub(crate) fn end(&self, result: &Result<(), ApiError>) {
        let now = (self.table.clock)();
        self.table.update(self.id, |entry| end(entry, result, now));
    }
}

impl Drop for OperationHandle {
    fn drop(&mut self) {
        let error = ApiError::new(
            ErrorCode::Internal,
            "the operation was given up before it had ended; the daemon's log has the cause",
        );
        self.end(&Err(error));
    }
}

fn end(entry: &mut Entry, result: &Result<(), ApiError>, now: u64) {
    if !is_running(entry) {
        return;
    }
    let operation = &mut entry.operation;
    operation.step = None;
    operation.ended_unix_ms = Some(now);
    operation.error = result.as_ref().err().cloned();
    operation.state = match result {
        Ok(()) => {
            operation.steps_done = operation.steps;
            OperationState::Succeeded
        }
        Err(error) if error.code == ErrorCode::Cancelled => OperationState::Cancelled,
        Err(_) => OperationState::Failed,
    };
}

fn is_running(entry: &Entry) -> bool {
    entry.operation.state == OperationState::Running
}

fn cancelled_error() -> ApiError {
    ApiError::new(ErrorCode::Cancelled, "the operation was cancelled; everything is as before")
}

/// Forgets ended operations, oldest first, down to [`OPERATIONS_MAX`]. Those
/// under way are fewer than that.
fn forget_oldest(inner: &mut Inner) {
    while inner.entries.len() > OPERATIONS_MAX {
        let ended = inner.entries.iter().find(|(_, entry)| !is_running(entry));
        let Some(id) = ended.map(|(id, _)| *id) else { return };
        inner.entries.remove(&id);
    }
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
