//! QMP commands to a VM's monitor, and the state that callers share with the thread that reads the
//! monitor.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_ports::{VmError, VmErrorKind, VmRunState};
use suimon_qmp::Command;

use crate::messages::write_line;
use crate::qemu_stream::QemuStream;

/// Time limit for QEMU's reply to one command.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for an operation of several commands, such as a query of all ports. Without it, a
/// QEMU that replies to each command just within its limit could block the VM's thread for many
/// minutes.
pub(crate) const OPERATION_LIMIT: Duration = Duration::from_secs(60);

/// Result of a command: return value or error text.
pub(crate) type Outcome = Result<Value, String>;

/// Maximum number of commands in flight. Further commands are not sent: a QEMU that has stalled for
/// hours reads none, and its socket has space for some hundred. A command that does not fit would
/// end the connection, and with it the VM. One of these commands is reserved for
/// [`ReplyRecipient::Unplugging`], which sends one at a time.
pub(crate) const COMMANDS_IN_FLIGHT_MAX: usize = 64;

/// Reason why a command was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// [`COMMANDS_IN_FLIGHT_MAX`] commands are in flight.
    Stalled,
    /// The connection has ended, or ends because the command could not be written completely.
    Disconnected,
}

/// Recipient of the reply to a QMP command.
pub(crate) enum ReplyRecipient {
    Caller(SyncSender<Outcome>),
    /// The caller does not wait any more, and the reply is ignored. The command remains counted
    /// until then, because QEMU replies to commands in order.
    Abandoned,
    Unplugging,
}

/// State of the VM as known from QEMU's events and replies.
#[derive(Clone, Debug)]
pub(crate) struct KnownVmState {
    pub(crate) state: VmRunState,
    /// True if a write failed for lack of space, so that the VM is paused or about to be.
    pub(crate) waits_for_space: bool,
    /// True if an agent in the guest has opened the guest agent's port.
    pub(crate) has_agent: bool,
    /// Reason that QEMU gave for the last shutdown of the machine.
    pub(crate) shutdown_reason: Option<String>,
    /// Description of the end of QEMU's process; `None` while it runs.
    pub(crate) end_description: Option<String>,
}

/// State that callers share with the thread that reads the monitor.
pub(crate) struct SharedMonitor {
    pub(crate) name: String,
    pub(crate) stream: QemuStream,
    pub(crate) last_command_id: Mutex<u64>,
    pub(crate) reply_recipients: Mutex<BTreeMap<u64, ReplyRecipient>>,
    pub(crate) known_state: Mutex<KnownVmState>,
    pub(crate) end_reported: Condvar,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedMonitor {
    /// Sends a command, optionally with a descriptor. Its reply will be delivered to `waiting`.
    /// Returns the id of the command.
    pub(crate) fn send(
        &self,
        command: &Command,
        descriptor: Option<BorrowedFd<'_>>,
        waiting: ReplyRecipient,
    ) -> Result<u64, SendError> {
        let limit = match waiting {
            ReplyRecipient::Unplugging => COMMANDS_IN_FLIGHT_MAX,
            ReplyRecipient::Caller(_) | ReplyRecipient::Abandoned => COMMANDS_IN_FLIGHT_MAX - 1,
        };
        let mut last = lock(&self.last_command_id);
        let mut unanswered = lock(&self.reply_recipients);
        if unanswered.len() >= limit {
            return Err(SendError::Stalled);
        }
        *last += 1;
        let id = *last;
        unanswered.insert(id, waiting);
        drop(unanswered);
        let result = write_line(&self.stream, &command.line(id), descriptor);
        if result.is_err() {
            lock(&self.reply_recipients).remove(&id);
            // After an incomplete command, QEMU could not parse the next one.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        result.map(|()| id).map_err(|_| SendError::Disconnected)
    }

    /// Sends a command and blocks until the reply, for at most [`REPLY_TIMEOUT`].
    pub(crate) fn request(&self, command: &Command) -> Result<Value, VmError> {
        self.request_with(command, None, REPLY_TIMEOUT)
    }

    /// Sends a command that changes nothing, and blocks until the reply, for at most `limit`. Fails
    /// immediately if QEMU has not replied to an earlier command in time, so that repeated queries
    /// of a QEMU that does not respond block no thread.
    pub(crate) fn query(&self, command: &Command, limit: Duration) -> Result<Value, VmError> {
        let is_abandoned = |waiting: &ReplyRecipient| matches!(waiting, ReplyRecipient::Abandoned);
        if limit.is_zero() || lock(&self.reply_recipients).values().any(is_abandoned) {
            return Err(self.stalled());
        }
        self.request_with(command, None, limit)
    }

    /// Passes a descriptor to QEMU, which stores it under `name`.
    pub(crate) fn send_descriptor(
        &self,
        name: &'static str,
        fd: BorrowedFd<'_>,
    ) -> Result<(), VmError> {
        self.request_with(&Command::GetFd { name }, Some(fd), REPLY_TIMEOUT).map(drop)
    }

    fn request_with(
        &self,
        command: &Command,
        fd: Option<BorrowedFd<'_>>,
        limit: Duration,
    ) -> Result<Value, VmError> {
        let (sender, receiver) = sync_channel(1);
        let id = self.send(command, fd, ReplyRecipient::Caller(sender)).map_err(
            |error| match error {
                SendError::Stalled => self.stalled(),
                SendError::Disconnected => self.disconnected_error(),
            },
        )?;
        let answer = receiver.recv_timeout(limit);
        if matches!(answer, Err(RecvTimeoutError::Timeout)) {
            // The entry does not exist if the reply has just arrived, or the connection has ended.
            if let Some(waiting) = lock(&self.reply_recipients).get_mut(&id) {
                *waiting = ReplyRecipient::Abandoned;
            }
        }
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(text)) => {
                let text = format!("QEMU rejected `{}`: {text}", command.name());
                Err(VmError::new(VmErrorKind::Refused, text))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.disconnected_error()),
            Err(RecvTimeoutError::Timeout) => Err(self.silent_for(command.name(), limit)),
        }
    }

