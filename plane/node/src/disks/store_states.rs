//! Operations on stores in progress and queued (`store_threads.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum wait for a store by callers that need the result. Operations take milliseconds, or
/// seconds if much must be written before.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) type BoxedOperation = Box<dyn FnOnce() + Send>;

/// State by path of the store. Stores without operations are left out.
#[derive(Default)]
pub(super) struct StoreStates(pub(super) BTreeMap<PathBuf, StoreState>);

/// Operations in progress and queued operations on one store.
#[derive(Default)]
pub(super) struct StoreState {
    /// Threads of operations started by `StoreThreads::begin`.
    pub(super) running_threads: usize,
    /// Start times of the operations in progress that no caller waits for, or whose caller's wait
    /// has expired.
    pub(super) unawaited_since: Vec<Instant>,
    /// Queued operations of `StoreThreads::run_eventually`.
    pub(super) queued: VecDeque<BoxedOperation>,
    /// True while a thread executes the queued operations.
    pub(super) is_draining: bool,
}

impl StoreStates {
    pub(super) fn entry(&mut self, store: &Path) -> &mut StoreState {
        self.0.entry(store.to_owned()).or_default()
    }

    /// Returns for how long a silent store has not responded; `None` if the store is not silent.
    pub(super) fn silent_for(&self, store: &Path) -> Option<Duration> {
        self.0.get(store)?.silence()
    }

    pub(super) fn running_threads_on(&self, store: &Path) -> usize {
        self.0.get(store).map_or(0, |states| states.running_threads)
    }

    /// Returns the number of threads on stores that are not silent.
    pub(super) fn running_threads(&self) -> usize {
        self.0
            .values()
            .filter(|states| states.silence().is_none())
            .map(|states| states.running_threads)
            .sum()
    }

    /// Takes the next queued operation of a store, or ends the draining. The operation counts as
    /// unawaited, because its caller waits for less than [`STORE_TIMEOUT`].
    pub(super) fn next_queued(&mut self, store: &Path) -> Option<(BoxedOperation, Instant)> {
        let (store_state, started) = (self.entry(store), Instant::now());
        let Some(operation) = store_state.queued.pop_front() else {
            store_state.is_draining = false;
            self.remove_if_idle(store);
            return None;
        };
        store_state.unawaited_since.push(started);
        Some((operation, started))
    }

    pub(super) fn end_unawaited(&mut self, store: &Path, started: Instant) {
        let store_state = self.entry(store);
        if let Some(index) =
            store_state.unawaited_since.iter().position(|started_at| *started_at == started)
        {
            store_state.unawaited_since.swap_remove(index);
        }
        self.remove_if_idle(store);
    }

    pub(super) fn remove_if_idle(&mut self, store: &Path) {
        if self.0.get(store).is_some_and(StoreState::is_idle) {
            self.0.remove(store);
        }
    }
}

impl StoreState {
    fn silence(&self) -> Option<Duration> {
        let stalled_for = self.unawaited_since.iter().min()?.elapsed();
        (stalled_for >= STORE_TIMEOUT).then_some(stalled_for)
    }

    fn is_idle(&self) -> bool {
        let is_queued = self.is_draining || !self.queued.is_empty();
        self.running_threads == 0 && self.unawaited_since.is_empty() && !is_queued
    }
}
