//! Gate between the iterations of loads. It is closed at checkpoints.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Time limit for all loads to be parked. An iteration takes about a second, but a request may take
/// much longer on a loaded machine.
const PARK_LIMIT: Duration = Duration::from_secs(180);

/// Gate that every load passes between two iterations.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    is_over: bool,
    /// Loads whose threads run.
    running: usize,
    /// Loads that are blocked at the closed gate.
    parked: usize,
    /// First load that failed, with its error.
    failure: Option<String>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks while the gate is closed. Returns false if the load must end.
    fn pass(&self) -> bool {
        let mut state = self.lock();
        while state.is_closed && !state.is_over {
            state.parked += 1;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.parked -= 1;
        }
        !state.is_over
    }

    /// Starts a load. Each call of `iterate` is one iteration.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        name: &'static str,
        totals: &'scope Tally,
        mut iterate: impl FnMut() -> Result<()> + Send + 'scope,
    ) {
        self.lock().running += 1;
        let _thread = scope.spawn(move || {
            let mut ending = Ending { gate: self, failure: Some(format!("load {name} panicked")) };
            while self.pass() {
                let started = Instant::now();
                if let Err(error) = iterate().with_context(|| format!("load {name}")) {
                    ending.failure = Some(format!("{error:#}"));
                    return;
                }
                totals.count_iteration(name, started.elapsed());
            }
            ending.failure = None;
        });
    }

    /// Closes the gate and blocks until all loads are parked.
    ///
    /// # Errors
    /// A load failed, or an iteration does not end.
    pub(super) fn close(&self) -> Result<()> {
        let mut state = self.lock();
        state.is_closed = true;
        let deadline = Instant::now() + PARK_LIMIT;
        while state.parked < state.running && state.failure.is_none() {
            let remaining = deadline.saturating_duration_since(Instant::now());
            ensure!(!remaining.is_zero(), "{} of {} loads are parked", state.parked, state.running);
            let wait_result = self.changed.wait_timeout(state, remaining);
            state = wait_result.unwrap_or_else(PoisonError::into_inner).0;
        }
        check(&state)
    }

    /// Opens the gate.
    pub(super) fn open(&self) {
        self.lock().is_closed = false;
        self.changed.notify_all();
    }

    /// Blocks for `time` while the loads run.
    ///
    /// # Errors
    /// A load failed.
    pub(super) fn run(&self, time: Duration) -> Result<()> {
        let state = self.lock();
        let wait_result = self
            .changed
            .wait_timeout_while(state, time, |state| state.failure.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        check(&wait_result.0)
    }

    /// Ends all loads after their iterations.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

fn check(state: &State) -> Result<()> {
    match &state.failure {
        Some(failure) => anyhow::bail!("{failure}"),
        None => Ok(()),
    }
}

/// Records the end of a load when dropped, also after a panic.
struct Ending<'a> {
    gate: &'a Gate,
    failure: Option<String>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.running -= 1;
        if state.failure.is_none() {
            state.failure = self.failure.take();
        }
        drop(state);
        self.gate.changed.notify_all();
    }
}

/// Ends all loads when dropped, so that the scope of their threads ends after a failure.
pub(super) struct EndGuard<'a>(pub(super) &'a Gate);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Counters of the loads.
#[derive(Default)]
pub(super) struct Tally {
    /// API requests that got a response.
    pub(super) calls: AtomicU64,
    /// Connections of NBD clients, vhost-user front-ends and API clients.
    pub(super) connections: AtomicU64,
    /// Number of iterations and their total time, by load.
    iterations: Mutex<std::collections::BTreeMap<&'static str, (u64, Duration)>>,
}

impl Tally {
    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_connections(&self, connections: u64) {
        self.connections.fetch_add(connections, Ordering::Relaxed);
    }

    fn count_iteration(&self, name: &'static str, time: Duration) {
        let mut iterations = self.iterations.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = iterations.entry(name).or_default();
        entry.0 += 1;
        entry.1 += time;
    }

    /// Returns a line for each load: iterations and their mean time.
    pub(super) fn describe(&self) -> String {
        let iterations = self.iterations.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |(name, (count, time)): (&&str, &(u64, Duration))| {
            format!("{name}: {count} iterations of {:.2} s\n", time.as_secs_f64() / *count as f64)
        };
        iterations.iter().map(line).collect()
    }
}

impl Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}
