//! Work on the files of stores, each piece in a thread of its own: a store that does not
//! answer keeps nobody waiting but those who need it.
//!
//! Who wants something of a store waits for it for a while. A thread that has been away for
//! [`SILENT_AFTER`] makes the store a silent one: until it has come back, whoever wants
//! something of this store is told so at once. So a silent store has few threads, and all
//! together have [`THREADS_MAX`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode};
use suimon_storage::STALLED_AFTER;

/// How long is waited for a store by who cannot go on without it. What is asked of one here
/// takes milliseconds, and seconds where it has much to write before.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(10);

/// How long is waited by who can: what was begun is done when the store answers.
pub(crate) const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// How long is waited for what is only shown, or was not asked for just now.
pub(crate) const SHORT_PATIENCE: Duration = Duration::from_millis(200);

/// Threads that may be with stores at one time.
const THREADS_MAX: usize = 64;

/// See the module. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct StoreThreads(Arc<Mutex<Threads>>);

#[derive(Default)]
struct Threads {
    running: usize,
    silent: BTreeMap<PathBuf, Silence>,
}

/// A store for which nobody waits any more.
struct Silence {
    since: Instant,
    /// Threads that nobody waits for any more and that are with it.
    threads: usize,
}

/// Why there is no answer of a store.
pub(crate) enum Unanswered<T> {
    /// There may be one later.
    Late(StoreWork<T>),
    /// The work was not begun, or its thread has died.
    Never(ApiError),
}

impl<T> Unanswered<T> {
    /// Whoever cannot wait gives up. What the store does later is taken back then.
    pub(crate) fn give_up(self) -> ApiError {
        match self {
            Self::Late(work) => silent(work.waited()),
            Self::Never(error) => error,
        }
    }
}

/// Work that is with a store. Dropped before its result was taken, it is given up: what has
/// come of it is taken back, by a thread.
pub(crate) struct StoreWork<T> {
    place: Arc<Place<T>>,
    threads: StoreThreads,
    store: PathBuf,
    began: Instant,
    take_back: fn(T),
}

/// Where the result is left.
struct Place<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    is_late: AtomicBool,
}

enum State<T> {
    Working,
    Done(T),
    /// Nobody wants the result.
    GivenUp,
    /// The result was taken, or there is none because the thread died.
    Empty,
}

impl StoreThreads {
    /// Does something with a store and waits for it for `patience`. `take_back` undoes it if
    /// the one who asked has given up by then.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        store: &Path,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
        take_back: fn(T),
    ) -> Result<T, Unanswered<T>> {
        self.begin(store, work, take_back).map_err(Unanswered::Never)?.wait(patience)
    }

    /// Begins something with a store.
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

    /// Does something with a store for whose result nobody waits long: closing and taking
    /// back, which are to be done as soon as the store answers. `false`: it is still under
    /// way.
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
    /// For how long a store has been silent, if it is.
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
    /// How long it has been with the store.
    pub(crate) fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether that is too long for a store that works, as it is for a disk's requests.
    pub(crate) fn is_stalled(&self) -> bool {
        self.waited() >= STALLED_AFTER
    }

    /// Waits for the result for so long.
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

    /// Called while the result's place is locked, so that the thread cannot end meanwhile.
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
            // It came in the moment in which it was given up; rare, and soon done.
            (self.take_back)(result);
        }
    }
}

impl<T> Place<T> {
    /// Leaves the result, or gives it back if nobody wants it.
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

/// With the thread; dropped when it ends, however it does.
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