    /// Returns the error of a command that was not sent, because QEMU does not reply to earlier
    /// ones.
    fn stalled(&self) -> VmError {
        let name = &self.name;
        let text = format!("VM {name}: QEMU has not replied to earlier commands yet");
        VmError::new(VmErrorKind::Timeout, text)
    }

    /// Returns an error if an operation that began at `started_at` exceeds [`OPERATION_LIMIT`].
    pub(crate) fn check_time(&self, started_at: Instant, operation: &str) -> Result<(), VmError> {
        if started_at.elapsed() < OPERATION_LIMIT {
            return Ok(());
        }
        Err(self.silent_for(operation, OPERATION_LIMIT))
    }

    pub(crate) fn reply_timeout_error(&self, operation: &str) -> VmError {
        self.silent_for(operation, REPLY_TIMEOUT)
    }

    fn silent_for(&self, operation: &str, limit: Duration) -> VmError {
        let (name, limit) = (&self.name, limit.as_secs());
        let text = format!("VM {name}: QEMU did not complete `{operation}` within {limit} s");
        VmError::new(VmErrorKind::Timeout, text)
    }

    pub(crate) fn disconnected_error(&self) -> VmError {
        let (name, reason) = (&self.name, self.end_reason());
        VmError::new(VmErrorKind::NotRunning, format!("VM {name} has ended: {reason}"))
    }

    /// Returns a description of the process's end; if none is known, a statement that QEMU has
    /// closed its monitor.
    pub(crate) fn end_reason(&self) -> String {
        let reason = lock(&self.known_state).end_description.clone();
        reason.unwrap_or_else(|| "QEMU closed its monitor".to_owned())
    }

    pub(crate) fn known_state(&self) -> KnownVmState {
        lock(&self.known_state).clone()
    }

    /// Records the state that was queried from QEMU. If an event has already reported the agent,
    /// that is kept.
    pub(crate) fn set_known_state(
        &self,
        state: VmRunState,
        waits_for_space: bool,
        has_agent: bool,
    ) {
        let mut status = lock(&self.known_state);
        status.state = state;
        status.waits_for_space |= waits_for_space;
        status.has_agent |= has_agent;
    }

    /// Blocks until the end of the process is reported, for at most `limit`. Returns false on
    /// timeout.
    pub(crate) fn wait_end(&self, limit: Duration) -> bool {
        let status = lock(&self.known_state);
        let waited = self
            .end_reported
            .wait_timeout_while(status, limit, |status| status.end_description.is_none());
        waited.map_or(true, |(status, _)| status.end_description.is_some())
    }

    /// Returns a description of the process's end; `None` while it runs.
    pub(crate) fn end_description(&self) -> Option<String> {
        lock(&self.known_state).end_description.clone()
    }
}
