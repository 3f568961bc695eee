//! Cluster membership: division of the capacity of shared stores between nodes.
//!
//! `suimon-cluster-qos` contains the policy. This module carries it out with two threads. Neither
//! the control thread nor workers ever block on them.
//!
//! - [`driver`]: decision thread. It drives a [`Member`](suimon_cluster_qos::Member) for each
//!   shared store and, where this node is the elected leader, an
//!   [`Allocator`](suimon_cluster_qos::Allocator). The driver never waits for etcd: it receives
//!   results through the [`inbox`] and passes requests to the worker.
//! - [`worker`]: thread that performs the blocking calls to the cluster's store. [`session`]: its
//!   session there.
//! - [`keys`]: keys and values in the cluster's store. [`records`]: records on this host.
//! - [`shared_store`]: state of one shared store. [`loads`]: load of its disks. [`identity`]: check
//!   that the store belongs to the cluster. [`beats`]: heartbeats that nodes write to the store.
//! - [`status`]: status in the API's types. [`told`]: events. [`leaving`]: return of reservations;
//!   [`releasing`]: of stores that are no longer shared.
//! - [`policies`]: QoS policies of the cluster; [`policy_changes`]: their changes. [`asking`]: reservation of minimums before disks
//!   get them. [`covered`]: minimums in effect.
//!
//! Invariants
//! - A limit is in effect on all workers before the node reports it, and data that must survive a
//!   restart is durable before the report.
//! - Regardless of the state of the cluster's store, leased limits expire by the workers' own
//!   clock.

mod connector;
mod covered;
mod driver;
mod elected;
mod events;
mod heartbeat;
mod identity;
mod inbox;
mod keys;
mod leaving;
mod loads;
mod messages;
mod policies;
mod policy_changes;
mod records;
mod releasing;
mod reservation_requests;
mod session;
mod shared_store;
mod sharing;
mod status;
mod threads;
mod values;
mod worker;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use self::connector::{CLUSTER_TIMEOUT, ClusterStores, cluster_prefix};
pub(crate) use self::covered::{Minimums, of_disk, of_policy};
use self::inbox::Inbox;
pub(crate) use self::sharing::shared_stores;
use self::status::PublishedClusterStatus;

/// Cluster state of the node.
pub(crate) struct Cluster {
    stores: Arc<dyn ClusterStores>,
    inbox: Arc<Inbox>,
    view: Mutex<PublishedClusterStatus>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// True while a change is checked with the cluster's etcd and made there, before it is queued
    /// on this host. One at a time, because each is derived from the state before.
    changing: Mutex<bool>,
    changed: Condvar,
}

/// Change that is made in the cluster's etcd and not queued on this host yet.
pub(crate) struct ChangeGuard<'a>(&'a Cluster);

impl Drop for ChangeGuard<'_> {
    fn drop(&mut self) {
        *self.0.changing() = false;
        self.0.changed.notify_one();
    }
}

impl Cluster {
    pub(crate) fn new(stores: Arc<dyn ClusterStores>) -> Self {
        let (inbox, view) = (Arc::default(), Mutex::default());
        let (threads, changing, changed) = Default::default();
        Self { stores, inbox, view, threads, changing, changed }
    }

    /// Begins a change of a cluster node, and suspends the adoption of the cluster's policies into
    /// the desired state while the returned guard exists. Waits at most `limit` until another change
    /// is queued; returns `None` if it is not by then.
    pub(crate) fn begin_change(&self, limit: Duration) -> Option<ChangeGuard<'_>> {
        let wait_result = self.changed.wait_timeout_while(self.changing(), limit, |other| *other);
        let (mut is_changing, _) = wait_result.unwrap_or_else(PoisonError::into_inner);
        let is_free = !std::mem::replace(&mut *is_changing, true);
        is_free.then(|| ChangeGuard(self))
    }

    fn is_changing(&self) -> bool {
        *self.changing()
    }

    fn changing(&self) -> MutexGuard<'_, bool> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> MutexGuard<'_, PublishedClusterStatus> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod changes_tests;
#[cfg(test)]
mod tests;
