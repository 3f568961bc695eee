//! Store threads: operations on stores that may block while the store does not respond.
//!
//! An operation started by [`StoreThreads::begin`] has a thread of its own. Its caller waits for a
//! limited time. If no caller waits any more and the operation has run for [`STORE_TIMEOUT`], the
//! store is silent: further operations on this store fail at once until the late operations have
//! ended.
//!
//! Bounds: [`STORE_THREADS_MAX`] such threads per store, and [`THREADS_MAX`] on all stores that are
//! not silent. Operations of [`StoreThreads::run_eventually`] are queued per store; one thread per
//! store executes them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode};
use suimon_storage_engine::STALLED_AFTER;

pub(crate) use super::store_states::STORE_TIMEOUT;
use super::store_states::{BoxedOperation, StoreStates};

/// Wait for a store by callers that can continue without the result. The operation completes when
/// the store responds.
pub(crate) const OPTIONAL_RESULT_TIMEOUT: Duration = Duration::from_secs(2);

/// Wait for a store by status requests and retries.
pub(crate) const STATUS_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum number of threads that execute operations on stores that are not silent.
const THREADS_MAX: usize = 64;

/// Maximum number of threads that execute operations on one store. Less than [`THREADS_MAX`], so
/// that a store that stops responding leaves threads for the others.
const STORE_THREADS_MAX: usize = THREADS_MAX / 2;

/// Starts store threads, and tracks stores that do not respond. Clones share the state.
#[derive(Clone)]
pub(crate) struct StoreThreads {
    state: Arc<Mutex<StoreStates>>,
    /// Function that runs an operation in a new thread; tests replace it.
    spawn: fn(BoxedOperation) -> std::io::Result<()>,
}

impl Default for StoreThreads {
    fn default() -> Self {
        Self { state: Arc::default(), spawn: spawn_thread }
    }
}

fn spawn_thread(operation: BoxedOperation) -> std::io::Result<()> {
    Builder::new().name("suimon-store".to_owned()).spawn(operation).map(drop)
}

/// Reason why an operation has no result.
pub(crate) enum StoreOperationError<T> {
    /// The operation is in progress.
    TimedOut(PendingStoreOperation<T>),
    /// The operation was not started, or its thread has panicked.
    Failed(ApiError),
}

impl<T> StoreOperationError<T> {
    /// Abandons the operation, and returns the error for the caller. If the operation completes
    /// later, it is undone.
    pub(crate) fn abandon(self) -> ApiError {
        match self {
            Self::TimedOut(work) => silent(work.elapsed()),
            Self::Failed(error) => error,
        }
    }
}

/// Operation in progress on a store. Dropping it abandons the operation: its result is undone by
/// the store thread.
pub(crate) struct PendingStoreOperation<T> {
    slot: Arc<ResultSlot<T>>,
    threads: StoreThreads,
    store: PathBuf,
    started: Instant,
    on_abandon: fn(T),
}

/// Slot for the result, shared by the caller and the store thread.
struct ResultSlot<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    is_unawaited: AtomicBool,
}

enum State<T> {
    Working,
    Done(T),
    /// The caller has abandoned the operation.
    GivenUp,
    /// The result was taken, or the thread has panicked.
    Empty,
}

