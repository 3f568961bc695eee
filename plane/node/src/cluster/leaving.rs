//! Checks and preparations of changes of the cluster: joining, and leaving after reservations were
//! given back.

use std::collections::BTreeSet;
use std::time::Instant;

use suimon_contract::{ApiError, ClusterConfig, ErrorCode, HostConfig, Name};
use suimon_ports::{
    ClusterChange, ClusterCommitResult, ClusterCondition, ClusterEntry, ClusterKvStore,
    ClusterStoreError,
};

use super::encoding::decode_entry;
use super::keys::{
    ALIVE, GRANTS, MEMBERS, MemberRecord, REPORTS, grants_prefix, parse_grant_key, parse_report_key,
};
use super::policy_changes::PolicyChanges;
use super::releasing::{RELEASE_POLL_INTERVAL, RELEASE_TIMEOUT, unshared_stores};
use super::{cluster_prefix, shared_stores};
use crate::errors::no_cluster;
use crate::operations::OperationHandle;
use crate::shared::Shared;
use crate::{ClusterEdit, Edit};

fn cluster_error(code: ErrorCode, text: impl Into<String>) -> ApiError {
    ApiError::new(code, text).with_resource("cluster")
}

/// Returns the error for a store that a change stops sharing while it has disks.
fn unlimited(to: &HostConfig, store: &Name) -> Option<ApiError> {
    let disks = to.disks.iter().filter(|disk| disk.store == *store);
    let disks: Vec<String> = disks.map(|disk| format!("disk/{}", disk.name)).collect();
    let text = format!(
        "{} would load a store that the cluster's nodes share, without limit; move or delete them \
         first, or use `suimon store set {store} --shared=false --force`",
        disks.join(", ")
    );
    let error = ApiError::new(ErrorCode::InUse, text).with_resource(format!("store/{store}"));
    (!disks.is_empty()).then(|| error.with_field("shared"))
}

/// Makes changes in several transactions.
fn remove_all(
    store: &dyn ClusterKvStore,
    changes: &[ClusterChange],
) -> Result<(), ClusterStoreError> {
    for chunk in changes.chunks(store.changes_max().max(1)) {
        store.commit(&[], chunk)?;
    }
    Ok(())
}

