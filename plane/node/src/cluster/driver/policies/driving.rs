//! Handling of shared policies by the cluster thread.

use std::collections::BTreeSet;
use std::sync::mpsc::TrySendError;
use std::time::Duration;

use suimon_cluster_qos::{AllocatorEvent, POLICIES_MAX};
use suimon_contract::{EventKind, HostConfig, Name, QosPolicyConfig};
use suimon_quantity::Time;

use super::KnownPolicies;
use crate::cluster::driver::{Driver, Link};
use crate::cluster::events::policies_not_saved;
use crate::cluster::inbox::KeyState;
use crate::cluster::messages::Task;
use crate::cluster::policies::{PolicyRecord, ReadPolicies, decode_policy, shared_policies};
use crate::cluster::records::{StoredPolicies, load_policies, save_policies};
use crate::command::Command;
use crate::events::EventDraft;
use crate::{ChangeOptions, Edit};

/// Interval after which a policy that the cluster lacks is added again, and an update of the
/// desired state for which there was no room is requested again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Interval after which the policies are saved again if that has failed.
const SAVE_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of policies that are added to the cluster at a time. Further ones follow when the
/// cluster has these. Each addition reads all policies, and delays reports, grants and the renewal
/// of the lease, which the same thread writes.
const ADDED_MAX: usize = 16;

