//! Cluster membership: division of the capacity of shared stores between nodes.
//!
//! `suimon-cluster-qos` contains the policy. This module executes it in two threads. Neither the
//! control thread nor workers ever block on them.
//!
//! - [`driver`]: decision thread. It drives a [`Member`](suimon_cluster_qos::Member) for each
//!   shared store and, where this node is the elected leader, an
//!   [`Allocator`](suimon_cluster_qos::Allocator). The driver never waits for etcd: it receives
//!   results through the [`inbox`] and passes requests to the worker.
//! - [`worker`]: thread that performs the blocking calls to etcd. [`session`]: the node's session
//!   in etcd.
//! - [`keys`]: keys and values in etcd. [`records`]: records in the state store of this host.
//! - [`shared_store`]: state of one shared store. [`loads`]: load of its disks. [`identity`]: check
//!   that the store belongs to the cluster. [`heartbeat`]: heartbeats that nodes write to the
//!   store.
//! - [`status`]: status in the API's types. [`events`]: events. [`leaving`]: checks of changes, and
//!   return of reservations before the host leaves; [`releasing`]: return of reservations on stores
//!   that a change stops sharing.
//! - [`policies`]: QoS policies of the cluster; [`policy_changes`]: their changes.
//!   [`reservation_requests`]: reservation of minimums before disks get them. [`minimums`]:
//!   minimums in effect.
//!
//! Invariants
//! - A limit is in effect on all workers before the node reports it, and data that must survive a
//!   restart is durable before the report.
//! - Regardless of the state of etcd, leased limits expire by the workers' own clock.

mod connector;
mod driver;
mod elected;
mod encoding;
mod events;
mod heartbeat;
mod identity;
mod inbox;
mod keys;
mod leaving;
mod loads;
mod messages;
pub(crate) mod minimums;
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
mod worker;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use self::connector::{CLUSTER_TIMEOUT, ClusterStoreConnector, cluster_prefix};
use self::inbox::Inbox;
pub(crate) use self::minimums::{Minimums, disk_minimum_key, policy_minimum_key};
pub(crate) use self::sharing::shared_stores;
use self::status::PublishedClusterStatus;

/// Cluster state of the node.
pub(crate) struct Cluster {
    stores: Arc<dyn ClusterStoreConnector>,
    inbox: Arc<Inbox>,
    view: Mutex<PublishedClusterStatus>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// True while a change is checked with the cluster's etcd and made there, before it is queued
    /// on this host. Only one change at a time is in this state, because each is derived from the
    /// one before.
    changing: Mutex<bool>,
    changed: Condvar,
}

/// Guard of the change that is made in the cluster's etcd and not queued on this host yet. Dropping
/// it permits the next change.
pub(crate) struct ChangeGuard<'a>(&'a Cluster);

impl Drop for ChangeGuard<'_> {
    fn drop(&mut self) {
        *self.0.changing() = false;
        self.0.changed.notify_one();
    }
}

impl Cluster {
    pub(crate) fn new(stores: Arc<dyn ClusterStoreConnector>) -> Self {
        let (inbox, view) = (Arc::default(), Mutex::default());
        let (threads, changing, changed) = Default::default();
        Self { stores, inbox, view, threads, changing, changed }
    }

    /// Begins a change of the desired state of a cluster node. The cluster's policies are not
    /// adopted into the desired state while the returned guard exists. If another change has the
    /// guard, blocks up to `limit` until it is dropped, and returns `None` if it is not.
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
mod member_limit_tests;
#[cfg(test)]
mod tests;
