//! Stores that a change stops sharing: reservations are given back, and the node's records of the
//! store are removed from the cluster, before the change is made.

mod requests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use suimon_contract::{HostConfig, Name};

use super::shared_stores;

/// Maximum time for giving back reservations.
pub(super) const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the change checks whether the reservations are given back.
pub(super) const RELEASE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Progress of giving back what is reserved on a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReleasePhase {
    /// The store stays shared; no reservation is given back.
    #[default]
    None,
    /// Reports contain no disks, so that the leader reduces the reservation to 0.
    ReturningReservation,
    /// The node's report and grant are being removed.
    RemovingRecords,
    /// The node has no records of the store in the cluster.
    RecordsRemoved,
}

impl ReleasePhase {
    /// Returns true if the node must not write reports on the store: they would recreate the record
    /// that is being removed.
    pub(super) const fn suppresses_reports(self) -> bool {
        matches!(self, Self::RemovingRecords | Self::RecordsRemoved)
    }
}

/// Request to give back the reservations on stores before a change stops sharing them. Clones share
/// the result.
#[derive(Clone, Debug, Default)]
pub(super) struct ReleaseRequest {
    pub(super) stores: BTreeSet<Name>,
    is_done: Arc<AtomicBool>,
}

impl ReleaseRequest {
    pub(super) fn finish(&self) {
        self.is_done.store(true, Ordering::Release);
    }

    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }
}

/// Returns the shared stores that a change deletes or stops sharing.
pub(super) fn unshared_stores(from: &HostConfig, to: &HostConfig) -> BTreeSet<Name> {
    let remaining = shared_stores(to);
    let removed = shared_stores(from).into_keys().filter(|name| !remaining.contains_key(*name));
    removed.cloned().collect()
}
