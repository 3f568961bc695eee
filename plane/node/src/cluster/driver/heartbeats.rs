//! Heartbeats on shared stores.

use std::sync::Arc;
use std::thread::Builder;

use suimon_cluster_qos::{AllocatorEvent, ExternalUser};
use suimon_contract::Name;
use suimon_quantity::Time;

use super::{Driver, Link};
use crate::cluster::heartbeat::{self, HEARTBEAT_INTERVAL, Heartbeat};
use crate::cluster::messages::TaskResult;
use crate::cluster::shared_stores;

impl Driver {
    /// Writes heartbeats that are due, in a thread per store, because file systems may block.
    pub(super) fn write_heartbeats(&mut self, now: Time) {
        let Some(config) = self.config.clone() else { return };
        let desired = self.shared.desired();
        let specs = shared_stores(&desired.config);
        for (name, store) in &mut self.stores {
            let is_due = !store.is_heartbeat_write_running && store.next_heartbeat_at <= now;
            let Some(spec) = specs.get(name).filter(|_| is_due && store.writes_heartbeats()) else {
                continue;
            };
            self.heartbeats += 1;
            store.is_heartbeat_write_running = true;
            let own_heartbeat = Heartbeat {
                cluster: config.name.clone(),
                node: config.node.clone(),
                incarnation: self.incarnation,
                sequence_number: self.heartbeats,
                delivered_iops: store.delivered_iops,
                reserved_iops: store.cap().reserved_iops,
            };
            let shared = Arc::clone(&self.shared);
            let (name, path) = (name.clone(), spec.path.clone());
            let write = move || {
                let result = shared.disks.query_store(&path, move |files| {
                    heartbeat::exchange_heartbeats(files, &own_heartbeat)
                });
                let heartbeats = result.map_err(|error| error.to_string());
                let heartbeats =
                    heartbeats.and_then(|heartbeats| heartbeats.map_err(|error| error.to_string()));
                shared.cluster.inbox.push_result_any_session(TaskResult::HeartbeatWritten {
                    store: name,
                    heartbeats,
                });
            };
            if let Err(error) = Builder::new().name("suimon-beat".to_owned()).spawn(write) {
                tracing::warn!(%error, "cannot write the heartbeat to a store");
                (store.is_heartbeat_write_running, store.next_heartbeat_at) =
                    (false, now + HEARTBEAT_INTERVAL);
            }
        }
    }

    /// Processes the heartbeats of other nodes on a store.
    pub(super) fn handle_heartbeats(
        &mut self,
        now: Time,
        name: &Name,
        heartbeats: Result<Vec<Heartbeat>, String>,
    ) {
        let is_up = matches!(self.link, Link::Up { .. });
        let Some(cluster) = self.config.as_ref().map(|cluster_config| &cluster_config.name) else {
            return;
        };
        let Some(store) = self.stores.get_mut(name) else { return };
        (store.is_heartbeat_write_running, store.next_heartbeat_at) =
            (false, now + HEARTBEAT_INTERVAL);
        match heartbeats {
            Ok(heartbeats) => store.heartbeats.handle(now, heartbeats),
            Err(error) => {
                tracing::debug!(
                    store = %name,
                    error,
                    "cannot read heartbeats of other nodes from a store"
                );
                return;
            }
        }
        let is_member = |heartbeat: &Heartbeat| {
            heartbeat.cluster == *cluster
                && (!is_up || self.members.contains_key(heartbeat.node.as_str()))
        };
        let external_users: Vec<ExternalUser> = store
            .heartbeats
            .alive(now)
            .filter(|(heartbeat, _)| !is_member(heartbeat))
            .map(|(heartbeat, _)| ExternalUser {
                name: format!("node {} of cluster {}", heartbeat.node, heartbeat.cluster),
                delivered_iops: heartbeat.delivered_iops,
            })
            .collect();
        for external_user in external_users {
            store.handle_allocator_event(
                now,
                AllocatorEvent::ExternalUserDetected { external_user },
            );
        }
    }

    /// Removes this node's heartbeats from its stores, in a thread per store.
    pub(super) fn remove_heartbeats(&self) {
        let Some(config) = self.config.clone() else { return };
        let desired = self.shared.desired();
        for spec in shared_stores(&desired.config).into_values() {
            let own_heartbeat = Heartbeat {
                cluster: config.name.clone(),
                node: config.node.clone(),
                incarnation: self.incarnation,
                sequence_number: self.heartbeats,
                delivered_iops: 0,
                reserved_iops: 0,
            };
            let (shared, path) = (Arc::clone(&self.shared), spec.path.clone());
            let end = move || {
                let result = shared.disks.query_store(&path, move |files| {
                    heartbeat::remove_heartbeat(files, &own_heartbeat)
                });
                if !matches!(result, Ok(Ok(()))) {
                    tracing::debug!(
                        store = %path.display(),
                        "cannot remove the former heartbeat file from a store"
                    );
                }
            };
            let _ = Builder::new().name("suimon-beat".to_owned()).spawn(end);
        }
    }
}