impl StoreThreads {
    /// Executes an operation on a store and waits at most `timeout` for its result. If the
    /// operation completes after it was abandoned, `take_back` undoes its result.
    ///
    /// # Errors
    /// [`StoreOperationError::TimedOut`] if the wait has expired, [`StoreOperationError::Failed`]
    /// if the operation was not started or has panicked.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        store: &Path,
        timeout: Duration,
        work: impl FnOnce() -> T + Send + 'static,
        take_back: fn(T),
    ) -> Result<T, StoreOperationError<T>> {
        self.begin(store, work, take_back).map_err(StoreOperationError::Failed)?.wait(timeout)
    }

    /// Starts an operation on a store. If the operation completes after it was abandoned,
    /// `take_back` undoes its result.
    ///
    /// # Errors
    /// Fails if the store is silent, or no thread is available.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        store: &Path,
        work: impl FnOnce() -> T + Send + 'static,
        take_back: fn(T),
    ) -> Result<PendingStoreOperation<T>, ApiError> {
        self.enter(store)?;
        let slot = Arc::new(ResultSlot {
            state: Mutex::new(State::Working),
            changed: Condvar::new(),
            is_unawaited: AtomicBool::new(false),
        });
        let (store, started) = (store.to_owned(), Instant::now());
        let guard =
            Guard { slot: slot.clone(), threads: self.clone(), store: store.clone(), started };
        let operation = Box::new(move || {
            let result = work();
            if let Some(unwanted) = guard.slot.put(result) {
                take_back(unwanted);
            }
        });
        (self.spawn)(operation).map_err(|error| {
            let text = format!(
                "cannot start a thread for store {}: {error}; raise `TasksMax` of the suimond \
                 service or `kernel.threads-max`",
                store.display()
            );
            ApiError::new(ErrorCode::HostError, text)
        })?;
        Ok(PendingStoreOperation {
            slot,
            threads: self.clone(),
            store,
            started,
            on_abandon: take_back,
        })
    }

    /// Starts an operation on a store that no caller waits for. The store is silent if the
    /// operation has run for [`STORE_TIMEOUT`].
    ///
    /// # Errors
    /// Fails if the store is silent, or no thread is available.
    pub(super) fn start_detached(
        &self,
        store: &Path,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), ApiError> {
        let work = self.begin(store, work, drop)?;
        let state = work.slot.lock();
        if matches!(*state, State::Working) {
            work.note_unawaited();
        }
        drop(state);
        Ok(())
    }

    /// Executes an operation without result that must happen as soon as the store responds, such as
    /// closing. Queued if the store is silent, other such operations on it are in progress, or no
    /// thread can be created; [`Self::resume_queued`] then tries again. Waits at most
    /// [`OPTIONAL_RESULT_TIMEOUT`]; not at all if the store is silent. Returns false if the
    /// operation has not ended.
    pub(crate) fn run_eventually(
        &self,
        store: &Path,
        work: impl FnOnce() + Send + 'static,
    ) -> bool {
        let (end_sender, end_receiver) = std::sync::mpsc::sync_channel::<()>(0);
        let operation = move || {
            work();
            drop(end_sender);
        };
        let is_silent = {
            let mut threads = self.lock();
            threads.entry(store).queued.push_back(Box::new(operation));
            threads.silent_for(store).is_some()
        };
        if let Err(error) = self.drain(store) {
            tracing::warn!(store = %store.display(), %error, "no thread; the operation is queued");
            return false;
        }
        let timeout = if is_silent { Duration::ZERO } else { OPTIONAL_RESULT_TIMEOUT };
        end_receiver.recv_timeout(timeout).is_err_and(is_over)
    }

    /// Starts threads for queued operations that have none because no thread could be created.
    pub(super) fn resume_queued(&self) {
        let queued: Vec<PathBuf> = {
            let threads = self.lock();
            let queued = threads.0.iter().filter(|(_, states)| !states.queued.is_empty());
            queued.map(|(store, _)| store.clone()).collect()
        };
        for store in queued {
            if let Err(error) = self.drain(&store) {
                tracing::warn!(store = %store.display(), %error, "no thread; operations stay queued");
            }
        }
    }

    /// Starts the thread that executes the queued operations of a store, unless it runs.
    fn drain(&self, store: &Path) -> std::io::Result<()> {
        if std::mem::replace(&mut self.lock().entry(store).is_draining, true) {
            return Ok(());
        }
        let (threads, path) = (self.clone(), store.to_owned());
        (self.spawn)(Box::new(move || threads.execute_queued(&path)))
            .inspect_err(|_| self.lock().entry(store).is_draining = false)
    }

    fn execute_queued(&self, store: &Path) {
        loop {
            let next = self.lock().next_queued(store);
            let Some((operation, started)) = next else { return };
            // A panic, which the hook reports, must not keep the operations behind from running.
            let _ = catch_unwind(AssertUnwindSafe(operation));
            self.lock().end_unawaited(store, started);
        }
    }

    /// Returns true if at least half of the threads on stores that are not silent work. Periodic
    /// queries then wait, so that they leave threads for disks.
    pub(super) fn is_half_used(&self) -> bool {
        self.lock().running_threads() >= THREADS_MAX / 2
    }

    /// Checks that a store is not silent.
    ///
    /// # Errors
    /// Fails if the store is silent.
    pub(super) fn check_responds(&self, store: &Path) -> Result<(), ApiError> {
        self.lock().silent_for(store).map_or(Ok(()), |stalled_for| Err(silent(stalled_for)))
    }

    fn enter(&self, store: &Path) -> Result<(), ApiError> {
        let mut threads = self.lock();
        if let Some(stalled_for) = threads.silent_for(store) {
            return Err(silent(stalled_for));
        }
        let refuse = |text: String| Err(ApiError::new(ErrorCode::HostError, text));
        if threads.running_threads_on(store) >= STORE_THREADS_MAX {
            return refuse(format!(
                "{STORE_THREADS_MAX} threads wait for this store, the most possible; check its \
                 device, and retry when it responds"
            ));
        }
        if threads.running_threads() >= THREADS_MAX {
            return refuse(format!(
                "{THREADS_MAX} threads wait for stores, the most possible; check the devices of \
                 the stores, and retry when they respond"
            ));
        }
        threads.entry(store).running_threads += 1;
        Ok(())
    }

    /// Returns the number of threads started by [`Self::begin`] that work on a store.
    #[cfg(test)]
    pub(super) fn running_on(&self, store: &Path) -> usize {
        self.lock().running_threads_on(store)
    }

    fn lock(&self) -> MutexGuard<'_, StoreStates> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_over(error: std::sync::mpsc::RecvTimeoutError) -> bool {
    error == std::sync::mpsc::RecvTimeoutError::Disconnected
}

