//! Threads of a runtime.

use core::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use suimon_ports::ThreadStart;
use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::blocking::blocking_on;

/// Default maximum number of concurrent blocking calls of a runtime. Further calls are queued.
pub const BLOCKING_MAX: usize = 512;
/// Time after which an unused thread for blocking calls ends.
pub const BLOCKING_IDLE: Duration = Duration::from_secs(10);
/// Maximum number of values that [`SocketRuntime::drop_later`] drops at once. Further ones are
/// queued.
pub const DROPPING_MAX: usize = 64;
/// Time until the next attempt to drop a value if the host has no thread left for it.
const SHORTAGE: Duration = Duration::from_millis(200);

/// Functions that threads of a runtime call before anything else.
#[derive(Clone)]
pub struct ThreadHooks {
    /// Called by each worker thread. If it fails, [`SocketRuntime::new`] fails.
    pub on_worker_start: ThreadStart,
    /// Called by each thread for blocking calls, which a worker thread has started.
    pub on_blocking_start: Arc<dyn Fn() + Send + Sync>,
}

impl Default for ThreadHooks {
    /// Hooks that do nothing.
    fn default() -> Self {
        Self { on_worker_start: Arc::new(|| Ok(())), on_blocking_start: Arc::new(|| {}) }
    }
}

/// Worker threads that run tasks. Clones refer to the same threads, which end when the last clone
/// and the last [`Task`](crate::Task) are dropped.
#[derive(Clone)]
pub struct SocketRuntime(Arc<Inner>);

impl fmt::Debug for SocketRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SocketRuntime").finish_non_exhaustive()
    }
}

struct Inner {
    handle: Handle,
    /// `None` only during the drop.
    runtime: Option<Runtime>,
    /// Permits for drops in progress.
    dropping: Arc<Semaphore>,
}

impl SocketRuntime {
    /// Starts `workers` threads (at least one) named `name`, of which the kernel shows 15 bytes.
    ///
    /// # Errors
    /// The host has no thread or descriptor left, or the error of `hooks.on_worker_start`.
    pub fn new(name: &str, workers: usize, hooks: ThreadHooks) -> io::Result<Self> {
        Self::with_blocking_max(name, workers, BLOCKING_MAX, hooks)
    }

    /// Starts threads as [`new`](Self::new) does. At most `blocking_max` blocking calls (at least
    /// one) are executed concurrently; further ones are queued.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_blocking_max(
        name: &str,
        workers: usize,
        blocking_max: usize,
        hooks: ThreadHooks,
    ) -> io::Result<Self> {
        let workers = workers.max(1);
        check_threads(workers)?;
        let (report, outcomes) = channel();
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(workers)
            .max_blocking_threads(blocking_max.max(1))
            .thread_keep_alive(BLOCKING_IDLE)
            .thread_name(name)
            .on_thread_start(thread_start(workers, hooks, report))
            .enable_io()
            .enable_time();
        // Tokio panics if it cannot start a worker thread.
        let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
        let runtime = built.unwrap_or_else(|_| Err(no_thread()))?;
        let dropping = Arc::new(Semaphore::new(DROPPING_MAX));
        let inner = Inner { handle: runtime.handle().clone(), runtime: Some(runtime), dropping };
        for outcome in outcomes.iter().take(workers) {
            outcome?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Runs a task that ends by itself. It is dropped if the runtime ends before.
    pub fn spawn_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.handle.spawn(task);
    }

    /// Drops a value in a thread for blocking calls: for descriptors of a peer, whose close may
    /// block. Does not block, and may be called by any thread. The caller bounds the number of
    /// values, for example by counting a connection until the value is dropped. If the runtime has
    /// ended, the calling thread drops the value.
    pub fn drop_later(&self, value: impl Send + 'static) {
        let dropping = Arc::clone(&self.0.dropping);
        self.spawn_detached(async move {
            let _place = dropping.acquire_owned().await;
            let mut value = Some(Some(value));
            while value.is_some() {
                if blocking_on(&mut value, |value| drop(value.take())).await.is_ok() {
                    return;
                }
                sleep(SHORTAGE).await;
            }
        });
    }

    /// Returns the handle that starts tasks.
    pub(crate) fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Permits the calling thread to create [`Watched`](crate::Watched) descriptors of this runtime
    /// while the guard exists.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.0.handle.enter()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last handle may be dropped by a thread that may not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts and ends as many threads as the runtime will have. Tokio blocks forever if it cannot
/// start all of its worker threads.
///
/// # Errors
/// The host cannot start that many threads.
fn check_threads(count: usize) -> io::Result<()> {
    let (hold, held) = sync_channel::<()>(0);
    let held = Arc::new(Mutex::new(held));
    let mut started = Vec::new();
    let mut outcome = Ok(());
    for _ in 0..count {
        let held = Arc::clone(&held);
        let wait = move || {
            // Ends when `hold` is dropped.
            let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
        };
        match thread::Builder::new().spawn(wait) {
            Ok(thread) => started.push(thread),
            Err(_) => outcome = Err(no_thread()),
        }
    }
    drop(hold);
    for thread in started {
        let _ = thread.join();
    }
    outcome
}

fn no_thread() -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        "the host cannot start another thread; raise `TasksMax` of the unit or \
         `kernel.threads-max`",
    )
}

/// Returns the function that each thread of the runtime calls first. The first `workers` threads
/// are worker threads, because tasks start the others. `report` receives the result of each worker
/// thread.
fn thread_start(
    workers: usize,
    hooks: ThreadHooks,
    report: Sender<io::Result<()>>,
) -> impl Fn() + Send + Sync + 'static {
    let (started, report) = (AtomicUsize::new(0), Mutex::new(report));
    move || {
        if started.fetch_add(1, Ordering::Relaxed) < workers {
            let outcome = (hooks.on_worker_start)();
            let report = report.lock().unwrap_or_else(PoisonError::into_inner);
            // The receiver is gone if another worker thread has failed before.
            let _ = report.send(outcome);
        } else {
            (hooks.on_blocking_start)();
        }
    }
}
