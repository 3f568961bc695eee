//! Shared QoS policies: a record per policy in etcd, and a copy in each node's desired state.
//!
//! A change on a node writes the records in etcd first, all in one transaction
//! (`policy_changes.rs`). Watches notify the nodes, which update their desired states
//! (`driver/policies.rs`). A policy that disks of any node use is not deleted. A minimum that does
//! not fit beside the leaders' reservations is rejected.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use suimon_cluster_qos::{
    AdmissionCheck, NodeGrant, NodeId, POLICIES_MAX, PolicyKey, PolicyLimits, SharedStoreCapacity,
};
use suimon_contract::{ApiError, ErrorCode, HostConfig, Name, QosPolicyConfig, validate_qos};
use suimon_ports::{
    ClusterChange, ClusterCommitResult, ClusterCondition, ClusterEntry, ClusterKvStore,
};

use super::encoding::{decode_counter, decode_entry, encode_value};
use super::keys::{
    GRANTS, MEMBERS, MemberRecord, NEXT_POLICY, NodeReport, POLICIES, REPORTS, parse_grant_key,
    parse_report_key,
};

/// Number of attempts if other nodes write the same keys.
const TRIES: usize = 5;
/// Maximum length of the record of a policy in etcd. Daemons write a tenth of it at most.
const RECORD_BYTES_MAX: usize = 4096;

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

/// All policies of the cluster, read at once.
pub(super) struct ReadPolicies {
    /// Revision of etcd up to which the policies contain all changes.
    pub(super) revision: u64,
    pub(super) policies: Policies,
}

/// Returns the policies among these entries, without invalid records: at most [`POLICIES_MAX`] and
/// one more, which shows that there are too many. The newest of too many are left out.
pub(super) fn decode_policies<'a>(
    root: &str,
    entries: impl IntoIterator<Item = &'a ClusterEntry>,
) -> Policies {
    let record_of = |entry: &'a ClusterEntry| {
        let name = entry.key.strip_prefix(root)?.strip_prefix(POLICIES)?;
        decode_policy(name, entry)
    };
    let mut oldest = BTreeMap::new();
    for (name, record) in entries.into_iter().filter_map(record_of) {
        oldest.insert((record.0.key, name), record);
        if oldest.len() > POLICIES_MAX + 1 {
            oldest.pop_last();
        }
    }
    oldest.into_iter().map(|((_, name), record)| (name, record)).collect()
}

/// Decodes the entry of policy `name`: its record, and the revision at which it was written.
/// Returns `None` if the name or the value is invalid. One invalid policy would otherwise prevent
/// the adoption of all.
pub(super) fn decode_policy(
    name: &str,
    entry: &ClusterEntry,
) -> Option<(Name, (PolicyRecord, u64))> {
    let name = name.parse::<Name>().ok()?;
    if entry.value.len() > RECORD_BYTES_MAX {
        tracing::warn!(key = entry.key, "the value of an etcd key is too long for a policy");
        return None;
    }
    let record = decode_entry::<PolicyRecord>(entry)?;
    let is_right = record.config.name == name && record.config.shared && is_valid(&record.config);
    if !is_right {
        tracing::warn!(
            key = entry.key,
            "the value of an etcd key is not the record of its policy and is ignored"
        );
    }
    is_right.then_some((name, (record, entry.modified_revision)))
}

/// Returns true if a host accepts the policy.
fn is_valid(policy: &QosPolicyConfig) -> bool {
    let config = HostConfig { qos_policies: vec![policy.clone()], ..HostConfig::default() };
    validate_qos(&config).is_ok()
}

/// Returns the shared policies of a configuration.
pub(super) fn shared_policies(config: &HostConfig) -> impl Iterator<Item = &QosPolicyConfig> {
    config.qos_policies.iter().filter(|policy| policy.shared)
}

/// Access to the policies of a cluster.
pub(super) struct PolicyStore<'a> {
    pub(super) store: &'a dyn ClusterKvStore,
    pub(super) key_prefix: String,
}

/// Changes of policies, made in one transaction.
#[derive(Default)]
pub(super) struct Transaction {
    conditions: Vec<ClusterCondition>,
    pub(super) changes: Vec<ClusterChange>,
    /// Number of the next new policy, once one was assigned.
    next: Option<u32>,
}

impl Transaction {
    /// Adds the condition that a key is unchanged since it was read. `entry`: the entry that was
    /// read, or `None` if the key did not exist.
    pub(super) fn expect_unchanged(&mut self, key: &str, entry: Option<&ClusterEntry>) {
        let key = key.to_owned();
        self.conditions.push(match entry {
            Some(entry) => ClusterCondition::KeyUnmodifiedSince(key, entry.modified_revision),
            None => ClusterCondition::KeyAbsent(key),
        });
    }
}

