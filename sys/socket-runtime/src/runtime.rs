//! The threads of a runtime.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use suimon_ports::ThreadStart;
use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

use crate::task::{Stop, Task};

/// Largest number of blocking calls that a runtime executes at once. Further ones wait.
pub const BLOCKING_MAX: usize = 512;
/// Time after which an unused thread for blocking calls ends.
pub const BLOCKING_IDLE: Duration = Duration::from_secs(10);

/// What threads of a runtime call before anything else.
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

/// Worker threads that run tasks. Clones are handles on the same threads, which end when the last
/// handle and the last [`Task`] are dropped.
#[derive(Clone)]
pub struct SocketRuntime(Arc<Inner>);

struct Inner {
    handle: Handle,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl SocketRuntime {
    /// Starts `workers` threads (at least one) named `name`, of which the kernel shows 15 bytes.
    ///
    /// # Errors
    /// The host has no thread or descriptor left, or what `hooks.on_worker_start` returned.
    pub fn new(name: &str, workers: usize, hooks: ThreadHooks) -> io::Result<Self> {
        let workers = workers.max(1);
        let (report, outcomes) = channel();
        let on_start = thread_start(workers, hooks, report);
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .max_blocking_threads(BLOCKING_MAX)
            .thread_keep_alive(BLOCKING_IDLE)
            .thread_name(name)
            .on_thread_start(on_start)
            .enable_io()
            .enable_time()
            .build()?;
        let inner = Inner { handle: runtime.handle().clone(), runtime: Some(runtime) };
        for outcome in outcomes.iter().take(workers) {
            outcome?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Runs a task. `task` receives what becomes ready when the owner wants the task to end.
    pub fn spawn<F>(&self, task: impl FnOnce(Stop) -> F) -> Task
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Task::spawn((self.clone(), &self.0.handle), task)
    }

    /// Runs a task that ends by itself. It is dropped if the runtime ends before.
    pub fn spawn_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.handle.spawn(task);
    }

    /// Lets the calling thread make [`Watched`](crate::Watched) descriptors of this runtime as long
    /// as the guard lives.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.0.handle.enter()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last handle may be dropped by a thread that may not wait for others.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns what each thread of the runtime calls first: the first `workers` ones are worker threads,
/// because the others are started by tasks. `report` receives the result of each worker thread.
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
            // The runtime is given up if another worker thread has failed before.
            let _ = report.send(outcome);
        } else {
            (hooks.on_blocking_start)();
        }
    }
}
