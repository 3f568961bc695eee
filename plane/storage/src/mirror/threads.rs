//! Threads of a disk copy.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use suimon_ports::DiskClient;
use suimon_storage_engine::DirtyMap;

use super::claims::{Claim, Claims};
use super::copy::SourceAndCopy;
use super::progress::{MirrorError, MirrorProgress};

/// Number of copying threads, each with one request in flight.
const THREADS: usize = 8;

/// Minimum duration of a pass over the disk, so that regions written repeatedly are not copied each
/// time. In [`Stage::Finishing`], passes are not delayed.
const PASS_MIN: Duration = Duration::from_millis(100);

/// Interval at which [`Mirror::finish`] checks whether requests of the disk's clients are in
/// flight.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Stage of a disk copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first thread determines by allocation queries which regions have data.
    Looking,
    /// The threads copy marked regions.
    Copying,
    /// The threads copy marked regions without a delay between passes.
    Finishing,
    /// One thread makes the copy durable.
    ToFlush,
    Flushing,
    Flushed,
    /// The copy has ended and its threads exit.
    Ended,
}

struct State {
    stage: Stage,
    claims: Claims,
    copied_bytes: u64,
    failure: Option<MirrorError>,
    /// Earliest time at which the next pass over the disk starts.
    not_before: Instant,
    pass_began: Instant,
}

