//! Changes of shared QoS policies by a change on this node: in one transaction, which is rejected if
//! a record is not what the change was derived from, because another node has changed it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, QosPolicyConfig, ResourceKind};
use suimon_ports::{ClusterChange, ClusterEntry, ClusterKvStore};

use super::cluster_prefix;
use super::inbox::KeyState;
use super::policies::{PolicyRecord, PolicyStore, Transaction, shared_policies};
use super::values::read;
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
        PolicyStore { store: self.store.as_ref(), root: self.root.clone() }
    }

    /// Checks the changes without making them.
    ///
    /// # Errors
    /// As [`Self::commit`]; fails also if a minimum has no room.
    fn check(&self) -> Result<(), ApiError> {
        let desk = self.store();
        for (_, policy) in &self.changed {
            desk.check_raise(policy).map_err(|error| about(&policy.name, error))?;
        }
        self.fill(&desk, &mut Transaction::default())
    }

    /// Makes the changes in one transaction. Returns the changed keys without the cluster's prefix.
    ///
    /// # Errors
    /// Fails if the cluster does not respond, so that the outcome is unknown, another node has
    /// changed a policy and this node has not adopted that yet, or a deleted policy is used on
    /// another node. Except for an unknown outcome, nothing was changed.
    fn commit(&self) -> Result<Vec<(String, KeyState)>, ApiError> {
        let desk = self.store();
        let made = desk.commit_with(|transaction| self.fill(&desk, transaction))?;
        let Some((revision, changes)) = made else { return Ok(Vec::new()) };
        let heard = |change| {
            let (key, entry) = match change {
                ClusterChange::Put(key, value, _) => {
                    // The creation revision of a policy is not used.
                    let (created, modified) = (revision, revision);
                    (key.clone(), Some(ClusterEntry { key, value, created, modified }))
                }
                ClusterChange::Remove(key) => (key, None),
            };
            Some((key.strip_prefix(&self.root)?.to_owned(), KeyState { revision, entry }))
        };
        Ok(changes.into_iter().filter_map(heard).collect())
    }

    fn fill(&self, desk: &PolicyStore<'_>, transaction: &mut Transaction) -> Result<(), ApiError> {
        for (before, policy) in &self.changed {
            self.fill_put(desk, transaction, (before.as_ref(), policy))
                .map_err(|error| about(&policy.name, error))?;
        }
        for name in &self.removed {
            self.fill_removal(desk, transaction, name).map_err(|error| about(name, error))?;
        }
        Ok(())
    }

    /// The configuration from which the change was derived must be the cluster's. Otherwise a
    /// change of another node would be lost.
    fn fill_put(
        &self,
        desk: &PolicyStore<'_>,
        transaction: &mut Transaction,
        (before, policy): (Option<&QosPolicyConfig>, &QosPolicyConfig),
    ) -> Result<(), ApiError> {
        let refuse = |what: &str| {
            let text = format!(
                "another node has {what} it, and this node has not taken that over yet; look at \
                 what the policy is now (`suimon qos policy list`), and try again"
            );
            Err(ApiError::new(ErrorCode::Conflict, text))
        };
        let found = desk.entry(&desk.key_of(&policy.name))?;
        match found.as_ref().and_then(read::<PolicyRecord>) {
            Some(record) if record.config == *policy => Ok(()),
            Some(record) if before == Some(&record.config) => {
                desk.put(transaction, policy, found.as_ref(), Some(record.key))
            }
            Some(_) => refuse(if before.is_some() { "changed" } else { "made" }),
            None if before.is_some() && self.known.contains(&policy.name) => refuse("deleted"),
            None => desk.put(transaction, policy, found.as_ref(), None),
        }
    }

    fn fill_removal(
        &self,
        desk: &PolicyStore<'_>,
        transaction: &mut Transaction,
        name: &Name,
    ) -> Result<(), ApiError> {
        let key = desk.key_of(name);
        let Some(found) = desk.entry(&key)? else { return Ok(()) };
        let record = read::<PolicyRecord>(&found);
        let user = record.map(|record| desk.user(record.key, self.node.as_str())).transpose()?;
        if let Some((node, store)) = user.flatten() {
            let text = format!(
                "disks of node `{node}` on store {store} have it; change or delete those first, or, \
                 if that node is switched off and will not return, run `suimon cluster remove \
                 {node}`"
            );
            return Err(ApiError::new(ErrorCode::InUse, text));
        }
        transaction.expect(&key, Some(&found));
        transaction.changes.push(ClusterChange::Remove(key));
        Ok(())
    }
}

fn about(policy: &Name, error: ApiError) -> ApiError {
    error.about(format!("{}/{policy}", ResourceKind::QosPolicy.word()))
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
        let changed = after.iter().filter(|(name, of)| before.get(*name) != Some(*of));
        let changed = changed
            .map(|(name, of)| (before.get(*name).map(|of| (*of).clone()), (*of).clone()))
            .collect::<Vec<_>>();
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        let gone: Vec<Name> = gone.map(|name| (*name).clone()).collect();
        if changed.is_empty() && gone.is_empty() {
            return Ok(None);
        }
        let store = store.ok_or_else(|| {
            let text = "etcd does not respond, and policies of the cluster cannot be changed \
                        meanwhile; `suimon cluster status` shows the reason";
            ApiError::new(ErrorCode::HostError, text)
        })?;
        let known = self.cluster.view().policies.keys().cloned().collect();
        let (root, node) = (cluster_prefix(&cluster.name), cluster.node.clone());
        let changes = PolicyChanges { store, root, node, known, changed, removed: gone };
        changes.check()?;
        Ok(Some(changes))
    }

    /// Makes changes of shared policies. The cluster thread receives them before this host is
    /// changed, so that it does not take older ones over.
    pub(super) fn commit_policies(&self, changes: &PolicyChanges) -> Result<(), ApiError> {
        self.cluster.inbox.handle_written(changes.commit()?);
        Ok(())
    }
}
