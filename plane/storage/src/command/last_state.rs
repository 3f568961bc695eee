//! Last known state of the disks and stores of one worker.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;

use suimon_storage_engine::SharedBudget;

use crate::worker::snapshot::WorkerSnapshot;

/// Last state that a worker has reported, and its outstanding replies.
#[derive(Default)]
pub(crate) struct LastState {
    pub(crate) snapshot: WorkerSnapshot,
    /// Channel for the reply to a status query that ended without it. Until the reply arrives, no
    /// further query is sent to the worker, so that the number of its commands is bounded.
    pub(crate) outstanding_query: Option<Receiver<WorkerSnapshot>>,
    /// Channel for the reply to a [`Command::Sync`](crate::command::Command::Sync) that the control
    /// plane no longer waits for.
    pub(crate) outstanding_sync: Option<Receiver<()>>,
    /// Channel for the reply to a request for the scheduler of a store that the worker uses alone.
    /// A reply that arrives later is dropped; the worker has then remained the only user.
    pub(crate) outstanding_share: Option<Receiver<SharedBudget>>,
    /// Time at which the oldest request without a reply was sent, as of the last
    /// [`LastState::poll_overdue`].
    late_since: Option<Instant>,
}

impl LastState {
    /// Records that a request sent at this time has had no reply in time.
    pub(crate) fn record_overdue(&mut self, sent: Instant) {
        self.late_since.get_or_insert(sent);
    }

    /// Returns the time at which the oldest request without a reply was sent; `None` if the worker
    /// has replied to all.
    pub(crate) fn poll_overdue_since(&mut self) -> Option<Instant> {
        if self.poll_overdue() { self.late_since } else { None }
    }

    /// Processes replies that have arrived. Returns true if the worker has not replied to an
    /// earlier query, command or request.
    pub(crate) fn poll_overdue(&mut self) -> bool {
        match self.outstanding_sync.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return true,
            _ => self.outstanding_sync = None,
        }
        match self.outstanding_share.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return true,
            _ => self.outstanding_share = None,
        }
        match self.outstanding_query.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return true,
            Some(Ok(snapshot)) => self.snapshot = snapshot,
            Some(Err(TryRecvError::Disconnected)) | None => {}
        }
        (self.outstanding_query, self.late_since) = (None, None);
        false
    }

    /// Returns the last known state, marked as not current.
    pub(crate) fn last_known_snapshot(&self) -> WorkerSnapshot {
        let mut snapshot = self.snapshot.clone();
        snapshot.disks.iter_mut().for_each(|view| view.is_current = false);
        snapshot.stores.iter_mut().for_each(|view| view.is_current = false);
        snapshot
    }
}
