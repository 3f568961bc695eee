//! Configured cluster and shared stores.

use suimon_cluster_qos::SharedStoreCapacity;
use suimon_contract::{ClusterConfig, Name};
use suimon_storage_qos as local;

use super::{Driver, Link};
use crate::cluster::keys::MemberRecord;
use crate::cluster::messages::Task;
use crate::cluster::minimums::Minimums;
use crate::cluster::records::{
    load_durable_state, load_minimums_in_effect, remove_other_clusters, save_minimums_in_effect,
};
use crate::cluster::releasing::ReleasePhase;
use crate::cluster::shared_store::SharedStore;
use crate::cluster::shared_stores;
use crate::disks::capacity;

impl Driver {
    /// Applies the desired state: the cluster, and its shared stores.
    pub(super) fn apply_desired_state(&mut self) {
        let (now, desired) = (self.now(), self.shared.desired());
        let config = &desired.config;
        if config.cluster != self.config {
            self.change_cluster(config.cluster.clone());
        }
        let shared = shared_stores(config);
        // A store that was deleted and created again has another id.
        let disks = &self.shared.disks;
        let is_removed = |(name, store): &(&Name, &SharedStore)| {
            !shared.contains_key(*name) || store.id != disks.store_id(name)
        };
        let removed: Vec<Name> =
            self.stores.iter().filter(is_removed).map(|(name, _)| name.clone()).collect();
        for name in removed {
            if let Some(store) = self.stores.remove(&name) {
                self.shared.disks.dependencies.plane.set_cap(store.id, None);
                self.remove_minimums(&name);
                if let Some(term) = store.leader_term() {
                    // As the leader, this node may have written its own grant once more after it
                    // gave the reservation back. The next leader would wait for its reports.
                    self.tasks.push(self.session, Task::Withdraw { store: name.clone() });
                    let task = Task::Resign { store: name.clone(), term };
                    self.tasks.push(self.session, task);
                }
                // Not given back before the change, which was made with --force.
                if store.release != ReleasePhase::RecordsRemoved {
                    self.withdrawals.insert(name);
                }
            }
        }
        let measured = self.shared.disks.measurements();
        for (name, spec) in shared {
            let Some(cluster) = &self.config else { return };
            if !self.stores.contains_key(name) {
                let durable = load_durable_state(self.shared.store.as_ref(), &cluster.name, name);
                let durable = durable.unwrap_or_else(|error| {
                    tracing::error!(store = %name, %error, "cannot read the saved reservations");
                    Default::default()
                });
                let id = self.shared.disks.store_id(name);
                let covered =
                    load_minimums_in_effect(self.shared.store.as_ref(), &cluster.name, name);
                let covered = covered.unwrap_or_else(|error| {
                    tracing::error!(
                        store = %name,
                        %error,
                        "cannot read which minimums are reserved"
                    );
                    Default::default()
                });
                self.shared.disks.set_minimums_in_effect(name, covered.clone());
                self.needs_limits = true;
                let sink = self.shared.recording.clone();
                let mut store = SharedStore::new(now, (name.clone(), id), (durable, covered), sink);
                if let (Link::Up { .. }, Some(own_record)) = (&self.link, self.own_record()) {
                    store.begin_membership(now, own_record.id, own_record.incarnation);
                }
                self.withdrawals.remove(name);
                self.stores.insert(name.clone(), store);
            }
            let Some(store) = self.stores.get_mut(name) else { continue };
            store.normalization_bytes = spec.normalization_bytes.bytes();
            store.capacity = match capacity(spec, &measured) {
                local::Capacity::Declared(iops) => Some(SharedStoreCapacity::Declared(iops)),
                local::Capacity::Measured(iops) => Some(SharedStoreCapacity::Measured(iops)),
                local::Capacity::Unknown => None,
            };
            store.update_capacity(now);
        }
        self.sampled_at = None;
        self.schedule_policy_adoption();
    }

    /// Changes the cluster, or the connection to it. Begins a new session.
    pub(super) fn change_cluster(&mut self, config: Option<ClusterConfig>) {
        let is_same = self
            .config
            .as_ref()
            .map(|cluster_config| (&cluster_config.name, &cluster_config.node))
            == config.as_ref().map(|cluster_config| (&cluster_config.name, &cluster_config.node));
        if !is_same {
            self.report_leaving();
            for store in std::mem::take(&mut self.stores).into_values() {
                self.shared.disks.dependencies.plane.set_cap(store.id, None);
            }
            self.withdrawals.clear();
        }
        self.begin_session();
        self.tasks.push(self.session, Task::EndSession);
        self.link = match &config {
            Some(_) => Link::Trying { at: Some(self.now()) },
            None => Link::None,
        };
        (self.config, self.refused) = (config, None);
        (self.is_leaving, self.has_left) = (false, false);
        if !is_same {
            self.remove_former_records();
            self.load_policies();
        }
        self.is_reachable = true;
    }

    /// Removes the records of clusters that the host has left. A failed removal is repeated at the
    /// next start of the daemon.
    pub(super) fn remove_former_records(&self) {
        let current = self.config.as_ref().map(|config| &config.name);
        if let Err(error) = remove_other_clusters(self.shared.store.as_ref(), current) {
            tracing::warn!(%error, "cannot remove the records of a former cluster");
        }
    }

    /// Removes the minimums in effect of a store that is not shared any more.
    fn remove_minimums(&self, store: &Name) {
        let Some(cluster) = self.config.as_ref().map(|config| &config.name) else { return };
        let state = self.shared.store.as_ref();
        if let Err(error) = save_minimums_in_effect(state, cluster, store, &Minimums::new()) {
            tracing::warn!(%store, %error, "cannot remove the minimums of a store");
        }
    }

    pub(super) fn own_record(&self) -> Option<&MemberRecord> {
        self.members.get(self.config.as_ref()?.node.as_str())
    }
}
