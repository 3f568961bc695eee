//! Operations: changes and jobs in progress, and the most recent completed ones.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, Operation, OperationState, Plan};

use crate::{NodeListener, UnixClock};

mod details;

pub use details::DETAIL_BYTES_MAX;

/// Maximum number of operations in the table, including those in progress.
pub const OPERATIONS_MAX: usize = 1000;

/// Maximum number of concurrent operations; further ones are rejected.
pub const RUNNING_MAX: usize = 128;

/// Step shown for a queued operation.
const WAITING: &str = "waiting for the preceding change";

/// Table of current and past operations.
pub struct Operations {
    inner: Mutex<Inner>,
    changed: Condvar,
    clock: UnixClock,
    listener: Arc<dyn NodeListener>,
}

#[derive(Default)]
struct Inner {
    last_id: u64,
    /// Number of operations that have ended.
    ended: u64,
    /// Size of the details of all ended operations in the table, in bytes of JSON.
    detail_bytes: usize,
    entries: BTreeMap<u64, Entry>,
}

/// Operation in the table, with state that the API does not show.
struct Entry {
    operation: Operation,
    cancelled: Arc<AtomicBool>,
    /// True once the operation has started; before that, cancellation ends it at once.
    has_started: bool,
    /// True if the operation is executed in sequence with other changes.
    serialised: bool,
    /// Set when the operation ends.
    ended: Option<Ended>,
}

/// Position and size of an operation that has ended.
#[derive(Clone, Copy)]
struct Ended {
    /// Number of operations that ended before.
    position: u64,
    /// Size of the details, in bytes of JSON.
    detail_bytes: usize,
}

impl Operations {
    /// Creates a table without operations. `listener` is notified of changes.
    pub fn new(clock: UnixClock, listener: Arc<dyn NodeListener>) -> Self {
        Self { inner: Mutex::default(), changed: Condvar::new(), clock, listener }
    }

    /// Adds an operation. A `serialised` operation is queued behind earlier changes; others start
    /// at once.
    ///
    /// # Errors
    /// [`RUNNING_MAX`] operations are in progress.
    pub fn add(
        self: &Arc<Self>,
        kind: &str,
        subject: &str,
        serialised: bool,
    ) -> Result<OperationHandle, ApiError> {
        let mut inner = self.lock();
        if inner.entries.values().filter(|entry| is_running(entry)).count() >= RUNNING_MAX {
            return Err(ApiError::new(
                ErrorCode::Conflict,
                format!(
                    "{RUNNING_MAX} operations are in progress, the most at one time; wait until \
                     one has ended"
                ),
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
            steps_total: 1,
            current_step: serialised.then(|| WAITING.to_owned()),
            plan: None,
            report: Vec::new(),
            warnings: Vec::new(),
            error: None,
            details_dropped: false,
            started_unix_ms: (self.clock)(),
            ended_unix_ms: None,
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        let entry = Entry {
            operation,
            cancelled: cancelled.clone(),
            has_started: false,
            serialised,
            ended: None,
        };
        inner.entries.insert(id, entry);
        inner.forget_oldest();
        drop(inner);
        self.notify(id);
        Ok(OperationHandle { id, cancelled, table: self.clone() })
    }

    /// Returns all operations in the table, ascending by id.
    pub fn list(&self) -> Vec<Operation> {
        self.lock().entries.values().map(|entry| entry.operation.clone()).collect()
    }

    /// Returns the operation; `None` if it is unknown.
    pub fn find(&self, id: u64) -> Option<Operation> {
        self.lock().entries.get(&id).map(|entry| entry.operation.clone())
    }

    /// Returns the state of an operation; `None` if it is unknown.
    pub fn state(&self, id: u64) -> Option<OperationState> {
        self.lock().entries.get(&id).map(|entry| entry.operation.state)
    }

    /// Removes an operation that has ended, because a later attempt replaces it. An operation in
    /// progress stays.
    pub fn remove_ended(&self, id: u64) {
        let mut inner = self.lock();
        if inner.entries.get(&id).is_some_and(|entry| !is_running(entry)) {
            inner.remove(id);
        }
        drop(inner);
        self.notify(id);
    }

    /// Blocks until the operation has ended, at most `timeout`, and returns its state; `None` if it
    /// is unknown.
    pub fn wait(&self, id: u64, timeout: Duration) -> Option<Operation> {
        let (inner, _) = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |inner| {
                inner.entries.get(&id).is_some_and(is_running)
            })
            .unwrap_or_else(PoisonError::into_inner);
        inner.entries.get(&id).map(|entry| entry.operation.clone())
    }

    /// Blocks until no serialised operation is queued or in progress, at most `timeout`. Returns
    /// false on timeout.
    pub fn wait_idle(&self, timeout: Duration) -> bool {
        let (guard, waited) = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |inner| {
                inner.entries.values().any(|entry| entry.serialised && is_running(entry))
            })
            .unwrap_or_else(PoisonError::into_inner);
        drop(guard);
        !waited.timed_out()
    }

    /// Requests cancellation of an operation and returns its state; `None` if it is unknown. A
    /// queued operation ends at once. An operation in progress ends before its next step, unless it
    /// completes first.
    pub fn cancel(&self, id: u64) -> Option<Operation> {
        let mut inner = self.lock();
        let entry = inner.entries.get_mut(&id)?;
        entry.cancelled.store(true, Ordering::Release);
        if !entry.has_started && is_running(entry) {
            let text = "the operation was cancelled before it began; nothing was changed";
            let result = Err(ApiError::new(ErrorCode::Cancelled, text));
            inner.end(id, &result, (self.clock)());
        }
        let operation = inner.entries.get(&id).map(|entry| entry.operation.clone());
        drop(inner);
        self.notify(id);
        operation
    }

    /// Returns true if a serialised operation is queued or in progress.
    pub fn is_busy(&self) -> bool {
        self.lock().entries.values().any(|entry| entry.serialised && is_running(entry))
    }

    fn update(&self, id: u64, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            change(entry);
        }
        self.notify(id);
    }