struct Inside {
    pair: SourceAndCopy,
    dirty: Arc<DirtyMap>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Disk copy in progress. Dropping it ends the copy in any stage and closes both connections.
pub struct Mirror {
    inside: Arc<Inside>,
    threads: Vec<JoinHandle<()>>,
}

impl Mirror {
    /// Starts to copy `disk` to `copy`, which must read as zeros. Changes of the disk must have
    /// been marked in `dirty` since before the call.
    ///
    /// # Errors
    /// The sizes differ, or the system refused to create a thread.
    pub fn start(
        disk: Box<dyn DiskClient>,
        copy: Box<dyn DiskClient>,
        dirty: Arc<DirtyMap>,
    ) -> Result<Self, MirrorError> {
        let sizes = (disk.size_bytes(), copy.size_bytes());
        if sizes.0 != sizes.1 || sizes.0 != dirty.size_bytes() {
            return Err(MirrorError::SizesDiffer {
                disk_bytes: dirty.size_bytes(),
                copy_bytes: sizes.1,
            });
        }
        let now = Instant::now();
        let state = State {
            stage: Stage::Looking,
            claims: Claims::default(),
            copied_bytes: 0,
            failure: None,
            not_before: now,
            pass_began: now,
        };
        let shared = Arc::new(Inside {
            pair: SourceAndCopy { source: disk, copy },
            dirty,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let mut mirror = Self { inside: Arc::clone(&shared), threads: Vec::new() };
        for number in 0..THREADS {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("suimon-mirror".to_owned());
            let thread = thread.spawn(move || shared.run_thread(number == 0));
            let thread = thread.map_err(|error| MirrorError::NoThread(error.to_string()))?;
            mirror.threads.push(thread);
        }
        Ok(mirror)
    }

    /// Returns the progress of the copy. All bytes remain until the allocation has been queried.
    #[must_use]
    pub fn progress(&self) -> MirrorProgress {
        let (state, dirty) = (self.inside.lock(), &self.inside.dirty);
        let remaining_bytes = dirty.dirty_bytes().saturating_add(state.claims.bytes());
        MirrorProgress {
            copied_bytes: state.copied_bytes,
            remaining_bytes: if state.stage == Stage::Looking {
                dirty.size_bytes()
            } else {
                remaining_bytes
            },
            has_copied_all: state.stage != Stage::Looking && state.claims.has_copied_all(),
            failure: state.failure.clone(),
        }
    }

    /// Copies all remaining changes while the disk's clients are stopped, and makes the copy
    /// durable. `in_flight` returns the number of the clients' requests that have not completed;
    /// the call blocks until there are none. The copy continues afterwards and may be finished
    /// again.
    ///
    /// # Errors
    /// The copy was not complete by `until`, or copying has failed.
    pub fn finish(
        &self,
        until: Instant,
        mut in_flight: impl FnMut() -> Result<usize, MirrorError>,
    ) -> Result<(), MirrorError> {
        loop {
            self.wait_until_still(until, &mut in_flight)?;
            let copy_result = self.copy_rest(until);
            let mut state = self.inside.lock();
            if state.stage != Stage::Looking {
                state.stage = Stage::Copying;
            }
            drop(state);
            copy_result?;
            // Changes by requests that complete meanwhile are copied too, until the time limit.
            if in_flight()? == 0 && self.inside.dirty.marked_region_count() == 0 {
                return Ok(());
            }
        }
    }

    fn wait_until_still(
        &self,
        until: Instant,
        in_flight: &mut impl FnMut() -> Result<usize, MirrorError>,
    ) -> Result<(), MirrorError> {
        loop {
            let requests = in_flight()?;
            if requests == 0 {
                return Ok(());
            }
            if let Some(failure) = self.inside.lock().failure.clone() {
                return Err(failure);
            }
            if Instant::now() >= until {
                return Err(MirrorError::RequestsInFlight(requests));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Copies all marked regions, and makes the copy durable. Fails if that is not done by `until`.
    fn copy_rest(&self, until: Instant) -> Result<(), MirrorError> {
        let Inside { dirty, changed, .. } = &*self.inside;
        let mut state = self.inside.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let is_copied = dirty.marked_region_count() == 0 && state.claims.is_empty();
            match state.stage {
                Stage::Flushed => return Ok(()),
                Stage::Copying => state.stage = Stage::Finishing,
                Stage::Finishing if is_copied => state.stage = Stage::ToFlush,
                _ => {}
            }
            changed.notify_all();
            let remaining_time = until.saturating_duration_since(Instant::now());
            if remaining_time.is_zero() {
                let remaining_bytes = dirty.dirty_bytes().saturating_add(state.claims.bytes());
                return Err(MirrorError::BytesRemaining(remaining_bytes));
            }
            let wait_result = changed.wait_timeout(state, remaining_time.min(PASS_MIN));
            state = wait_result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.inside.lock().stage = Stage::Ended;
        self.inside.pair.close();
        self.inside.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Next action of a copying thread.
enum Task {
    Copy(Claim),
    Flush,
    End,
}

impl Inside {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes the actions of a copying thread until the copy ends. With `looks_first`, the thread
    /// first determines which regions have data.
    fn run_thread(&self, looks_first: bool) {
        if looks_first {
            let is_comparing = || self.lock().stage == Stage::Looking;
            let comparison = self.pair.mark_allocated(&self.dirty, is_comparing);
            let mut state = self.lock();
            if state.stage == Stage::Looking {
                state.stage = Stage::Copying;
            }
            drop(state);
            self.changed.notify_all();
            self.note(comparison);
        }
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                Task::Copy(claim) => {
                    let copied = self.pair.copy(claim.range, &mut bytes);
                    if copied.is_err() {
                        self.dirty.mark(claim.range);
                    }
                    let mut state = self.lock();
                    state.claims.release(&claim);
                    if copied.is_ok() {
                        state.copied_bytes = state.copied_bytes.saturating_add(claim.range.len());
                    }
                    drop(state);
                    self.note(copied);
                    self.changed.notify_all();
                }
                Task::Flush => {
                    let flushed = self.pair.copy.flush().map_err(MirrorError::Write);
                    let mut state = self.lock();
                    // The caller that requested the flush may have returned after its time limit.
                    if state.stage == Stage::Flushing && flushed.is_ok() {
                        state.stage = Stage::Flushed;
                    }
                    drop(state);
                    self.note(flushed);
                    self.changed.notify_all();
                }
                Task::End => return,
            }
        }
    }

    /// Blocks until there is an action for the thread, and returns it.
    fn next(&self) -> Task {
        let mut state = self.lock();
        loop {
            if state.failure.is_some() || state.stage == Stage::Ended {
                return Task::End;
            }
            if state.stage == Stage::ToFlush {
                state.stage = Stage::Flushing;
                return Task::Flush;
            }
            let now = Instant::now();
            let is_due = state.stage == Stage::Finishing || now >= state.not_before;
            if state.stage != Stage::Looking && is_due {
                if let Some(claim) = state.claims.claim_next(&self.dirty) {
                    return Task::Copy(claim);
                }
                state.not_before = (state.pass_began + PASS_MIN).max(now);
                state.pass_began = state.not_before;
            }
            let pause = state.not_before.saturating_duration_since(now);
            let pause = if pause.is_zero() { PASS_MIN } else { pause };
            let wait_result = self.changed.wait_timeout(state, pause);
            state = wait_result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Records the result of an action. The first failure ends the copy.
    fn note(&self, result: Result<(), MirrorError>) {
        let Err(error) = result else { return };
        let mut state = self.lock();
        if state.stage != Stage::Ended {
            tracing::warn!(%error, "the copy of a disk ended");
            state.failure.get_or_insert(error);
        }
        drop(state);
        self.pair.close();
        self.changed.notify_all();
    }
}
