//! The cluster: what this host may ask of stores that other nodes use, too.
//!
//! How a store is divided is `suimon-cluster-qos`'s. Here it is carried out, by two threads that the
//! control thread and processors never wait for:
//!
//! - [`driver`]: the thread that drives a [`Member`](suimon_cluster_qos::Member) for each shared store and,
//!   where this node was elected, its [`Allocator`](suimon_cluster_qos::Allocator). It never waits for
//!   etcd: what it hears is in the [`inbox`], what it wants done goes to the worker.
//! - [`worker`]: the thread that calls the cluster's store, and waits for it. [`session`]: what it has there.
//! - [`keys`]: what is kept in the cluster's store, and where. [`records`]: what is kept on this host.
//! - [`shared_store`]: one store. [`loads`]: what its disks do. [`identity`]: whether it is the cluster's.
//!   [`beats`]: what nodes write on it.
//! - [`status`]: how it stands. [`told`]: the events. [`leaving`]: giving back what is reserved;
//!   [`releasing`]: of stores that are not shared any more.
//! - [`policies`]: QoS policies that are the cluster's. [`policy_changes`]: their changes. [`asking`]: minimums that are asked for before
//!   disks have them. [`covered`]: those that are in effect.
//!
//! A cap is in effect on all processors before it is said that it is, and what is to be kept is durable
//! before. Whatever the cluster's store does, a cap that was lent ends by the processors' own clock.

mod asking;
mod beats;
mod covered;
mod driver;
mod identity;
mod inbox;
mod keys;
mod leaving;
mod loads;
mod policies;
mod policy_changes;
mod records;
mod releasing;
mod session;
mod shared_store;
mod status;
mod told;
mod worker;

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use suimon_contract::{ApiError, ClusterConfig, HostConfig, Name, StoreConfig};
use suimon_ports::ClusterStore;

pub(crate) use self::covered::{Minimums, of_disk, of_policy};
use self::inbox::Inbox;
use self::status::View;
use crate::control::Command;
use crate::shared::Shared;

/// How long a call of the cluster's store may wait at most. Shorter than a lease, so that one that
/// hangs does not cost two.
pub const CLUSTER_PATIENCE: Duration = Duration::from_millis(1500);

/// What all keys of a cluster begin with.
#[must_use]
pub fn cluster_prefix(cluster: &Name) -> String {
    format!("/suimon/{cluster}/")
}

/// Knows how to reach clusters' stores.
pub trait ClusterStores: Send + Sync {
    /// Connects to that of a cluster: calls wait [`CLUSTER_PATIENCE`] at most, all keys begin with
    /// [`cluster_prefix`]. Waits until it has answered once.
    ///
    /// # Errors
    /// It does not answer, or lets nobody in.
    fn connect(&self, config: &ClusterConfig) -> Result<Arc<dyn ClusterStore>, ApiError>;
}

/// The cluster as the node sees it.
pub(crate) struct Cluster {
    stores: Arc<dyn ClusterStores>,
    inbox: Arc<Inbox>,
    view: Mutex<View>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// True while a change is checked with the cluster's etcd and made there, before it is queued
    /// on this host. One at a time, because each is derived from the state before.
    changing: Mutex<bool>,
    changed: Condvar,
}

/// Change that is made in the cluster's etcd and not queued on this host yet.
pub(crate) struct Changing<'a>(&'a Cluster);

impl Drop for Changing<'_> {
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

    /// Begins a change of a node of a cluster. Waits at most `patience` for another one; `None` if
    /// that is not queued by then. Policies of the cluster are not adopted until the result is
    /// dropped.
    pub(crate) fn begin_change(&self, patience: Duration) -> Option<Changing<'_>> {
        let waited = self.changed.wait_timeout_while(self.changing(), patience, |other| *other);
        let (mut is_changing, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_free = !std::mem::replace(&mut *is_changing, true);
        is_free.then(|| Changing(self))
    }

    fn is_changing(&self) -> bool {
        *self.changing()
    }

    fn changing(&self) -> MutexGuard<'_, bool> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Starts the cluster's threads.
    pub(crate) fn start_cluster(
        self: &Arc<Self>,
        commands: SyncSender<Command>,
    ) -> std::io::Result<()> {
        let (driver, worker) = driver::start(self, commands)?;
        self.cluster.threads().extend([driver, worker]);
        Ok(())
    }

    /// Desired state is another one.
    pub(crate) fn follow_cluster(&self) {
        self.cluster.inbox.look();
    }

    /// Ends the cluster's threads. What is lent to this host ends with their lease.
    pub(crate) fn stop_cluster(&self) {
        self.cluster.inbox.stop();
        for thread in std::mem::take(&mut *self.cluster.threads()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the cluster had died of a defect");
            }
        }
    }
}

/// The stores that nodes share, by name; none without a cluster.
pub(crate) fn shared_stores(config: &HostConfig) -> BTreeMap<&Name, &StoreConfig> {
    let is_shared = |store: &&StoreConfig| config.cluster.is_some() && store.shared;
    config.stores.iter().filter(is_shared).map(|store| (&store.name, store)).collect()
}

#[cfg(test)]
mod changes_tests;
#[cfg(test)]
mod tests;
