//! Changes of shared QoS policies by a change on this node: in one transaction, which is rejected
//! if a record is not what the change was derived from, because another node has changed it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, QosPolicyConfig, ResourceKind};
use suimon_ports::{ClusterChange, ClusterEntry, ClusterKvStore};

use super::cluster_prefix;
use super::encoding::decode_entry;
use super::inbox::KeyState;
use super::policies::{PolicyRecord, PolicyStore, Transaction, shared_policies};
use crate::shared::Shared;

/// Changes of shared policies by a change on this node.
pub(super) struct PolicyChanges {
    store: Arc<dyn ClusterKvStore>,
    root: String,
    node: Name,
    /// Policies of the cluster that this node has received.
    known: BTreeSet<Name>,
    /// Policies to write, each with its configuration on this node before the change.
    changed: Vec<(Option<QosPolicyConfig>, QosPolicyConfig)>,
    /// Policies to delete from the cluster.
    removed: Vec<Name>,
}

impl PolicyChanges {
    fn store(&self) -> PolicyStore<'_> {
        PolicyStore { store: self.store.as_ref(), key_prefix: self.root.clone() }
    }

    /// Checks the changes without making them.
    ///
    /// # Errors
    /// As [`Self::commit`]; fails also if a minimum has no room.
    fn check(&self) -> Result<(), ApiError> {
        let policy_store = self.store();
        for (_, policy) in &self.changed {
            policy_store
                .check_minimum_increase(policy)
                .map_err(|error| policy_error(&policy.name, error))?;
        }
        self.fill(&policy_store, &mut Transaction::default())
    }

    /// Makes the changes in one transaction. Returns the changed keys without the cluster's prefix.
    ///
    /// # Errors
    /// Fails if the cluster does not respond, so that the outcome is unknown, another node has
    /// changed a policy and this node has not adopted that yet, a deleted policy is used on another
    /// node, or the cluster has no room for further policies. Except for an unknown outcome,
    /// nothing was changed.
    fn commit(&self) -> Result<Vec<(String, KeyState)>, ApiError> {
        let policy_store = self.store();
        let committed =
            policy_store.commit_with(|transaction| self.fill(&policy_store, transaction))?;
        let Some((revision, changes)) = committed else { return Ok(Vec::new()) };
        let key_state = |change| {
            let (key, entry) = match change {
                ClusterChange::Put(key, value, _) => {
                    // The creation revision of a policy is not used.
                    let (created, modified) = (revision, revision);
                    (
                        key.clone(),
                        Some(ClusterEntry {
                            key,
                            value,
                            created_revision: created,
                            modified_revision: modified,
                        }),
                    )
                }
                ClusterChange::Remove(key) => (key, None),
            };
            Some((key.strip_prefix(&self.root)?.to_owned(), KeyState { revision, entry }))
        };
        Ok(changes.into_iter().filter_map(key_state).collect())
    }

    fn fill(
        &self,
        policy_store: &PolicyStore<'_>,
        transaction: &mut Transaction,
    ) -> Result<(), ApiError> {
        for (before, policy) in &self.changed {
            self.fill_put(policy_store, transaction, (before.as_ref(), policy))
                .map_err(|error| policy_error(&policy.name, error))?;
        }
        for name in &self.removed {
            self.fill_removal(policy_store, transaction, name)
                .map_err(|error| policy_error(name, error))?;
        }
        let added = self.changed.iter().find(|(before, _)| before.is_none());
        policy_store.check_count(transaction).map_err(|error| match added {
            Some((_, policy)) => policy_error(&policy.name, error),
            None => error,
        })
    }

    /// Adds the write of a changed policy to a transaction. `before`: configuration from which the
    /// change was derived; `None` for a new policy.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] if the cluster's policy differs from `before`: the write would undo
    /// a change of another node.
    fn fill_put(
        &self,
        policy_store: &PolicyStore<'_>,
        transaction: &mut Transaction,
        (before, policy): (Option<&QosPolicyConfig>, &QosPolicyConfig),
    ) -> Result<(), ApiError> {
        let refuse = |action: &str| {
            let text = format!(
                "another node has {action} the policy, and this node has not received that change \
                 yet; check the policy with `suimon qos policy show {name}`, and retry",
                name = policy.name
            );
            Err(ApiError::new(ErrorCode::Conflict, text))
        };
        let policy_entry = policy_store.entry(&policy_store.record_key(&policy.name))?;
        match policy_entry.as_ref().and_then(decode_entry::<PolicyRecord>) {
            Some(record) if record.config == *policy => Ok(()),
            Some(record) if before == Some(&record.config) => {
                policy_store.add_write(transaction, policy, policy_entry.as_ref(), Some(record.key))
            }
            Some(_) => refuse(if before.is_some() { "changed" } else { "created" }),
            None if before.is_some() && self.known.contains(&policy.name) => refuse("deleted"),
            None => policy_store.add_write(transaction, policy, policy_entry.as_ref(), None),
        }
    }

    fn fill_removal(
        &self,
        policy_store: &PolicyStore<'_>,
        transaction: &mut Transaction,
        name: &Name,
    ) -> Result<(), ApiError> {
        let key = policy_store.record_key(name);
        let Some(policy_entry) = policy_store.entry(&key)? else { return Ok(()) };
        let record = decode_entry::<PolicyRecord>(&policy_entry);
        let user = record
            .map(|record| policy_store.find_other_user(record.key, self.node.as_str()))
            .transpose()?;
        if let Some((node, store)) = user.flatten() {
            let text = format!(
                "disks of node `{node}` on store {store} have this policy; change or delete them \
                 first, or, if that node is switched off and will not return, run `suimon cluster \
                 remove {node}`"
            );
            return Err(ApiError::new(ErrorCode::InUse, text));
        }
        transaction.expect_unchanged(&key, Some(&policy_entry));
        transaction.changes.push(ClusterChange::Remove(key));
        Ok(())
    }
}

