//! Blocking calls that tasks pass to separate threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;
use tokio::sync::oneshot;

/// Error of a blocking call that has no result: the host could not start a thread for it, or the
/// call panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the host could not run a blocking call: no thread could be started, or the call panicked")]
pub struct BlockingCallFailed;

/// Executes `call` in a thread for blocking calls. Must be awaited by a task of a
/// [`SocketRuntime`](crate::SocketRuntime). A call that has started is completed even if the task
/// is dropped.
///
/// # Errors
/// See [`BlockingCallFailed`]. In this case, the captured values of `call` were dropped, and it
/// will not be executed.
pub async fn run_blocking<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlockingCallFailed> {
    let (report, result) = oneshot::channel();
    let pending = Arc::new(Mutex::new(Some((call, report))));
    let queued = Arc::clone(&pending);
    let execute = move || {
        let Some((call, report)) = take(&queued) else { return };
        // The task may have been dropped.
        let _ = report.send(call());
    };
    // Tokio panics if it cannot start a thread for blocking calls and there is none. It would
    // execute the queued call as soon as there is one.
    let started = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(execute)));
    if started.is_err() {
        drop(take(&pending));
    }
    drop(pending);
    // This fails if the call was dropped or has panicked.
    result.await.map_err(|_| BlockingCallFailed)
}

/// Executes `call` in a thread for blocking calls without waiting for it. Returns false if the host
/// has no thread left; `call` was then dropped. Must be called by a task of a
/// [`SocketRuntime`](crate::SocketRuntime).
pub fn run_blocking_detached(call: impl FnOnce() + Send + 'static) -> bool {
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

/// Executes `call` like [`blocking`], on a value that the caller retains even if the call cannot be
/// executed. Afterwards, `value` is `None` only if the call panicked. Not cancel safe: the value is
/// lost with a dropped future.
///
/// # Errors
/// See [`BlockingCallFailed`]; also if `value` is `None`.
pub async fn run_blocking_on<V: Send + 'static, T: Send + 'static>(
    value: &mut Option<V>,
    call: impl FnOnce(&mut V) -> T + Send + 'static,
) -> Result<T, BlockingCallFailed> {
    let slot = Arc::new(Mutex::new(value.take()));
    let task_slot = Arc::clone(&slot);
    let result = run_blocking(move || {
        // Dropped if the call panics.
        let mut value = take(&task_slot)?;
        let result = call(&mut value);
        *task_slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        Some(result)
    })
    .await;
    *value = take(&slot);
    result?.ok_or(BlockingCallFailed)
}

pub(crate) fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}
