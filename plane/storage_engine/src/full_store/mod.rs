//! State of a disk on a full store, and the waiting times of its requests.

mod moved_disks;
pub(crate) mod queueing;
#[cfg(test)]
mod queueing_tests;
#[cfg(test)]
mod scheduling_tests;

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::engine::notices::{SpaceChange, StorageNotice};
use crate::queue::QueueKind;

/// Time after which a disk without queued requests no longer counts as full, counted from the last
/// request or commit that found no space.
pub(crate) const FULL_STATE_TIMEOUT: Duration = Duration::from_secs(10);

/// Times for which requests are queued while their store has no space. With zero, such requests
/// fail at once.
///
/// Requests of a disk copy, and requests of a QEMU that pauses its VM, always fail at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullStorePolicy {
    /// Waiting time of requests of a VM's virtqueues; `None` if unlimited.
    pub ring_wait: Option<Duration>,
    /// Waiting time of requests of NBD clients.
    pub client_wait: Duration,
}

impl Default for FullStorePolicy {
    fn default() -> Self {
        Self::FAIL_AT_ONCE
    }
}

impl FullStorePolicy {
    /// Policy with which all requests fail at once.
    pub const FAIL_AT_ONCE: Self =
        Self { ring_wait: Some(Duration::ZERO), client_wait: Duration::ZERO };

    pub(crate) fn wait_time(&self, kind: QueueKind) -> Option<Duration> {
        match kind {
            QueueKind::Ring => self.ring_wait,
            QueueKind::Client => Some(self.client_wait),
            QueueKind::EmulatedDisk | QueueKind::Mirror => Some(Duration::ZERO),
        }
    }
}

/// State of a disk whose store is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullStoreView {
    /// Number of requests that are queued for space or being repeated.
    pub queued: usize,
    /// Time since a request or commit of the disk first found no space.
    pub full_for: Duration,
}

/// Requests of one disk for which its store has no space.
#[derive(Debug, Default)]
pub(crate) struct DiskFullState {
    pub(crate) policy: FullStorePolicy,
    /// Queued requests, in the order in which they will be repeated.
    pub(crate) queued: VecDeque<usize>,
    /// Number of requests that are being repeated.
    pub(crate) repeating: usize,
    /// Maximum number of requests repeated at a time: 1 until a repetition succeeds, then doubled
    /// by each success.
    pub(crate) window: usize,
    /// Time at which the store was first found full; `None` if it is not known to be full.
    pub(crate) since: Option<Time>,
    /// Time at which a request or a commit last found no space.
    pub(crate) last_no_space_at: Time,
    /// True if a repeated request has succeeded since `last_no_space_at`.
    pub(crate) has_space: bool,
    /// Time of the next repetition.
    pub(crate) repeat_at: Time,
    /// Time at which the first queued request expires, or an earlier time; `None` if none expires.
    pub(crate) expires: Option<Time>,
    /// Time before which no commit begins unless a request waits for it.
    pub(crate) commit_not_before: Time,
    /// True if queued requests go to the disk's next worker.
    pub(crate) is_moving: bool,
}

impl DiskFullState {
    /// Returns true if a commit that no request waits for is to be delayed, because it would
    /// probably find no space again.
    pub(crate) fn defers_commit(&self, now: Time) -> bool {
        self.since.is_some() && now < self.commit_not_before
    }

    /// Makes queued requests due for repetition now.
    pub(crate) fn repeat_at_once(&mut self, now: Time) {
        self.repeat_at = now;
    }

    pub(crate) fn record_no_space(&mut self, now: Time) {
        (self.last_no_space_at, self.has_space) = (now, false);
    }

    /// Records that a request that another worker has found the store full for is being executed
    /// here. `first`: time at which it first found no space. Returns true if the disk was not known
    /// to be full on this worker.
    pub(crate) fn record_previous_no_space(&mut self, first: Time, now: Time) -> bool {
        self.repeating += 1;
        let is_first = self.since.is_none();
        if is_first {
            self.record_no_space(now);
        }
        self.since = Some(self.since.map_or(first, |since| since.min(first)));
        is_first
    }

    /// Returns the notice that ends the full state of a disk that leaves the worker; `None` if it
    /// is not full, or if its queued requests move to the disk's next worker.
    pub(crate) fn end_notice(&self, disk: usize, now: Time) -> Option<StorageNotice> {
        let since = self.since.filter(|_| !self.is_moving)?;
        let change = SpaceChange::NoLongerObserved;
        Some(StorageNotice::DiskSpaceChange { disk, change, full_for: now.since(since) })
    }

    /// Returns the time of the next action for the full disk; `None` if it is not full.
    /// `is_served`: the disk is in service, so that requests can be repeated.
    pub(crate) fn deadline(&self, is_served: bool) -> Option<Time> {
        self.since?;
        let has_work = is_served && self.repeating == 0 && !self.queued.is_empty();
        let repeat = has_work.then_some(self.repeat_at);
        let ends = self.queued.is_empty() && self.repeating == 0;
        let end = ends.then(|| self.last_no_space_at + FULL_STATE_TIMEOUT);
        repeat.into_iter().chain(self.expires).chain(end).min()
    }
}
