//! Table of requests in flight, in which callers wait for replies.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use suimon_nbd::StatusExtent;
use suimon_ports::DiskClientError;

use crate::received::ReceivedRanges;

/// Request in flight and the part of its reply received so far.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// Offset of the first byte in the disk.
    pub(crate) offset: u64,
    /// Data of a read; its length is the requested length. Empty while the reply thread fills it.
    pub(crate) bytes: Vec<u8>,
    /// Ranges of `bytes` that were received. The other bytes may be those of a former read.
    pub(crate) received: ReceivedRanges,
    /// Number of chunks of the reply that were received.
    pub(crate) received_chunks: u32,
    /// Allocation of the requested range, as far as the server has reported it.
    pub(crate) extents: Vec<StatusExtent>,
    /// Error text if the request failed.
    pub(crate) failure: Option<String>,
    /// True once the reply is complete.
    pub(crate) is_complete: bool,
}

/// Requests in flight of a connection, by cookie.
#[derive(Default)]
pub(crate) struct InFlight {
    entries: Mutex<Entries>,
    reply_completed: Condvar,
}

#[derive(Default)]
pub(crate) struct Entries {
    next: u64,
    pub(crate) requests: BTreeMap<u64, Request>,
    /// Reason why the connection has ended; `None` while it is open.
    end_reason: Option<String>,
}

impl InFlight {
    /// Registers a request that is about to be sent. Returns its cookie.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn register(&self, request: Request) -> Result<u64, DiskClientError> {
        let mut entries = self.lock();
        if let Some(reason) = &entries.end_reason {
            return Err(DiskClientError::Disconnected(reason.clone()));
        }
        let cookie = entries.next;
        entries.next = cookie.wrapping_add(1);
        entries.requests.insert(cookie, request);
        Ok(cookie)
    }

    /// Blocks until the reply to a request is complete.
    ///
    /// # Errors
    /// The server rejected the request, or the connection has ended.
    pub(crate) fn wait(&self, cookie: u64) -> Result<Request, DiskClientError> {
        let mut entries = self.lock();
        loop {
            let is_answered =
                entries.requests.get(&cookie).is_some_and(|request| request.is_complete);
            if is_answered {
                let request = entries.requests.remove(&cookie).unwrap_or_default();
                return match request.failure {
                    Some(reason) => Err(DiskClientError::RequestFailed(reason)),
                    None => Ok(request),
                };
            }
            if let Some(reason) = entries.end_reason.clone() {
                entries.requests.remove(&cookie);
                return Err(DiskClientError::Disconnected(reason));
            }
            entries = self.reply_completed.wait(entries).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes all waiting callers. Called after a reply is complete.
    pub(crate) fn wake_callers(&self) {
        self.reply_completed.notify_all();
    }

    /// Records the first reason why the connection has ended, and wakes all callers.
    pub(crate) fn end(&self, reason: &str) {
        self.lock().end_reason.get_or_insert_with(|| reason.to_owned());
        self.reply_completed.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