fn policy_error(policy: &Name, error: ApiError) -> ApiError {
    error.with_resource(format!("{}/{policy}", ResourceKind::QosPolicy.noun()))
}

impl Shared {
    /// Returns the changes of shared policies, checked and not made; `None` if there are none.
    /// `store`: etcd of the cluster, if it responds.
    ///
    /// # Errors
    /// Fails if the cluster does not respond, or rejects the changes.
    pub(super) fn check_policies(
        &self,
        store: Option<Arc<dyn ClusterKvStore>>,
        from: &HostConfig,
        to: &HostConfig,
    ) -> Result<Option<PolicyChanges>, ApiError> {
        let Some(cluster) = &to.cluster else { return Ok(None) };
        let before: BTreeMap<_, _> =
            shared_policies(from).map(|policy| (&policy.name, policy)).collect();
        let after: BTreeMap<_, _> =
            shared_policies(to).map(|policy| (&policy.name, policy)).collect();
        let changed = after
            .iter()
            .filter(|(name, changed_policy)| before.get(*name) != Some(*changed_policy));
        let changed = changed
            .map(|(name, old_policy)| {
                (before.get(*name).map(|old| (*old).clone()), (*old_policy).clone())
            })
            .collect::<Vec<_>>();
        let removed = before.keys().filter(|name| !after.contains_key(*name));
        let removed: Vec<Name> = removed.map(|name| (*name).clone()).collect();
        if changed.is_empty() && removed.is_empty() {
            return Ok(None);
        }
        let store = store.ok_or_else(|| {
            let text = "etcd does not respond, and policies of the cluster cannot be changed \
                        meanwhile; `suimon cluster status` shows the reason";
            ApiError::new(ErrorCode::HostError, text)
        })?;
        let known_policies = self.cluster.view().policies.keys().cloned().collect();
        let (root, node) = (cluster_prefix(&cluster.name), cluster.node.clone());
        let changes = PolicyChanges { store, root, node, known: known_policies, changed, removed };
        changes.check()?;
        Ok(Some(changes))
    }

    /// Makes changes of shared policies. The cluster thread receives them before this host is
    /// changed, so that it does not take older ones over.
    pub(super) fn commit_policies(&self, changes: &PolicyChanges) -> Result<(), ApiError> {
        self.cluster.inbox.push_written_keys(changes.commit()?);
        Ok(())
    }
}