    fn notify(&self, id: u64) {
        self.changed.notify_all();
        self.listener.handle_operation(id);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of the executing thread. Dropping it before the end, for example because of a panic,
/// fails the operation.
pub struct OperationHandle {
    id: u64,
    cancelled: Arc<AtomicBool>,
    table: Arc<Operations>,
}

impl OperationHandle {
    /// Returns the number of the operation.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the operation as the API shows it.
    pub fn view(&self) -> Option<Operation> {
        self.table.find(self.id)
    }

    /// Takes the operation out of the sequence of changes, because it lasts long; later changes
    /// proceed concurrently.
    pub fn allow_concurrent_changes(&self) {
        self.table.update(self.id, |entry| entry.serialised = false);
    }

    /// Marks the operation as started. Returns false if it was cancelled while it was queued.
    pub fn begin(&self) -> bool {
        let mut has_started = false;
        self.table.update(self.id, |entry| {
            entry.has_started = true;
            entry.operation.current_step = None;
            has_started = is_running(entry);
        });
        has_started
    }

    /// Sets the plan and the number of steps, known once the operation starts. Has no effect after
    /// the end.
    pub fn set_plan(&self, plan: &Plan, steps: usize) {
        self.table.update(self.id, |entry| {
            if is_running(entry) {
                entry.operation.plan = Some(plan.clone());
                entry.operation.steps_total = steps;
            }
        });
    }

    /// Reports the start of a step after `steps_done` completed ones.
    pub fn report_step(&self, steps_done: usize, step: &str) {
        self.table.update(self.id, |entry| {
            entry.operation.steps_done = steps_done;
            entry.operation.current_step = Some(step.to_owned());
        });
    }

    /// Reports the start of a step, like [`Self::step`], and sets the current total number of
    /// steps. For operations whose number of steps is not known in advance.
    pub fn report_progress(&self, steps_done: usize, steps: usize, step: &str) {
        self.table.update(self.id, |entry| {
            entry.operation.steps_done = steps_done;
            entry.operation.steps_total = steps;
            entry.operation.current_step = Some(step.to_owned());
        });
    }

    /// Replaces the operation's report, a list of text lines. Has no effect after the end.
    pub fn set_report(&self, lines: Vec<String>) {
        self.table.update(self.id, |entry| {
            if is_running(entry) {
                entry.operation.report = lines;
            }
        });
    }

    /// Returns an error if cancellation was requested. Its text says that the operation was rolled
    /// back; an operation that is not rolled back must replace the text.
    ///
    /// # Errors
    /// [`ErrorCode::Cancelled`] if cancellation was requested.
    pub fn check_cancelled(&self) -> Result<(), ApiError> {
        if self.is_cancelled() { Err(cancelled_error()) } else { Ok(()) }
    }

    /// Returns true if cancellation was requested, also after the operation has ended.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Removes the operation from the table: its change was refused before it was queued.
    pub fn withdraw(self) {
        self.table.lock().remove(self.id);
        self.table.notify(self.id);
    }

    /// Ends the operation. Later calls have no effect.
    pub fn end(&self, result: &Result<(), ApiError>) {
        let now = (self.table.clock)();
        self.table.lock().end(self.id, result, now);
        self.table.notify(self.id);
    }
}

impl Drop for OperationHandle {
    fn drop(&mut self) {
        let error = ApiError::new(
            ErrorCode::Internal,
            "the operation was abandoned before its end; the daemon's log has the cause",
        );
        self.end(&Err(error));
    }
}

impl Inner {
    /// Ends an operation in progress, and drops details and operations beyond the bounds.
    fn end(&mut self, id: u64, result: &Result<(), ApiError>, now: u64) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| is_running(entry)) else {
            return;
        };
        let operation = &mut entry.operation;
        operation.current_step = None;
        operation.ended_unix_ms = Some(now);
        operation.error = result.as_ref().err().cloned();
        operation.state = match result {
            Ok(()) => {
                operation.steps_done = operation.steps_total;
                OperationState::Succeeded
            }
            Err(error) if error.code == ErrorCode::Cancelled => OperationState::Cancelled,
            Err(_) => OperationState::Failed,
        };
        let detail_bytes = details::detail_bytes(operation);
        entry.ended = Some(Ended { position: self.ended, detail_bytes });
        self.ended += 1;
        self.detail_bytes += detail_bytes;
        while self.detail_bytes > DETAIL_BYTES_MAX && self.drop_oldest_details() {}
    }

