//! Tasks that a runtime executes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::watch;

use crate::runtime::SocketRuntime;

/// Task of a [`SocketRuntime`](crate::SocketRuntime). Dropping it stops and joins it.
pub struct Task {
    stop: watch::Sender<bool>,
    /// Disconnected when the task has ended.
    ended: Receiver<()>,
    /// Keeps the threads that run the task alive.
    _runtime: SocketRuntime,
}

/// Signal that requests the end of a task. Clones refer to the same signal.
#[derive(Clone, Debug)]
pub struct TaskStop(watch::Receiver<bool>);

impl SocketRuntime {
    /// Runs a task. The argument of `task` is the signal with which the owner ends it.
    pub fn spawn<F>(&self, task: impl FnOnce(TaskStop) -> F) -> Task
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let (guard, ended): (SyncSender<()>, _) = sync_channel(0);
        let task = task(TaskStop(stopped));
        self.handle().spawn(async move {
            // The sender is dropped when the task ends or panics, or when its runtime ends.
            let _guard = guard;
            task.await;
        });
        Task { stop, ended, _runtime: self.clone() }
    }
}

impl Task {
    /// Signals the task to end. Does not wait for the end.
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

impl TaskStop {
    /// Waits for the signal to end. Cancel safe.
    pub async fn wait(&mut self) {
        // The sender is dropped only after it has sent `true`.
        let _ = self.0.wait_for(|is_stopped| *is_stopped).await;
    }

    /// Returns true if the signal to end is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }
}
