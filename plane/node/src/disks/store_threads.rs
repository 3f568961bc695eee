//! Store threads: operations on stores that may block while the store does not respond.
//!
//! Each operation has a thread. Its caller waits for a limited time. If a caller's wait has expired
//! and the operation has run for [`SILENT_AFTER`], the store is marked as silent: further
//! operations on this store fail at once until the late operations have ended. At most
//! [`THREADS_MAX`] threads started by [`StoreThreads::begin`] run at a time. Threads of
//! [`StoreThreads::run_in_the_end`] are not counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode};
use suimon_storage::STALLED_AFTER;

/// Maximum wait for a store by callers that need the result. Operations take milliseconds, or
/// seconds if much must be written before.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(10);

/// Wait for a store by callers that can continue without the result. The operation completes when
/// the store responds.
pub(crate) const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// Wait for a store by status requests and retries.
pub(crate) const SHORT_PATIENCE: Duration = Duration::from_millis(200);

/// Maximum number of threads that execute operations on stores.
const THREADS_MAX: usize = 64;

/// Starts store threads, and tracks stores that do not respond. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct StoreThreads(Arc<Mutex<Threads>>);

#[derive(Default)]
struct Threads {
    running: usize,
    silent: BTreeMap<PathBuf, Silence>,
}

/// Store that has not responded to an operation in time.
struct Silence {
    since: Instant,
    /// Number of late operations on the store that have not ended.
    threads: usize,
}

/// Reason why an operation has no result.
pub(crate) enum Unanswered<T> {
    /// The operation is in progress.
    Late(StoreWork<T>),
    /// The operation was not started, or its thread has panicked.
    Never(ApiError),
}

impl<T> Unanswered<T> {
    /// Abandons the operation, and returns the error for the caller. If the operation completes
    /// later, it is undone.
    pub(crate) fn give_up(self) -> ApiError {
        match self {
            Self::Late(work) => silent(work.waited()),
            Self::Never(error) => error,
        }
    }
}

/// Operation in progress on a store. Dropping it abandons the operation: its result is undone by
/// the store thread.
pub(crate) struct StoreWork<T> {
    place: Arc<Place<T>>,
    threads: StoreThreads,
    store: PathBuf,
    began: Instant,
    take_back: fn(T),
}

