//! Commands to workers with a reply that the control plane waits for. Every wait is bounded.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::command::Command;
use crate::command::channel::WorkerChannel;
use crate::command::revocable_value::RevocableValue;
use crate::plane::StoragePlane;
use crate::plane::error::PlaneError;

/// Result of passing a value to a worker with a command.
pub(crate) enum PassResult<T: Send, R> {
    /// The worker has taken the value, and has sent this reply.
    Replied(R),
    /// The worker has not taken the value, which is returned with the error, and will not take it.
    Returned(PlaneError, T),
    /// The worker has taken the value, or will take it, and has not replied in time.
    Late(PlaneError, LateReply<T, R>),
}

/// Pending reply of a worker that has not replied in time.
pub(crate) struct LateReply<T: Send, R> {
    offer: RevocableValue<T>,
    answer: Receiver<R>,
}

impl<T: Send, R> LateReply<T, R> {
    /// Blocks until the worker replies or ends. If the worker has ended, returns the value as an
    /// error, or `None` if the worker had taken it. Callers must hold no lock.
    pub(crate) fn wait(self) -> Result<R, Option<T>> {
        self.answer.recv().map_err(|_| self.offer.take())
    }
}

impl StoragePlane {
    /// Sends a command to a worker and waits for the reply. Sends nothing to a worker that counts
    /// as blocked.
    ///
    /// # Errors
    /// The worker does not respond in time, or has ended.
    pub(crate) fn request<R>(
        &self,
        worker: &Arc<WorkerChannel>,
        command: impl FnOnce(Sender<R>) -> Command,
    ) -> Result<R, PlaneError> {
        let limit = self.0.wait_limits.command_wait_max;
        if worker.is_blocked(limit) {
            return Err(PlaneError::NoResponse(worker.id));
        }
        let (reply, answer) = channel();
        worker.send(command(reply));
        self.wait_for_worker(worker, &answer, limit)
    }

    /// Waits until a worker has executed all earlier commands. Returns an error if it does not
    /// respond in time.
    pub(crate) fn check_responding(&self, worker: &Arc<WorkerChannel>) -> Result<(), PlaneError> {
        // The worker drops the sender, which disconnects the channel. If the worker has ended, the
        // next command detects that.
        match self.request(worker, Command::Sync) {
            Err(PlaneError::NoResponse(worker)) => Err(PlaneError::NoResponse(worker)),
            _ => Ok(()),
        }
    }

    /// Passes a value to a worker with a command and waits for the reply. If the worker does not
    /// take the value in time, the value is taken back. Sends nothing to a worker that counts as
    /// blocked.
    pub(crate) fn pass_value<T: Send, R>(
        &self,
        worker: &Arc<WorkerChannel>,
        value: T,
        command: impl FnOnce(RevocableValue<T>, Sender<R>) -> Command,
    ) -> PassResult<T, R> {
        if worker.is_blocked(self.0.wait_limits.command_wait_max) {
            return PassResult::Returned(PlaneError::NoResponse(worker.id), value);
        }
        let (error, late_reply) = match self.offer(worker, value, command) {
            Ok(reply) => return PassResult::Replied(reply),
            Err(late_reply) => late_reply,
        };
        match late_reply.offer.take() {
            Some(value) => PassResult::Returned(error, value),
            // A worker that has just taken the value replies at once, unless it blocks while using
            // the value.
            None => match self
                .0
                .wait_limits
                .receive(&late_reply.answer, self.0.wait_limits.taken_reply_wait_max)
            {
                Ok(reply) => PassResult::Replied(reply),
                Err(_) => PassResult::Late(error, late_reply),
            },
        }
    }

    /// Passes a value to a worker as [`StoragePlane::pass_value`] does, but leaves it there if the
    /// worker does not respond: the worker takes it when it proceeds. The value is returned only if
    /// the worker has ended.
    pub(crate) fn pass_value_irrevocably<T: Send, R>(
        &self,
        worker: &Arc<WorkerChannel>,
        value: T,
        command: impl FnOnce(RevocableValue<T>, Sender<R>) -> Command,
    ) -> PassResult<T, R> {
        match self.offer(worker, value, command) {
            Ok(reply) => PassResult::Replied(reply),
            Err((error @ PlaneError::NoResponse(_), late_reply)) => {
                PassResult::Late(error, late_reply)
            }
            Err((error, late_reply)) => match late_reply.offer.take() {
                Some(value) => PassResult::Returned(error, value),
                None => PassResult::Late(error, late_reply),
            },
        }
    }

    fn offer<T: Send, R>(
        &self,
        worker: &Arc<WorkerChannel>,
        value: T,
        command: impl FnOnce(RevocableValue<T>, Sender<R>) -> Command,
    ) -> Result<R, (PlaneError, LateReply<T, R>)> {
        let (reply, answer) = channel();
        let offer = RevocableValue::new(value);
        worker.send(command(offer.clone(), reply));
        let limit = self
            .0
            .wait_limits
            .command_wait_max
            .saturating_sub(self.0.wait_limits.taken_reply_wait_max);
        self.wait_for_worker(worker, &answer, limit)
            .map_err(|error| (error, LateReply { offer, answer }))
    }

    /// Blocks until a worker replies, for up to `limit`, minus the time for which the worker has
    /// not replied to an earlier request.
    fn wait_for_worker<R>(
        &self,
        worker: &Arc<WorkerChannel>,
        answer: &Receiver<R>,
        limit: Duration,
    ) -> Result<R, PlaneError> {
        let mut probe = None;
        let remaining = limit.saturating_sub(worker.overdue_for());
        let received = self.0.wait_limits.receive_with_delay_hook(answer, remaining, || {
            probe = Some(self.begin_responsiveness_check());
        });
        match received {
            Ok(reply) => Ok(reply),
            Err(RecvTimeoutError::Disconnected) => Err(PlaneError::NoWorker),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(probe) = probe {
                    probe.end(Some(worker));
                }
                Err(PlaneError::NoResponse(worker.id))
            }
        }
    }
}
