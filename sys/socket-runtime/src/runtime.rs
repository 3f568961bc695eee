//! Worker threads that run tasks, and threads for blocking calls.

use core::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use suimon_ports::ThreadInit;
use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::blocking::run_blocking_on;

/// Default maximum number of concurrent blocking calls of a runtime. Further calls are queued.
pub const BLOCKING_CALLS_MAX: usize = 512;
/// Time after which an unused thread for blocking calls ends.
pub const BLOCKING_THREAD_IDLE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of values that [`SocketRuntime::drop_later`] drops at once. Further ones are
/// queued.
pub const CONCURRENT_DROPS_MAX: usize = 64;
/// Interval of the attempts to drop a value while the host has no thread left.
const SHORTAGE: Duration = Duration::from_millis(200);

/// Functions that each thread of the runtime calls first.
#[derive(Clone)]
pub struct ThreadHooks {
    /// Called by each worker thread. If it fails, [`SocketRuntime::new`] fails.
    pub on_worker_start: ThreadInit,
    /// Called by each thread for blocking calls, which a worker thread has started.
    pub on_blocking_start: Arc<dyn Fn() + Send + Sync>,
}

impl Default for ThreadHooks {
    /// Returns hooks without any effect.
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
    /// Set until the drop.
    runtime: Option<Runtime>,
    /// Permits that limit the number of concurrent drops.
    dropping: Arc<Semaphore>,
}

impl SocketRuntime {
    /// Starts `workers` threads (at least one) named `name`. The kernel truncates the name to 15
    /// bytes.
    ///
    /// # Errors
    /// The host has no thread or descriptor left, or the error of `hooks.on_worker_start`.
    pub fn new(name: &str, workers: usize, hooks: ThreadHooks) -> io::Result<Self> {
        Self::with_blocking_max(name, workers, BLOCKING_CALLS_MAX, hooks)
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
            .thread_keep_alive(BLOCKING_THREAD_IDLE_MAX)
            .thread_name(name)
            .on_thread_start(thread_start(workers, hooks, report))
            .enable_io()
            .enable_time();
        // Tokio panics if it cannot start a worker thread.
        let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
        let runtime = built.unwrap_or_else(|_| Err(no_thread()))?;
        let dropping = Arc::new(Semaphore::new(CONCURRENT_DROPS_MAX));
        let inner = Inner { handle: runtime.handle().clone(), runtime: Some(runtime), dropping };
        for outcome in outcomes.iter().take(workers) {
            outcome?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Runs a task that ends by itself. If the runtime ends before, the task is dropped.
    pub fn spawn_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.handle.spawn(task);
    }

    /// Drops a value in a thread for blocking calls. Intended for descriptors of a peer, because
    /// closing them may block. Does not block, and may be called by any thread. The caller must
    /// bound the number of values, for example by counting a connection until the value is dropped.
    /// If the runtime has ended, the calling thread drops the value.
    pub fn drop_later(&self, value: impl Send + 'static) {
        let dropping = Arc::clone(&self.0.dropping);
        self.spawn_detached(async move {
            let _place = dropping.acquire_owned().await;
            let mut value = Some(Some(value));
            while value.is_some() {
                if run_blocking_on(&mut value, |value| drop(value.take())).await.is_ok() {
                    return;
                }
                sleep(SHORTAGE).await;
            }
        });
    }

    /// Returns Tokio's handle, which starts tasks.
    pub(crate) fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Permits the calling thread to create [`WatchedFd`](crate::WatchedFd) descriptors of this
    /// runtime while the guard exists.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.0.handle.enter()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last handle may be dropped by a thread that must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Checks that the host can start the threads of a runtime, by starting and ending the same number.
/// Tokio blocks forever if it cannot start all of its worker threads.
///
/// # Errors
/// The host cannot start this number of threads.
fn check_threads(count: usize) -> io::Result<()> {
    let (hold, receiver) = sync_channel::<()>(0);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut started = Vec::new();
    let mut outcome = Ok(());
    for _ in 0..count {
        let receiver = Arc::clone(&receiver);
        let wait = move || {
            // The thread ends when `hold` is dropped.
            let _ = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
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

/// Returns the function that each new thread of the runtime calls first: the hook of its kind. The
/// first `workers` threads are worker threads, because tasks start the other threads. `report`
/// receives the result of each worker thread's hook.
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
            // The receiver was dropped if another worker thread has failed before.
            let _ = report.send(outcome);
        } else {
            (hooks.on_blocking_start)();
        }
    }
}