impl PolicyStore<'_> {
    fn store_error(error: &suimon_ports::ClusterStoreError) -> ApiError {
        let text = format!(
            "{error}; policies of the cluster cannot be changed while etcd does not respond: \
             retry when `suimon cluster status` shows that it does"
        );
        ApiError::new(ErrorCode::HostError, text)
    }

    pub(super) fn entry(&self, key: &str) -> Result<Option<ClusterEntry>, ApiError> {
        let view = self.store.read(key).map_err(|error| Self::store_error(&error))?;
        Ok(view.entries.into_iter().find(|entry| entry.key == key))
    }

    pub(super) fn record_key(&self, policy: &Name) -> String {
        format!("{}{POLICIES}{policy}", self.key_prefix)
    }

    /// Adds a policy, unless a policy of that name exists. A record that nodes ignore, because it
    /// is invalid, is replaced.
    ///
    /// # Errors
    /// Fails if the cluster does not respond, so that the outcome is unknown, other nodes write the
    /// same keys repeatedly, or the cluster has no room for a further policy.
    pub(super) fn add(&self, config: &QosPolicyConfig) -> Result<(), ApiError> {
        let result = self.commit_with(|transaction| {
            let entry = self.entry(&self.record_key(&config.name))?;
            let is_ignored =
                |entry: &ClusterEntry| decode_policy(config.name.as_str(), entry).is_none();
            if entry.as_ref().is_none_or(is_ignored) {
                self.add_write(transaction, config, entry.as_ref(), None)?;
            }
            self.check_count(transaction)
        });
        result.map(drop)
    }

    /// Adds the write of a policy's record to a transaction, on the condition that `entry` is
    /// unchanged. `number`: number of the existing policy; `None` assigns a new one.
    ///
    /// # Errors
    /// The cluster does not respond, or the number of the next policy is damaged.
    pub(super) fn add_write(
        &self,
        transaction: &mut Transaction,
        config: &QosPolicyConfig,
        entry: Option<&ClusterEntry>,
        number: Option<PolicyKey>,
    ) -> Result<(), ApiError> {
        let key = self.record_key(&config.name);
        transaction.expect_unchanged(&key, entry);
        let number = number.map_or_else(|| self.next_number(transaction), Ok)?;
        let record = PolicyRecord { key: number, config: config.clone() };
        transaction.changes.push(ClusterChange::Put(key, encode_value(&record), None));
        Ok(())
    }

    fn next_number(&self, transaction: &mut Transaction) -> Result<PolicyKey, ApiError> {
        let key = format!("{}{NEXT_POLICY}", self.key_prefix);
        let numbers = match transaction.next {
            Some(number) => number.checked_add(1).map(|next| (number, next)),
            None => {
                let entry = self.entry(&key)?;
                transaction.expect_unchanged(&key, entry.as_ref());
                decode_counter(entry.as_ref())
            }
        };
        // Policies of one number would share their limits.
        let (number, next) = numbers.ok_or_else(|| {
            let text = format!(
                "the value of etcd key {key} is not the number of a new policy: write a number \
                 that is greater than `key` in the values of all keys below {}{POLICIES}",
                self.key_prefix
            );
            ApiError::new(ErrorCode::HostError, text)
        })?;
        transaction.next = Some(next);
        Ok(PolicyKey(number))
    }

    /// Checks that the cluster has at most [`POLICIES_MAX`] policies after a transaction that adds
    /// some. Each addition changes the number of the next policy. Of two concurrent ones, the
    /// second is therefore checked again.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] if there would be more; or the cluster does not respond.
    pub(super) fn check_count(&self, transaction: &Transaction) -> Result<(), ApiError> {
        let prefix = format!("{}{POLICIES}", self.key_prefix);
        let mut new_keys = transaction.conditions.iter().filter_map(|condition| match condition {
            ClusterCondition::KeyAbsent(key) => Some(key),
            ClusterCondition::KeyCreatedAt(..) | ClusterCondition::KeyUnmodifiedSince(..) => None,
        });
        if !new_keys.any(|key| key.starts_with(&prefix)) {
            return Ok(());
        }
        let entries = self.entries_below(POLICIES)?.into_iter();
        let mut keys: BTreeSet<String> = entries.map(|entry| entry.key).collect();
        for change in &transaction.changes {
            match change {
                ClusterChange::Put(key, ..) => keys.insert(key.clone()),
                ClusterChange::Remove(key) => keys.remove(key),
            };
        }
        if keys.len() <= POLICIES_MAX {
            return Ok(());
        }
        let text = format!(
            "the cluster would have {} shared policies, and can have {POLICIES_MAX}; delete \
             policies that no disk uses (`suimon qos policy delete NAME`), or create this one \
             without `shared`",
            keys.len()
        );
        Err(ApiError::new(ErrorCode::Conflict, text))
    }

    /// Makes the transaction that `fill` creates. If other nodes wrote the same keys meanwhile,
    /// calls `fill` again, at most [`TRIES`] times in total. Returns the changes and the revision
    /// at which they were made; `None` if `fill` adds no changes.
    ///
    /// # Errors
    /// `fill` or the commit failed, or other nodes wrote the same keys at each attempt.
    pub(super) fn commit_with(
        &self,
        fill: impl Fn(&mut Transaction) -> Result<(), ApiError>,
    ) -> Result<Option<(u64, Vec<ClusterChange>)>, ApiError> {
        for _ in 0..TRIES {
            let mut transaction = Transaction::default();
            fill(&mut transaction)?;
            let Transaction { conditions, mut changes, next } = transaction;
            if changes.is_empty() {
                return Ok(None);
            }
            if let Some(next) = next {
                let key = format!("{}{NEXT_POLICY}", self.key_prefix);
                changes.push(ClusterChange::Put(key, encode_value(&next), None));
            }
            let max_changes = self.store.changes_max();
            if changes.len().max(conditions.len()) > max_changes {
                let text = format!(
                    "more shared policies are changed at once than fit into one transaction of the \
                     cluster's etcd, which may have {max_changes} changes; change fewer at a time"
                );
                return Err(ApiError::new(ErrorCode::InvalidValue, text));
            }
            let commit = self.store.commit(&conditions, &changes);
            if let ClusterCommitResult::Committed(revision) =
                commit.map_err(|error| Self::store_error(&error))?
            {
                return Ok(Some((revision, changes)));
            }
        }
        let text = "other nodes keep changing the policies of the cluster; retry";
        Err(ApiError::new(ErrorCode::Conflict, text))
    }

    fn entries_below(&self, prefix: &str) -> Result<Vec<ClusterEntry>, ApiError> {
        let view = self.store.read(&format!("{}{prefix}", self.key_prefix));
        view.map_err(|error| Self::store_error(&error)).map(|view| view.entries)
    }

    /// Checks that stores whose disks use a policy have room for an increased minimum. Leaders
    /// decide independently, and a minimum without room is not in effect; this check lets the
    /// change be rejected.
    ///
    /// # Errors
    /// Fails if a store has no room.
    pub(super) fn check_minimum_increase(&self, policy: &QosPolicyConfig) -> Result<(), ApiError> {
        let Some(before) = self
            .entry(&self.record_key(&policy.name))?
            .as_ref()
            .and_then(decode_entry::<PolicyRecord>)
        else {
            // The policy is new, so that no disk uses it.
            return Ok(());
        };
        let requested_iops =
            policy.min_iops.unwrap_or_default().saturating_sub(before.limits().min_iops);
        if requested_iops == 0 {
            return Ok(());
        }
        let mut capabilities = BTreeMap::new();
        for entry in &self.entries_below(REPORTS)? {
            let report_key = entry.key.strip_prefix(&self.key_prefix).and_then(parse_report_key);
            let Some(((store, _), node_report)) = report_key.zip(decode_entry::<NodeReport>(entry))
            else {
                continue;
            };
            let Some(iops) = node_report.capacity_iops else { continue };
            if node_report.report.policies.iter().any(|load| load.policy == before.key) {
                let lowest = capabilities.entry(store.to_owned()).or_insert(u64::MAX);
                *lowest = iops.min(*lowest);
            }
        }
        let grants = self.entries_below(GRANTS)?;
        for (store, capacity_iops) in capabilities {
            let reserved = grants.iter().filter_map(|entry| {
                let (_, grant_store) = parse_grant_key(entry.key.strip_prefix(&self.key_prefix)?)?;
                (grant_store == store).then(|| decode_entry::<NodeGrant>(entry)).flatten()
            });
            let reserved_iops = reserved.map(|grant| grant.store.reserved_iops).sum();
            let capability = SharedStoreCapacity::Declared(capacity_iops);
            let promises = AdmissionCheck {
                guaranteed_iops: reserved_iops,
                requested_iops,
                capacity: capability,
            };
            if !promises.is_admissible() {
                let text = format!(
                    "the leader of store {store} rejected these minimums: {promises}; lower \
                     minimums, or move disks to another store"
                );
                return Err(ApiError::new(ErrorCode::Overcommitted, text));
            }
        }
        Ok(())
    }

    /// Returns the name of another node whose disks use the policy according to its last report,
    /// and the name of the store; `None` if there is no such node.
    pub(super) fn find_other_user(
        &self,
        policy: PolicyKey,
        own_node: &str,
    ) -> Result<Option<(String, String)>, ApiError> {
        let members: BTreeMap<NodeId, String> = self
            .entries_below(MEMBERS)?
            .iter()
            .filter_map(|entry| {
                let name = entry.key.strip_prefix(&self.key_prefix)?.strip_prefix(MEMBERS)?;
                Some((decode_entry::<MemberRecord>(entry)?.id, name.to_owned()))
            })
            .collect();
        Ok(self.entries_below(REPORTS)?.iter().find_map(|entry| {
            let (store, node) = parse_report_key(entry.key.strip_prefix(&self.key_prefix)?)?;
            let node = members.get(&node).filter(|node| *node != own_node)?;
            let node_report: NodeReport = decode_entry(entry)?;
            let uses_policy = node_report.report.policies.iter().any(|load| load.policy == policy);
            uses_policy.then(|| (node.clone(), store.to_owned()))
        }))
    }
}

#[cfg(test)]
mod tests;
