//! Tasks, and blocking calls of tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::runtime::SocketRuntime;

/// A task of a [`SocketRuntime`](crate::SocketRuntime). Dropping it stops and joins it.
pub struct Task {
    stop: watch::Sender<bool>,
    /// Disconnected when the task has ended.
    ended: Receiver<()>,
    /// Keeps the threads that run the task alive.
    _runtime: SocketRuntime,
}

/// Signal to a task to end. Clones refer to the same signal.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// Error of a blocking call without result: the host could not start a thread for it, or it
/// panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the host could not run a blocking call: no thread could be started, or the call panicked")]
pub struct Interrupted;

impl Task {
    pub(crate) fn spawn<F>(
        (runtime, handle): (SocketRuntime, &Handle),
        task: impl FnOnce(Stop) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let (guard, ended): (SyncSender<()>, _) = sync_channel(0);
        let task = task(Stop(stopped));
        handle.spawn(async move {
            // Dropped when the task ends, panics, or its runtime ends.
            let _guard = guard;
            task.await;
        });
        Self { stop, ended, _runtime: runtime }
    }

    /// Signals the task to end, without waiting for it.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Drop for Task {
    /// Blocks until the task has ended. Must not be called by a task of the same runtime.
    fn drop(&mut self) {
        self.stop();
        let _ = self.ended.recv();
    }
}

impl Stop {
    /// Waits until the task has to end. Cancel safe.
    pub async fn wait(&mut self) {
        // The sender is dropped only after it has sent `true`.
        let _ = self.0.wait_for(|is_stopped| *is_stopped).await;
    }

    /// Returns true if the task has to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }
}

/// Executes `call` in a thread for blocking calls. Must be awaited by a task of a
/// [`SocketRuntime`](crate::SocketRuntime). A call that has started is completed even if the task
/// is dropped.
///
/// # Errors
/// See [`Interrupted`]. The captured values of `call` were dropped then, and it will not be
/// executed later.
pub async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Interrupted> {
    let (report, result) = oneshot::channel();
    let pending = Arc::new(Mutex::new(Some((call, report))));
    let queued = Arc::clone(&pending);
    let execute = move || {
        let Some((call, report)) = take(&queued) else { return };
        // The task may have been dropped.
        let _ = report.send(call());
    };
    // Tokio panics if it cannot start a thread for blocking calls while there is none, and executes
    // the queued call once there is one.
    let started = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(execute)));
    if started.is_err() {
        drop(take(&pending));
    }
    drop(pending);
    // Fails if the call was dropped or has panicked.
    result.await.map_err(|_| Interrupted)
}

/// Executes `call` in a thread for blocking calls and does not wait for it. Returns false if the
/// host has no thread left; `call` was dropped then. Must be called by a task of a
/// [`SocketRuntime`](crate::SocketRuntime).
pub fn blocking_detached(call: impl FnOnce() + Send + 'static) -> bool {
    let pending = Arc::new(Mutex::new(Some(call)));
    let queued = Arc::clone(&pending);
    let execute = move || {
        if let Some(call) = take(&queued) {
            call();
        }
    };
    let started = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(execute)));
    if started.is_err() {
        drop(take(&pending));
    }
    started.is_ok()
}

/// Executes `call` like [`blocking`], on a value that the caller keeps even if the call cannot be
/// executed. `value` is `None` afterwards only if the call panicked. Not cancel safe: the value is
/// lost with a dropped future.
///
/// # Errors
/// See [`Interrupted`]; also if `value` is `None`.
pub async fn blocking_on<V: Send + 'static, T: Send + 'static>(
    value: &mut Option<V>,
    call: impl FnOnce(&mut V) -> T + Send + 'static,
) -> Result<T, Interrupted> {
    let place = Arc::new(Mutex::new(value.take()));
    let inside = Arc::clone(&place);
    let result = blocking(move || {
        // Dropped if the call panics.
        let mut value = take(&inside)?;
        let result = call(&mut value);
        *inside.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        Some(result)
    })
    .await;
    *value = take(&place);
    result?.ok_or(Interrupted)
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}
