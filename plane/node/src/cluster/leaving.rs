//! Checks and preparations of changes of the cluster: joining, and leaving after reservations were
//! given back.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ClusterConfig, ErrorCode, HostConfig, Name};
use suimon_ports::{ClusterChange, ClusterCommit, ClusterCondition, ClusterStoreError};

use super::keys::{ALIVE, MEMBERS, MemberRecord, REPORTS, report_of};
use super::session::read;
use super::{cluster_prefix, shared_stores};
use crate::edit::no_cluster;
use crate::shared::Shared;
use crate::{ClusterEdit, Edit};

/// Maximum time for giving back reservations.
const GIVING_BACK: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

fn about(code: ErrorCode, text: impl Into<String>) -> ApiError {
    ApiError::new(code, text).about("cluster")
}

impl Shared {
    /// Checks a change of the cluster as far as possible without blocking. Returns the errors.
    pub(crate) fn check_cluster(
        &self,
        from: &HostConfig,
        to: &HostConfig,
        force: bool,
    ) -> Vec<ApiError> {
        let Some(before) = &from.cluster else { return Vec::new() };
        let Some(after) = &to.cluster else {
            let stores = shared_stores(from);
            let used = from.disks.iter().filter(|disk| stores.contains_key(&disk.store));
            let used: Vec<String> = used.map(|disk| format!("disk/{}", disk.name)).collect();
            if used.is_empty() || force {
                return Vec::new();
            }
            let text = format!(
                "{} would load a store of the cluster's nodes without limit; move or delete these \
                 disks first, or leave with --force",
                used.join(", ")
            );
            return vec![about(ErrorCode::InUse, text)];
        };
        let mut errors = Vec::new();
        let mut refuse = |field, had: &Name, has: &Name| {
            if had != has {
                let text = format!(
                    "is `{had}`; leave that cluster first (`suimon cluster leave`), which \
                     releases this host's reservations"
                );
                errors.push(about(ErrorCode::InUse, text).field(field));
            }
        };
        refuse("name", &before.name, &after.name);
        refuse("node", &before.node, &after.node);
        errors
    }

    /// Prepares a change of the cluster, and blocks meanwhile: etcd must respond if the host joins;
    /// reservations must be given back if it leaves; shared policies are written to the cluster.
    ///
    /// # Errors
    /// Fails if the preparation fails. With `force`, failures of joining and leaving are ignored.
    pub(crate) fn prepare_cluster(
        &self,
        edit: &Edit,
        from: &HostConfig,
        to: &HostConfig,
        force: bool,
    ) -> Result<(), ApiError> {
        if let Edit::Cluster(ClusterEdit::Init(config)) = edit {
            return self.check_is_new(config);
        }
        match (&from.cluster, &to.cluster) {
            (Some(_), None) => {
                self.give_back().or_else(|error| if force { Ok(()) } else { Err(error) })
            }
            (Some(before), Some(after)) if before == after => self.prepare_policies(from, to),
            (_, Some(after)) if !force => self.cluster.stores.connect(after).map(drop),
            _ => Ok(()),
        }
    }

    /// Checks that a cluster does not exist.
    fn check_is_new(&self, config: &ClusterConfig) -> Result<(), ApiError> {
        let store = self.cluster.stores.connect(config)?;
        let members = format!("{}{MEMBERS}", cluster_prefix(&config.name));
        let failed = |error: ClusterStoreError| about(ErrorCode::HostError, error.to_string());
        let view = store.read(&members).map_err(failed)?;
        let nodes = view.entries.iter().filter_map(|entry| entry.key.strip_prefix(&members));
        let nodes: Vec<&str> = nodes.collect();
        if nodes.is_empty() {
            return Ok(());
        }
        let text = format!(
            "etcd already has cluster `{}`, with node {}; join it (`suimon cluster join`), or \
             give the new cluster another name",
            config.name,
            nodes.join(", ")
        );
        Err(about(ErrorCode::AlreadyExists, text))
    }

    fn give_back(&self) -> Result<(), ApiError> {
        self.cluster.view().has_left = false;
        self.cluster.inbox.leave();
        let deadline = Instant::now() + GIVING_BACK;
        while Instant::now() < deadline {
            if self.cluster.view().has_left {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        self.cluster.inbox.stay();
        let text = "the reservations of this host were not released in time; retry when etcd and the leaders respond (`suimon cluster status`), or leave with --force and run `suimon cluster remove` on another node";
        Err(about(ErrorCode::HostError, text))
    }

    /// Removes a node that is permanently gone from the cluster, and thereby its reservations.
    ///
    /// # Errors
    /// Fails if there is no such node, the node is alive, or the cluster does not respond.
    pub(crate) fn remove_cluster_node(&self, node: &str) -> Result<(), ApiError> {
        let refused = |text: String| about(ErrorCode::HostError, text);
        let desired = self.desired();
        let cluster = desired.config.cluster.as_ref();
        let cluster = cluster.ok_or_else(no_cluster)?;
        let store = self.cluster.view().store.clone();
        let store = store.ok_or_else(|| {
            refused("etcd does not respond; `suimon cluster status` shows the reason".to_owned())
        })?;
        let root = cluster_prefix(&cluster.name);
        let failed = |error: ClusterStoreError| refused(error.to_string());
        let key = format!("{root}{MEMBERS}{node}");
        let found = store.read(&key).map_err(failed)?;
        let found = found.entries.into_iter().find(|entry| entry.key == key);
        let Some(found) = found else {
            let text = format!(
                "the cluster has no node `{node}`; `suimon cluster status` lists its nodes"
            );
            return Err(about(ErrorCode::NotFound, text));
        };
        let alive = format!("{root}{ALIVE}{node}");
        let conditions = [
            ClusterCondition::Unmodified(key.clone(), found.modified),
            ClusterCondition::Absent(alive),
        ];
        let mut changes = vec![ClusterChange::Remove(key)];
        if let Some(member) = read::<MemberRecord>(&found) {
            let reports = store.read(&format!("{root}{REPORTS}")).map_err(failed)?.entries;
            let of_it = reports.into_iter().filter(|entry| {
                let short = entry.key.strip_prefix(&root).and_then(report_of);
                short.is_some_and(|(_, of)| of == member.id)
            });
            changes.extend(of_it.map(|entry| ClusterChange::Remove(entry.key)));
            changes.truncate(store.changes_max() - conditions.len());
        }
        match store.commit(&conditions, &changes).map_err(failed)? {
            ClusterCommit::Made(_) => Ok(()),
            ClusterCommit::ConditionFailed => {
                let text = format!(
                    "node `{node}` is running; run `suimon cluster leave` there, or shut it down \
                     first"
                );
                Err(about(ErrorCode::InUse, text))
            }
        }
    }
}