fn silent(stalled_for: Duration) -> ApiError {
    let text =
        format!("the store has not responded for {} s; check its device", stalled_for.as_secs());
    ApiError::new(ErrorCode::HostError, text)
}

impl<T> PendingStoreOperation<T> {
    /// Returns the run time of the operation.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns true if the run time exceeds the threshold at which requests of disks count as
    /// stalled.
    pub(crate) fn is_stalled(&self) -> bool {
        self.elapsed() >= STALLED_AFTER
    }

    /// Waits at most `timeout` for the result.
    ///
    /// # Errors
    /// [`StoreOperationError::TimedOut`] if the wait has expired, [`StoreOperationError::Failed`]
    /// if the thread has panicked.
    pub(crate) fn wait(self, timeout: Duration) -> Result<T, StoreOperationError<T>> {
        let (mut state, _) = self
            .slot
            .changed
            .wait_timeout_while(self.slot.lock(), timeout, |state| matches!(state, State::Working))
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Empty) {
            State::Done(result) => Ok(result),
            State::Working => {
                *state = State::Working;
                self.note_unawaited();
                drop(state);
                Err(StoreOperationError::TimedOut(self))
            }
            State::GivenUp | State::Empty => {
                let text =
                    "a thread of the store ended because of a defect in the daemon; see its log";
                Err(StoreOperationError::Failed(ApiError::new(ErrorCode::Internal, text)))
            }
        }
    }

    /// Records that no caller waits for the operation. The caller holds the lock of the slot, so
    /// that the thread cannot end meanwhile.
    fn note_unawaited(&self) {
        if !self.slot.is_unawaited.swap(true, Ordering::AcqRel) {
            self.threads.lock().entry(&self.store).unawaited_since.push(self.started);
        }
    }
}

impl<T> Drop for PendingStoreOperation<T> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        if let State::Done(result) = std::mem::replace(&mut *state, State::GivenUp) {
            drop(state);
            // The operation completed just before it was abandoned. Undoing it here does not block
            // in practice, because the store has just responded.
            (self.on_abandon)(result);
        }
    }
}

impl<T> ResultSlot<T> {
    /// Stores the result, or returns it if the operation was abandoned.
    fn put(&self, result: T) -> Option<T> {
        let mut state = self.lock();
        if matches!(*state, State::GivenUp) {
            return Some(result);
        }
        *state = State::Done(result);
        self.changed.notify_all();
        None
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a store thread. Dropped when the thread ends, also by a panic.
struct Guard<T> {
    slot: Arc<ResultSlot<T>>,
    threads: StoreThreads,
    store: PathBuf,
    started: Instant,
}

impl<T> Drop for Guard<T> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        if matches!(*state, State::Working) {
            *state = State::Empty;
            self.slot.changed.notify_all();
        }
        drop(state);
        let mut threads = self.threads.lock();
        threads.entry(&self.store).running_threads -= 1;
        if self.slot.is_unawaited.load(Ordering::Acquire) {
            threads.end_unawaited(&self.store, self.started);
        }
        threads.remove_if_idle(&self.store);
    }
}

#[cfg(test)]
#[path = "store_threads_tests.rs"]
mod tests;
