//! Shared QoS policies: a record per policy in etcd, and a copy in each node's desired state.
//!
//! A change on a node writes the record in etcd first, in a transaction that fails if the record
//! was changed since it was read. Watches notify the nodes, which update their desired states
//! (`driver/policies.rs`). A policy that disks of any node use is not deleted. A minimum that does
//! not fit beside the leaders' reservations is rejected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suimon_cluster_qos::{Capability, Grant, NodeId, PolicyKey, PolicyLimits, Promises};
use suimon_contract::{ApiError, ErrorCode, HostConfig, Kind, Name, QosPolicyConfig};
use suimon_ports::{ClusterChange, ClusterCommit, ClusterCondition, ClusterEntry, ClusterStore};

use super::cluster_prefix;
use super::keys::{
    GRANTS, MEMBERS, MemberRecord, NEXT_POLICY, POLICIES, REPORTS, Said, grant_of, report_of,
};
use super::session::{read, write};
use crate::shared::Shared;

/// Number of attempts if other nodes write the same keys.
const TRIES: usize = 5;

/// Record of a policy in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PolicyRecord {
    /// Number of the policy, never used for another one.
    pub(super) key: PolicyKey,
    pub(super) config: QosPolicyConfig,
}

impl PolicyRecord {
    /// Returns the limits that nodes share.
    pub(super) fn limits(&self) -> PolicyLimits {
        let min_iops = self.config.min_iops.unwrap_or_default();
        PolicyLimits { min_iops, max_iops: self.config.max_iops }
    }
}

/// Policies by name, with the revisions at which they were written.
pub(super) type Policies = BTreeMap<Name, (PolicyRecord, u64)>;

/// Returns the policies among these entries. Unreadable records are left out.
pub(super) fn policies_of<'a>(
    root: &str,
    entries: impl IntoIterator<Item = &'a ClusterEntry>,
) -> Policies {
    let named = |entry: &'a ClusterEntry| {
        let name = entry.key.strip_prefix(root)?.strip_prefix(POLICIES)?;
        policy_of(name, entry)
    };
    entries.into_iter().filter_map(named).collect()
}

/// Returns the policy of a key; `None` if its value is invalid.
pub(super) fn policy_of(name: &str, entry: &ClusterEntry) -> Option<(Name, (PolicyRecord, u64))> {
    let name = name.parse::<Name>().ok()?;
    let record = read::<PolicyRecord>(entry)?;
    let is_right = record.config.name == name && record.config.shared;
    if !is_right {
        tracing::warn!(key = entry.key, "is not a record of that policy");
    }
    is_right.then_some((name, (record, entry.modified)))
}

/// Returns the shared policies of a configuration.
pub(super) fn shared_policies(config: &HostConfig) -> impl Iterator<Item = &QosPolicyConfig> {
    config.qos_policies.iter().filter(|policy| policy.shared)
}

/// Access to the policies of a cluster.
pub(super) struct PolicyDesk<'a> {
    pub(super) store: &'a dyn ClusterStore,
    pub(super) root: String,
}

