//! Channel for commands to one worker.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_ports::Waker;
use suimon_quantity::WorkerId;

use crate::command::Command;
use crate::command::last_state::LastState;
use crate::sync::lock;

/// Channel for commands to one worker.
pub(crate) struct WorkerChannel {
    pub(crate) id: WorkerId,
    pub(crate) commands: Sender<Command>,
    pub(crate) waker: Arc<dyn Waker>,
    pub(crate) has_io: AtomicBool,
    /// State that the worker has last reported.
    pub(crate) last_state: Mutex<LastState>,
}

impl WorkerChannel {
    pub(crate) fn send(&self, command: Command) {
        // If the worker has ended, the next command with a reply detects it.
        let _ = self.commands.send(command);
        self.waker.wake();
    }

    /// Requests a reply after all earlier commands. Returns `None` if the worker has not replied to
    /// an earlier request of this kind or status query.
    pub(crate) fn begin_sync(&self) -> Option<Receiver<()>> {
        if self.has_overdue_reply() {
            return None;
        }
        let (reply, answer) = channel();
        self.send(Command::Sync(reply));
        Some(answer)
    }

    /// Records that the worker has not replied to a request of [`WorkerChannel::begin_sync`].
    pub(crate) fn note_unanswered_sync(&self, reply: Receiver<()>, sent_at: Instant) {
        let mut view = lock(&self.last_state);
        view.outstanding_sync = Some(reply);
        view.record_overdue(sent_at);
    }

    /// Returns the time for which the worker has not replied to an earlier request; 0 if it has.
    pub(crate) fn overdue_for(&self) -> Duration {
        let since = lock(&self.last_state).poll_overdue_since();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns true if the worker has not replied for `limit`. Callers do not wait for it then.
    pub(crate) fn is_blocked(&self, limit: Duration) -> bool {
        let since = lock(&self.last_state).poll_overdue_since();
        since.is_some_and(|since| since.elapsed() >= limit)
    }

    /// Returns true if the worker has ended. A worker that runs receives a command without effect.
    pub(crate) fn has_ended(&self) -> bool {
        self.commands.send(Command::Sync(channel().0)).is_err()
    }

    /// Returns true if the worker has not replied to an earlier request in time, nor since.
    pub(crate) fn has_overdue_reply(&self) -> bool {
        lock(&self.last_state).poll_overdue()
    }
}