impl Driver {
    /// Loads the policies that were known when the daemon last ran.
    pub(in crate::cluster::driver) fn load_policies(&mut self) {
        let Some(cluster) = &self.config else { return };
        let stored = load_policies(self.shared.store.as_ref(), &cluster.name);
        let stored = stored.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the saved policies of the cluster");
            StoredPolicies::default()
        });
        let records = stored
            .policies
            .into_iter()
            .take(POLICIES_MAX)
            .map(|record| (record.config.name.clone(), (record, 0)));
        self.policies = KnownPolicies {
            policies: records.collect(),
            deleted: stored.deleted,
            ..Default::default()
        };
    }

    /// Saves changed policies. A failed attempt is repeated after [`SAVE_RETRY_INTERVAL`].
    fn save_changed_policies(&mut self, now: Time) {
        let is_waiting = self.policies.save_at.is_some_and(|save_at| now < save_at);
        if !self.policies.is_unsaved || is_waiting {
            return;
        }
        let is_saved = self.keep_policies();
        self.policies.is_unsaved = !is_saved;
        self.policies.save_at = (!is_saved).then(|| now + SAVE_RETRY_INTERVAL);
    }

    /// Saves the policies. Returns false on failure. Of equal failures, the first is reported.
    fn keep_policies(&mut self) -> bool {
        let Some(cluster) = &self.config else { return true };
        let records = self.policies.policies.values().map(|(record, _)| record.clone()).collect();
        let stored = StoredPolicies { policies: records, deleted: self.policies.deleted.clone() };
        let saved = save_policies(self.shared.store.as_ref(), &cluster.name, &stored);
        let Err(error) = saved else {
            self.policies.save_failure.record_success();
            return true;
        };
        if self.policies.save_failure.record_failure(&error) {
            self.emit([policies_not_saved(&error)]);
        }
        false
    }

    /// Processes the complete set of policies read from the cluster. Ignores a set that is older
    /// than a key of a policy that was processed: it would delete policies that were added since,
    /// and the watch does not report them again.
    pub(in crate::cluster::driver) fn handle_policies(&mut self, now: Time, read: ReadPolicies) {
        let ReadPolicies { revision, mut policies } = read;
        if revision < self.policies.processed {
            return;
        }
        let has_excess = policies.len() > POLICIES_MAX;
        if has_excess {
            // All nodes ignore the newest ones.
            let newest = policies.iter().max_by_key(|(_, (record, _))| record.key);
            if let Some(newest) = newest.map(|(name, _)| name.clone()) {
                policies.remove(&newest);
            }
        }
        let removed: Vec<Name> = self
            .policies
            .policies
            .keys()
            .filter(|name| !policies.contains_key(*name))
            .cloned()
            .collect();
        for name in removed {
            self.forget_policy(now, &name);
        }
        for (name, (record, revision)) in policies {
            self.learn_policy(now, name, (record, revision));
        }
        if has_excess {
            self.report_excess();
        } else {
            self.policies.is_excess_reported = false;
        }
        (self.policies.is_due, self.policies.is_unsaved) = (true, true);
    }

    /// Processes a change of a policy's key.
    pub(in crate::cluster::driver) fn handle_policy(
        &mut self,
        now: Time,
        name: &str,
        key_state: &KeyState,
    ) {
        self.policies.processed = self.policies.processed.max(key_state.revision);
        match &key_state.entry {
            Some(entry) => {
                let Some((name, record)) = decode_policy(name, entry) else { return };
                self.learn_policy(now, name, record);
            }
            None => {
                let Ok(name) = name.parse::<Name>() else { return };
                let known_record = self.policies.policies.get(&name);
                if known_record.is_none_or(|(_, revision)| *revision > key_state.revision) {
                    return;
                }
                self.forget_policy(now, &name);
            }
        }
        self.policies.is_unsaved = true;
    }

    fn learn_policy(&mut self, now: Time, name: Name, record: (PolicyRecord, u64)) {
        let known_record = self.policies.policies.get(&name);
        if known_record.is_none() && self.policies.policies.len() >= POLICIES_MAX {
            self.report_excess();
            return;
        }
        // A watch event may be older than the last complete read.
        if known_record.is_some_and(|(_, revision)| *revision > record.1) {
            return;
        }
        let before = known_record.map(|(record, _)| record.key).filter(|key| *key != record.0.key);
        for store in self.stores.values_mut() {
            if let Some(policy) = before {
                store.handle_allocator_event(now, AllocatorEvent::PolicyRemoved { policy });
            }
            let (policy, limits) = (record.0.key, record.0.limits());
            store.handle_allocator_event(now, AllocatorEvent::PolicySet { policy, limits });
        }
        self.policies.deleted.remove(&name);
        self.policies.reported.remove(&name);
        self.policies.policies.insert(name, record);
        (self.policies.is_due, self.sampled_at) = (true, None);
    }

    fn forget_policy(&mut self, now: Time, name: &Name) {
        let Some((record, _)) = self.policies.policies.remove(name) else { return };
        for store in self.stores.values_mut() {
            store.handle_allocator_event(now, AllocatorEvent::PolicyRemoved { policy: record.key });
        }
        if self.policies.deleted.len() >= POLICIES_MAX {
            let desired = self.shared.desired();
            self.forget_deleted(&desired.config);
        }
        if self.policies.deleted.len() < POLICIES_MAX {
            self.policies.deleted.insert(name.clone());
        }
        (self.policies.is_due, self.sampled_at) = (true, None);
    }

    /// Emits an event that the cluster has too many policies, once until a complete read of the
    /// cluster has found at most [`POLICIES_MAX`].
    fn report_excess(&mut self) {
        if std::mem::replace(&mut self.policies.is_excess_reported, true) {
            return;
        }
        let text = format!(
            "The cluster's etcd has more than {POLICIES_MAX} shared policies, the most that a \
             cluster can have. This host ignores the newest ones, whose limits are not in effect. \
             Delete policies that no disk uses (`suimon qos policy delete NAME`), then restart the \
             daemon. If another program has written the keys `policies/NAME`, remove them from \
             etcd."
        );
        self.emit([EventDraft::new(EventKind::SharedPoliciesIgnored, "cluster", text)]);
    }

    /// Schedules an update of the policies in the desired state. Called when the desired state may
    /// have changed.
    pub(in crate::cluster::driver) fn schedule_policy_adoption(&mut self) {
        self.policies.is_due = true;
        self.policies.adoption.permit();
    }

    /// Saves changed policies. Updates the policies in the desired state to those of the cluster,
    /// and adds policies of the desired state that the cluster does not have to it. Updates nothing
    /// unless an update is due and all changes are saved: after a restart, a policy in the desired
    /// state whose deletion is not recorded would be added to the cluster again.
    pub(in crate::cluster::driver) fn adopt_policies(&mut self, now: Time) {
        self.save_changed_policies(now);
        let is_due = self.policies.is_due
            || self.policies.retry_at.is_some_and(|retry_at| retry_at <= now)
            || self.policies.adoption.is_due(now);
        // A change of a policy on this node writes the cluster's record first. The desired state
        // must not be updated in between.
        let is_up = matches!(self.link, Link::Up { .. });
        let is_ready = is_up && !self.policies.is_unsaved && !self.is_leaving;
        if !is_due || !is_ready || self.is_change_in_progress() {
            return;
        }
        (self.policies.is_due, self.policies.retry_at) = (false, None);
        let desired = self.shared.desired();
        self.forget_deleted(&desired.config);
        self.save_changed_policies(now);
        if self.policies.is_unsaved {
            self.policies.is_due = true;
            return;
        }
        self.report_deleted(&desired.config);
        self.add_missing(now, &desired.config);
        let operation = self.policies.adoption.operation();
        let state = operation.and_then(|id| self.shared.operations.state(id));
        if self.policies.adoption.may_begin(now, state) {
            self.adopt(now, &desired.config);
        }
    }

    /// Adds policies of the desired state that the cluster does not have to the cluster, at most
    /// [`ADDED_MAX`]: first those that the cluster has not refused.
    fn add_missing(&mut self, now: Time, config: &HostConfig) {
        let KnownPolicies { policies, deleted, retry_at, refused, .. } = &mut self.policies;
        let is_missing = |name: &Name| !policies.contains_key(name) && !deleted.contains(name);
        let missing = shared_policies(config).filter(|policy| is_missing(&policy.name));
        let (refused_before, others): (Vec<&QosPolicyConfig>, Vec<&QosPolicyConfig>) =
            missing.partition(|policy| refused.contains(&policy.name));
        for policy in others.iter().chain(&refused_before).take(ADDED_MAX) {
            self.tasks.push(self.session, Task::AddPolicy(Box::new((*policy).clone())));
            *retry_at = Some(now + RETRY_INTERVAL);
        }
        *refused = refused_before.into_iter().map(|policy| policy.name.clone()).collect();
    }

    /// Emits an event for a policy of this host that the cluster has refused, once per policy.
    pub(in crate::cluster::driver) fn report_refused_policy(&mut self, name: Name, reason: &str) {
        let text = format!(
            "Policy {name} of this host cannot be added to the cluster: {reason}. If the policy is \
             aggregated, its disks may be limited to 0 IOPS on shared stores."
        );
        let subject = format!("qos_policy/{name}");
        if self.policies.refused.insert(name) {
            let draft = EventDraft::new(EventKind::SharedPolicyRefused, subject, text);
            self.emit([draft.rate_limited()]);
        }
    }

    /// Requests the update of the policies in the desired state, unless it equals the cluster's.
    fn adopt(&mut self, now: Time, config: &HostConfig) {
        let records = self.policies.policies.values();
        let edit = Edit::AdoptClusterPolicies {
            policies: records.map(|(record, _)| record.config.clone()).collect(),
            deleted: self.policies.deleted.clone(),
        };
        if edit.apply_to(config).is_ok_and(|candidate| candidate == *config) {
            self.policies.adoption.end();
            return;
        }
        let operations = &self.shared.operations;
        let Ok(operation) = operations.add(&edit.kind(), &edit.subject(), true) else {
            self.policies.adoption.postpone(now + RETRY_INTERVAL);
            return;
        };
        let id = operation.id();
        // Minimums were checked where the policy was changed.
        let options = ChangeOptions { forces_minimums: true, ..ChangeOptions::default() };
        let command = Command::Change { operation, edit: Box::new(edit), options };
        match self.commands.try_send(command) {
            Ok(()) => {
                // An attempt replaces the failed one before it. Otherwise failed attempts would
                // displace other operations.
                if let Some(failed) = self.policies.adoption.operation() {
                    operations.remove_ended(failed);
                }
                self.policies.adoption.begin(now, id);
            }
            // The queue of the control thread is full.
            Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => {
                if let Command::Change { operation, .. } = command {
                    operation.withdraw();
                }
                self.policies.adoption.postpone(now + RETRY_INTERVAL);
            }
        }
    }

    /// Forgets deleted policies that the desired state does not contain. No change that adds them
    /// can be in progress.
    fn forget_deleted(&mut self, config: &HostConfig) {
        let KnownPolicies { deleted, reported, .. } = &mut self.policies;
        let before = deleted.len();
        let desired: BTreeSet<&Name> = shared_policies(config).map(|policy| &policy.name).collect();
        deleted.retain(|name| desired.contains(name));
        reported.retain(|name| deleted.contains(name));
        let is_changed = deleted.len() != before;
        self.policies.is_unsaved |= is_changed;
    }

    /// Emits events for deleted policies that disks of this host use.
    fn report_deleted(&mut self, config: &HostConfig) {
        let used: BTreeSet<&Name> =
            config.disks.iter().filter_map(|disk| disk.qos_policy.as_ref()).collect();
        let new: Vec<Name> = self
            .policies
            .deleted
            .iter()
            .filter(|name| used.contains(*name) && !self.policies.reported.contains(*name))
            .cloned()
            .collect();
        for name in new {
            let text = format!(
                "The cluster does not have policy {name} any more, but disks of this host use it. \
                 If it is aggregated, they may be limited to 0 IOPS on shared stores. Set another \
                 policy (`suimon qos set DISK --policy NAME`), or create it again (`suimon qos \
                 policy set {name} …`)."
            );
            let kind = EventKind::SharedPolicyUnknown;
            self.emit([EventDraft::new(kind, format!("qos_policy/{name}"), text)]);
            self.policies.reported.insert(name);
        }
    }
}