impl PolicyDesk<'_> {
    fn failed(error: &suimon_ports::ClusterStoreError) -> ApiError {
        let text = format!(
            "{error}; policies of the cluster cannot be changed while etcd does not respond: \
             retry when `suimon cluster status` shows that it does"
        );
        ApiError::new(ErrorCode::HostError, text)
    }

    fn entry(&self, key: &str) -> Result<Option<ClusterEntry>, ApiError> {
        let view = self.store.read(key).map_err(|error| Self::failed(&error))?;
        Ok(view.entries.into_iter().find(|entry| entry.key == key))
    }

    /// Writes a policy. `is_new`: does nothing if the policy exists.
    ///
    /// # Errors
    /// Fails if the cluster does not respond, so that the outcome is unknown, or other nodes write
    /// the same keys repeatedly.
    pub(super) fn put(&self, config: &QosPolicyConfig, is_new: bool) -> Result<(), ApiError> {
        let key = format!("{}{POLICIES}{}", self.root, config.name);
        let next_key = format!("{}{NEXT_POLICY}", self.root);
        for _ in 0..TRIES {
            let found = self.entry(&key)?;
            let mut changes = Vec::new();
            let mut conditions = Vec::new();
            let known = found.as_ref().and_then(read::<PolicyRecord>);
            if known.is_some() && is_new {
                return Ok(());
            }
            conditions.push(match &found {
                Some(entry) => ClusterCondition::Unmodified(key.clone(), entry.modified),
                None => ClusterCondition::Absent(key.clone()),
            });
            let number = match known {
                Some(record) if record.config == *config => return Ok(()),
                Some(record) => record.key,
                None => {
                    let next = self.entry(&next_key)?;
                    conditions.push(match &next {
                        Some(entry) => {
                            ClusterCondition::Unmodified(next_key.clone(), entry.modified)
                        }
                        None => ClusterCondition::Absent(next_key.clone()),
                    });
                    let number = next.as_ref().and_then(read::<u32>).unwrap_or(1);
                    changes.push(ClusterChange::Put(next_key.clone(), write(&(number + 1)), None));
                    PolicyKey(number)
                }
            };
            let record = PolicyRecord { key: number, config: config.clone() };
            changes.push(ClusterChange::Put(key.clone(), write(&record), None));
            let commit = self.store.commit(&conditions, &changes);
            if let ClusterCommit::Made(_) = commit.map_err(|error| Self::failed(&error))? {
                return Ok(());
            }
        }
        let text = "another node changes the policy at the same time; retry";
        Err(ApiError::new(ErrorCode::Conflict, text))
    }

    /// Deletes a policy.
    ///
    /// # Errors
    /// Fails if disks of another node use the policy, or the cluster does not respond, so that the
    /// outcome is unknown.
    fn remove(&self, name: &Name, own: &str) -> Result<(), ApiError> {
        let key = format!("{}{POLICIES}{name}", self.root);
        for _ in 0..TRIES {
            let Some(found) = self.entry(&key)? else { return Ok(()) };
            if let Some(record) = read::<PolicyRecord>(&found) {
                if let Some((node, store)) = self.user(record.key, own)? {
                    let text = format!(
                        "disks of node `{node}` on store {store} use the policy; change or delete \
                         those first, or, if that node is gone for good, run `suimon cluster \
                         remove {node}`"
                    );
                    return Err(ApiError::new(ErrorCode::InUse, text));
                }
            }
            let is_it = ClusterCondition::Unmodified(key.clone(), found.modified);
            let commit = self.store.commit(&[is_it], &[ClusterChange::Remove(key.clone())]);
            if let ClusterCommit::Made(_) = commit.map_err(|error| Self::failed(&error))? {
                return Ok(());
            }
        }
        let text = "another node changes the policy at the same time; retry";
        Err(ApiError::new(ErrorCode::Conflict, text))
    }

    fn below(&self, prefix: &str) -> Result<Vec<ClusterEntry>, ApiError> {
        let view = self.store.read(&format!("{}{prefix}", self.root));
        view.map_err(|error| Self::failed(&error)).map(|view| view.entries)
    }

    /// Checks that stores whose disks use a policy have room for an increased minimum. Leaders
    /// decide independently, and a minimum without room is not in effect; this check lets the
    /// change be rejected.
    ///
    /// # Errors
    /// Fails if a store has no room.
    fn check_raise(&self, policy: &QosPolicyConfig) -> Result<(), ApiError> {
        let key = format!("{}{POLICIES}{}", self.root, policy.name);
        let Some(before) = self.entry(&key)?.as_ref().and_then(read::<PolicyRecord>) else {
            // The policy is new, so that no disk uses it.
            return Ok(());
        };
        let asked_iops =
            policy.min_iops.unwrap_or_default().saturating_sub(before.limits().min_iops);
        if asked_iops == 0 {
            return Ok(());
        }
        let mut capabilities = BTreeMap::new();
        for entry in &self.below(REPORTS)? {
            let of = entry.key.strip_prefix(&self.root).and_then(report_of);
            let Some(((store, _), said)) = of.zip(read::<Said>(entry)) else { continue };
            if said.report.policies.iter().any(|load| load.policy == before.key) {
                let least = capabilities.entry(store.to_owned()).or_insert(u64::MAX);
                *least = said.capability_iops.min(*least);
            }
        }
        let grants = self.below(GRANTS)?;
        for (store, capability_iops) in capabilities {
            let reserved = grants.iter().filter_map(|entry| {
                let (_, of) = grant_of(entry.key.strip_prefix(&self.root)?)?;
                (of == store).then(|| read::<Grant>(entry)).flatten()
            });
            let promised_iops = reserved.map(|grant| grant.store.reserved_iops).sum();
            let capability = Capability::Declared(capability_iops);
            let promises = Promises { promised_iops, asked_iops, capability };
            if !promises.fit() {
                let text = format!(
                    "the leader of store {store} rejected these minimums: {promises}; lower \
                     minimums, or move disks to another store"
                );
                return Err(ApiError::new(ErrorCode::Overcommitted, text));
            }
        }
        Ok(())
    }

    /// Returns another node whose disks use a policy according to its last report, and the store.
    fn user(&self, policy: PolicyKey, own: &str) -> Result<Option<(String, String)>, ApiError> {
        let members: BTreeMap<NodeId, String> = self
            .below(MEMBERS)?
            .iter()
            .filter_map(|entry| {
                let name = entry.key.strip_prefix(&self.root)?.strip_prefix(MEMBERS)?;
                Some((read::<MemberRecord>(entry)?.id, name.to_owned()))
            })
            .collect();
        Ok(self.below(REPORTS)?.iter().find_map(|entry| {
            let (store, node) = report_of(entry.key.strip_prefix(&self.root)?)?;
            let node = members.get(&node).filter(|node| *node != own)?;
            let said: Said = read(entry)?;
            let has = said.report.policies.iter().any(|load| load.policy == policy);
            has.then(|| (node.clone(), store.to_owned()))
        }))
    }
}