/// Removes the reports and grants of node numbers without a member. Removes nothing while the
/// number of a member cannot be read. Returns true if there were any.
fn remove_left_records(store: &dyn ClusterKvStore, root: &str) -> Result<bool, ClusterStoreError> {
    let read_below = |prefix: &str| store.read(&format!("{root}{prefix}")).map(|view| view.entries);
    let (reports, grants) = (read_below(REPORTS)?, read_below(GRANTS)?);
    // Read last: a node becomes a member before it has reports and grants, and numbers are not
    // used again.
    let members = read_below(MEMBERS)?;
    let records = members.iter().map(decode_entry::<MemberRecord>);
    let Some(numbers) = records.map(|record| Some(record?.id.0)).collect::<Option<BTreeSet<u32>>>()
    else {
        return Ok(false);
    };
    let is_left = |entry: &ClusterEntry| {
        let short_key = entry.key.strip_prefix(root).unwrap_or_default();
        let node = parse_report_key(short_key).map(|(_, node)| node);
        let node = node.or_else(|| parse_grant_key(short_key).map(|(node, _)| node));
        node.is_some_and(|node| !numbers.contains(&node.0))
    };
    let left = reports.into_iter().chain(grants).filter(is_left);
    let changes: Vec<ClusterChange> = left.map(|entry| ClusterChange::Remove(entry.key)).collect();
    remove_all(store, &changes)?;
    Ok(!changes.is_empty())
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
            return vec![cluster_error(ErrorCode::InUse, text)];
        };
        let mut errors = Vec::new();
        let mut refuse = |field, own_name: &Name, new_name: &Name| {
            if own_name != new_name {
                let text = format!(
                    "is `{own_name}`; leave that cluster first (`suimon cluster leave`), which \
                     releases this host's reservations"
                );
                errors.push(cluster_error(ErrorCode::InUse, text).with_field(field));
            }
        };
        refuse("name", &before.name, &after.name);
        refuse("node", &before.node, &after.node);
        if !force {
            errors
                .extend(unshared_stores(from, to).iter().filter_map(|store| unlimited(to, store)));
        }
        errors
    }

    /// Checks a change with the cluster, and makes its part in etcd. Blocks meanwhile. The order
    /// ensures that a rejected change has not changed the cluster:
    ///
    /// 1. Checks: etcd must respond if the host joins; shared policies can be changed.
    /// 2. Leaders reserve additional minimums. Reservations for a change that is not made expire.
    /// 3. Reservations are given back if the host leaves, or does not share a store any more. They
    ///    are taken again if the change is not made.
    /// 4. Shared policies are written in one transaction.
    ///
    /// Returns a text per store whose minimums are pending although the change is made.
    ///
    /// # Errors
    /// Fails if a step fails or `operation` is cancelled. With `force`, failures of joining,
    /// leaving and giving back are ignored.
    pub(crate) fn prepare_cluster_change(
        &self,
        edit: &Edit,
        (from, to): (&HostConfig, &HostConfig),
        force: bool,
        operation: &OperationHandle,
    ) -> Result<Vec<String>, ApiError> {
        let policies = self.check_with_cluster(edit, (from, to), force)?;
        let pending = self.request_reservations(from, to);
        let result = pending.and_then(|pending| {
            operation.check_cancelled()?;
            let forced = |error| if force { Ok(()) } else { Err(error) };
            if from.cluster.is_some() && to.cluster.is_none() {
                self.return_reservations().or_else(forced)?;
            } else {
                self.release_stores(unshared_stores(from, to)).or_else(forced)?;
            }
            policies.as_ref().map_or(Ok(()), |changes| self.commit_policies(changes))?;
            Ok(pending)
        });
        if result.is_err() {
            self.withdraw_requests(to);
        }
        result
    }

    /// Checks a change with the cluster's etcd. Returns the changes of shared policies.
    fn check_with_cluster(
        &self,
        edit: &Edit,
        (from, to): (&HostConfig, &HostConfig),
        force: bool,
    ) -> Result<Option<PolicyChanges>, ApiError> {
        if let Edit::Cluster(ClusterEdit::Init(config)) = edit {
            return self.check_is_new(config).map(|()| None);
        }
        let Some(after) = &to.cluster else { return Ok(None) };
        let known_store = self.cluster.view().store.clone();
        let store = if from.cluster.as_ref() == Some(after) {
            known_store
        } else {
            match self.cluster.stores.connect(after) {
                Ok(store) => Some(store),
                Err(_) if force => known_store,
                Err(error) => return Err(error),
            }
        };
        if from.cluster.is_none() {
            // The cluster thread adds the policies that the cluster does not have.
            return Ok(None);
        }
        self.check_policies(store, from, to)
    }

    /// Checks that a cluster does not exist.
    fn check_is_new(&self, config: &ClusterConfig) -> Result<(), ApiError> {
        let store = self.cluster.stores.connect(config)?;
        let members = format!("{}{MEMBERS}", cluster_prefix(&config.name));
        let failed =
            |error: ClusterStoreError| cluster_error(ErrorCode::HostError, error.to_string());
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
        Err(cluster_error(ErrorCode::AlreadyExists, text))
    }

    pub(super) fn return_reservations(&self) -> Result<(), ApiError> {
        self.cluster.view().has_left = false;
        self.cluster.inbox.request_leave();
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        while Instant::now() < deadline {
            if self.cluster.view().has_left {
                return Ok(());
            }
            std::thread::sleep(RELEASE_POLL_INTERVAL);
        }
        self.cluster.inbox.cancel_leave();
        let text = "the reservations of this host were not released in time; retry when etcd and the leaders respond (`suimon cluster status`), or leave with --force and run `suimon cluster remove` on another node";
        Err(cluster_error(ErrorCode::HostError, text))
    }

    /// Removes a node that is permanently gone from the cluster, and thereby its reservations. If
    /// there is no such node, removes the reports and grants that earlier attempts have left.
    ///
    /// # Errors
    /// Fails if there is no such node and nothing was left, the node is alive, or the cluster does
    /// not respond.
    pub(crate) fn remove_cluster_node(&self, node: &str) -> Result<(), ApiError> {
        let refusal = |text: String| cluster_error(ErrorCode::HostError, text);
        let desired = self.desired();
        let cluster = desired.config.cluster.as_ref();
        let cluster = cluster.ok_or_else(no_cluster)?;
        let store = self.cluster.view().store.clone();
        let store = store.ok_or_else(|| {
            refusal("etcd does not respond; `suimon cluster status` shows the reason".to_owned())
        })?;
        let root = cluster_prefix(&cluster.name);
        let failed = |error: ClusterStoreError| refusal(error.to_string());
        let key = format!("{root}{MEMBERS}{node}");
        let view = store.read(&key).map_err(failed)?;
        let entry = view.entries.into_iter().find(|entry| entry.key == key);
        let Some(entry) = entry else {
            if remove_left_records(store.as_ref(), &root).map_err(failed)? {
                return Ok(());
            }
            let text = format!(
                "the cluster has no node `{node}`; `suimon cluster status` lists its nodes"
            );
            return Err(cluster_error(ErrorCode::NotFound, text));
        };
        let alive = format!("{root}{ALIVE}{node}");
        let conditions = [
            ClusterCondition::KeyUnmodifiedSince(key.clone(), entry.modified_revision),
            ClusterCondition::KeyAbsent(alive),
        ];
        let mut changes = Vec::new();
        if let Some(member) = decode_entry::<MemberRecord>(&entry) {
            let reports = store.read(&format!("{root}{REPORTS}")).map_err(failed)?.entries;
            let member_reports = reports.into_iter().filter(|entry| {
                let short = entry.key.strip_prefix(&root).and_then(parse_report_key);
                short.is_some_and(|(_, node_id)| node_id == member.id)
            });
            changes.extend(member_reports.map(|entry| ClusterChange::Remove(entry.key)));
            // Nobody else removes the grants of a store without a leader.
            let grants = store.read(&format!("{root}{}", grants_prefix(member.id)));
            let grants = grants.map_err(failed)?.entries.into_iter();
            changes.extend(grants.map(|entry| ClusterChange::Remove(entry.key)));
        }
        match store.commit(&conditions, &[ClusterChange::Remove(key)]).map_err(failed)? {
            ClusterCommitResult::Committed(_) => {
                // Leaders forget the node with its record; its reports and grants are not read any
                // more.
                remove_all(store.as_ref(), &changes).map_err(|error| {
                    refusal(format!(
                        "node `{node}` was removed, but not its reports and grants: {error}; \
                         repeat `suimon cluster remove {node}`, which removes them"
                    ))
                })
            }
            ClusterCommitResult::ConditionFailed => {
                let text = format!(
                    "node `{node}` is running; run `suimon cluster leave` there, or shut it down \
                     first"
                );
                Err(cluster_error(ErrorCode::InUse, text))
            }
        }
    }
}