    /// Drops the details of the operation that ended first and has any. If none has, removes the
    /// operation that ended first. Returns false if no operation has ended.
    fn drop_oldest_details(&mut self) -> bool {
        let Some(id) = self.first_ended(details::has_details) else {
            let first = self.first_ended(|_| true);
            first.into_iter().for_each(|id| self.remove(id));
            return first.is_some();
        };
        if let Some(entry) = self.entries.get_mut(&id) {
            details::drop_details(&mut entry.operation);
            let bytes = details::detail_bytes(&entry.operation);
            if let Some(ended) = &mut entry.ended {
                self.detail_bytes = self.detail_bytes - ended.detail_bytes + bytes;
                ended.detail_bytes = bytes;
            }
        }
        true
    }

    /// Returns the number of the operation that ended first of those that match.
    fn first_ended(&self, matches: impl Fn(&Operation) -> bool) -> Option<u64> {
        let entries = self.entries.iter().filter(|(_, entry)| matches(&entry.operation));
        let ended = entries.filter_map(|(id, entry)| Some((entry.ended?.position, *id)));
        ended.min().map(|(_, id)| id)
    }

    /// Removes completed operations, oldest first, until at most [`OPERATIONS_MAX`] remain.
    /// Operations in progress never reach this number (see [`RUNNING_MAX`]).
    fn forget_oldest(&mut self) {
        while self.entries.len() > OPERATIONS_MAX {
            let oldest = self.entries.iter().find(|(_, entry)| !is_running(entry));
            let Some(id) = oldest.map(|(id, _)| *id) else { return };
            self.remove(id);
        }
    }

    fn remove(&mut self, id: u64) {
        let removed = self.entries.remove(&id).and_then(|entry| entry.ended);
        self.detail_bytes -= removed.map_or(0, |ended| ended.detail_bytes);
    }
}

fn is_running(entry: &Entry) -> bool {
    entry.operation.state == OperationState::Running
}

fn cancelled_error() -> ApiError {
    ApiError::new(ErrorCode::Cancelled, "the operation was cancelled and rolled back")
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