/// Slot for the result, shared by the caller and the store thread.
struct Place<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    is_late: AtomicBool,
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
    /// Executes an operation on a store and waits at most `patience` for its result. `take_back`
    /// undoes the result if the operation was abandoned.
    ///
    /// # Errors
    /// [`Unanswered::Late`] if the wait has expired, [`Unanswered::Never`] if the operation was not
    /// started or has panicked.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        store: &Path,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
        take_back: fn(T),
    ) -> Result<T, Unanswered<T>> {
        self.begin(store, work, take_back).map_err(Unanswered::Never)?.wait(patience)
    }

    /// Starts an operation on a store.
    ///
    /// # Errors
    /// Fails if the store is silent, or no thread is available.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        store: &Path,
        work: impl FnOnce() -> T + Send + 'static,
        take_back: fn(T),
    ) -> Result<StoreWork<T>, ApiError> {
        self.enter(store)?;
        let place = Arc::new(Place {
            state: Mutex::new(State::Working),
            changed: Condvar::new(),
            is_late: AtomicBool::new(false),
        });
        let guard = Guard { place: place.clone(), threads: self.clone(), store: store.to_owned() };
        Builder::new()
            .name("suimon-store".to_owned())
            .spawn(move || {
                let result = work();
                if let Some(unwanted) = guard.place.put(result) {
                    take_back(unwanted);
                }
            })
            .map_err(|error| {
                ApiError::new(
                    ErrorCode::HostError,
                    format!("cannot start a thread for the store: {error}"),
                )
            })?;
        let threads = self.clone();
        Ok(StoreWork { place, threads, store: store.to_owned(), began: Instant::now(), take_back })
    }

    /// Executes an operation without result that must happen as soon as the store responds, such as
    /// closing. Runs even if the store is silent. Waits at most [`STORE_PATIENCE`]; not at all if
    /// the store is silent. Returns false if the operation has not ended or no thread could be
    /// created.
    pub(crate) fn run_in_the_end(
        &self,
        store: &Path,
        work: impl FnOnce() + Send + 'static,
    ) -> bool {
        let is_silent = self.lock().silence(store).is_some();
        let (began, ended) = std::sync::mpsc::sync_channel::<()>(0);
        let spawned = Builder::new().name("suimon-store".to_owned()).spawn(move || {
            work();
            drop(began);
        });
        let patience = if is_silent { Duration::ZERO } else { STORE_PATIENCE };
        spawned.is_ok() && ended.recv_timeout(patience).is_err_and(is_over)
    }

    fn enter(&self, store: &Path) -> Result<(), ApiError> {
        let mut threads = self.lock();
        if let Some(waited) = threads.silence(store) {
            return Err(silent(waited));
        }
        if threads.running >= THREADS_MAX {
            let text = format!(
                "{THREADS_MAX} threads wait for stores that do not respond, the most at one time; \
                 check the devices of the stores"
            );
            return Err(ApiError::new(ErrorCode::HostError, text));
        }
        threads.running += 1;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Threads {
    /// Returns the time since when a store has not responded, if it is silent.
    fn silence(&self, store: &Path) -> Option<Duration> {
        let waited = self.silent.get(store)?.since.elapsed();
        (waited >= SILENT_AFTER).then_some(waited)
    }
}

fn is_over(error: std::sync::mpsc::RecvTimeoutError) -> bool {
    error == std::sync::mpsc::RecvTimeoutError::Disconnected
}

fn silent(waited: Duration) -> ApiError {
    let text = format!("the store has not responded for {} s; check its device", waited.as_secs());
    ApiError::new(ErrorCode::HostError, text)
}

impl<T> StoreWork<T> {
    /// Returns the run time of the operation.
    pub(crate) fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns true if the run time exceeds the threshold at which requests of disks count as
    /// stalled.
    pub(crate) fn is_stalled(&self) -> bool {
        self.waited() >= STALLED_AFTER
    }

    /// Waits at most `patience` for the result.
    ///
    /// # Errors
    /// [`Unanswered::Late`] if the wait has expired, [`Unanswered::Never`] if the thread has
    /// panicked.
    pub(crate) fn wait(self, patience: Duration) -> Result<T, Unanswered<T>> {
        let (mut state, _) = self
            .place
            .changed
            .wait_timeout_while(self.place.lock(), patience, |state| {
                matches!(state, State::Working)
            })
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Empty) {
            State::Done(result) => Ok(result),
            State::Working => {
                *state = State::Working;
                self.note_silence();
                drop(state);
                Err(Unanswered::Late(self))
            }
            State::GivenUp | State::Empty => {
                let text =
                    "a thread of the store ended because of a defect in the daemon; see its log";
                Err(Unanswered::Never(ApiError::new(ErrorCode::Internal, text)))
            }
        }
    }

    /// Records that the operation is late. The caller holds the lock of the slot, so that the
    /// thread cannot end meanwhile.
    fn note_silence(&self) {
        if self.place.is_late.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut threads = self.threads.lock();
        let silence = Silence { since: self.began, threads: 0 };
        threads.silent.entry(self.store.clone()).or_insert(silence).threads += 1;
    }
}

impl<T> Drop for StoreWork<T> {
    fn drop(&mut self) {
        let mut state = self.place.lock();
        if let State::Done(result) = std::mem::replace(&mut *state, State::GivenUp) {
            drop(state);
            // The operation completed just before it was abandoned. Undoing it here does not block
            // in practice, because the store has just responded.
            (self.take_back)(result);
        }
    }
}

impl<T> Place<T> {
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
    place: Arc<Place<T>>,
    threads: StoreThreads,
    store: PathBuf,
}

impl<T> Drop for Guard<T> {
    fn drop(&mut self) {
        let mut state = self.place.lock();
        if matches!(*state, State::Working) {
            *state = State::Empty;
            self.place.changed.notify_all();
        }
        drop(state);
        let mut threads = self.threads.lock();
        threads.running -= 1;
        if self.place.is_late.load(Ordering::Acquire) {
            let silence = threads.silent.get_mut(&self.store);
            let is_over = silence.is_some_and(|silence| {
                silence.threads -= 1;
                silence.threads == 0
            });
            if is_over {
                threads.silent.remove(&self.store);
            }
        }
    }
}

#[cfg(test)]
#[path = "store_threads_tests.rs"]
mod tests;
