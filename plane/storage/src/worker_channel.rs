//! Channel for commands to one worker.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use suimon_ports::Waker;

use crate::command::Command;
use crate::exclusion::lock;
use crate::last_view::LastView;
use crate::plane_error::PlaneError;
use crate::waits::Waits;

/// Channel for commands to one worker.
pub(crate) struct WorkerChannel {
    pub(crate) commands: Sender<Command>,
    pub(crate) waker: Arc<dyn Waker>,
    pub(crate) has_io: AtomicBool,
    /// State that the worker has last reported.
    pub(crate) view: Mutex<LastView>,
}

impl WorkerChannel {
    pub(crate) fn send(&self, command: Command) {
        // If the worker has ended, the next command with a reply detects it.
        let _ = self.commands.send(command);
        self.waker.wake();
    }

    pub(crate) fn call<T>(
        &self,
        command: impl FnOnce(Sender<T>) -> Command,
    ) -> Result<T, PlaneError> {
        let (reply, answer) = channel();
        self.send(command(reply));
        answer.recv().map_err(|_| PlaneError::NoWorker)
    }

    /// Requests a reply after all earlier commands. Returns `None` if the worker has not replied to
    /// an earlier request of this kind or status query.
    pub(crate) fn begin_sync(&self) -> Option<Receiver<()>> {
        if self.is_late() {
            return None;
        }
        let (reply, answer) = channel();
        self.send(Command::Sync(reply));
        Some(answer)
    }

    /// Waits for the reply. If there is none in time, the worker counts as late.
    pub(crate) fn end_sync(&self, waits: &Waits, reply: Receiver<()>, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        // The worker drops the sender. A worker that has ended dispatches no requests.
        if waits.receive(&reply, left) == Err(RecvTimeoutError::Timeout) {
            lock(&self.view).outstanding_sync = Some(reply);
        }
    }

    /// Returns true if the worker has not replied to an earlier request in time, nor since.
    pub(crate) fn is_late(&self) -> bool {
        lock(&self.view).is_late()
    }
}