impl Shared {
    /// Writes the changes of shared policies to the cluster.
    ///
    /// # Errors
    /// Fails if the cluster does not respond, a deleted policy is used on another node, or a
    /// minimum has no room.
    pub(super) fn prepare_policies(
        &self,
        from: &HostConfig,
        to: &HostConfig,
    ) -> Result<(), ApiError> {
        let Some(cluster) = &to.cluster else { return Ok(()) };
        let before: BTreeMap<_, _> =
            shared_policies(from).map(|policy| (&policy.name, policy)).collect();
        let after: BTreeMap<_, _> =
            shared_policies(to).map(|policy| (&policy.name, policy)).collect();
        let changed = after.iter().filter(|(name, of)| before.get(*name) != Some(*of));
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        let (changed, gone): (Vec<_>, Vec<_>) = (changed.collect(), gone.collect());
        if changed.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let about = |name: &Name, error: ApiError| {
            error.about(format!("{}/{name}", Kind::QosPolicy.word()))
        };
        let store = self.cluster.view().store.clone();
        let store = store.ok_or_else(|| {
            let text = "etcd does not respond, and policies of the cluster cannot be changed \
                        meanwhile; `suimon cluster status` shows the reason";
            ApiError::new(ErrorCode::HostError, text)
        })?;
        let desk = PolicyDesk { store: store.as_ref(), root: cluster_prefix(&cluster.name) };
        for (name, policy) in &changed {
            desk.check_raise(policy).map_err(|error| about(name, error))?;
        }
        for (name, policy) in changed {
            desk.put(policy, false).map_err(|error| about(name, error))?;
        }
        for name in gone {
            desk.remove(name, cluster.node.as_str()).map_err(|error| about(name, error))?;
        }
        Ok(())
    }
}
