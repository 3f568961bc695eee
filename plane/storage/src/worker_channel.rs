//! Channel for commands to one worker.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use suimon_ports::Waker;

use crate::command::Command;
use crate::last_view::LastView;
use crate::plane_error::PlaneError;

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
}
