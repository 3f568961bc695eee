//! Handling of shared policies by the cluster thread.

use std::time::Duration;

use suimon_cluster_qos::AllocatorEvent;
use suimon_contract::{EventKind, HostConfig, Name};
use suimon_quantity::Time;

use super::KnownPolicies;
use crate::cluster::driver::{Driver, Link};
use crate::cluster::inbox::KeyState;
use crate::cluster::messages::Task;
use crate::cluster::policies::{Policies, PolicyRecord, decode_policy, shared_policies};
use crate::cluster::records::{StoredPolicies, load_policies, save_policies};
use crate::command::Command;
use crate::events::EventDraft;
use crate::{ChangeOptions, Edit};

/// Interval after which a failed update of the desired state is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

impl Driver {
    /// Loads the policies that were known when the daemon last ran.
    pub(in crate::cluster::driver) fn load_policies(&mut self) {
        let Some(cluster) = &self.config else { return };
        let stored = load_policies(self.shared.store.as_ref(), &cluster.name);
        let stored = stored.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the saved policies of the cluster");
            StoredPolicies::default()
        });
        let records =
            stored.all.into_iter().map(|record| (record.config.name.clone(), (record, 0)));
        self.policies = KnownPolicies {
            policies: records.collect(),
            deleted: stored.deleted,
            ..Default::default()
        };
    }

    fn keep_policies(&self) {
        let Some(cluster) = &self.config else { return };
        let records = self.policies.policies.values().map(|(record, _)| record.clone()).collect();
        let stored = StoredPolicies { all: records, deleted: self.policies.deleted.clone() };
        let saved = save_policies(self.shared.store.as_ref(), &cluster.name, &stored);
        if let Err(error) = saved {
            tracing::error!(%error, "cannot save the policies of the cluster");
        }
    }

    /// Processes the complete set of policies read from the cluster.
    pub(in crate::cluster::driver) fn take_policies(&mut self, now: Time, policies: Policies) {
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
        self.policies.is_due = true;
        self.keep_policies();
    }

    /// Processes a change of a policy's key.
    pub(in crate::cluster::driver) fn handle_policy(
        &mut self,
        now: Time,
        name: &str,
        key_state: &KeyState,
    ) {
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
        self.keep_policies();
    }

    fn learn_policy(&mut self, now: Time, name: Name, record: (PolicyRecord, u64)) {
        let known_record = self.policies.policies.get(&name);
        // A watch event may be older than the last complete read.
        if known_record.is_some_and(|(_, revision)| *revision > record.1) {
            return;
        }
        let before = known_record.map(|(record, _)| record.key).filter(|key| *key != record.0.key);
        for store in self.stores.values_mut() {
            if let Some(policy) = before {
                store.handle_allocator(now, AllocatorEvent::PolicyRemoved { policy });
            }
            let (policy, limits) = (record.0.key, record.0.limits());
            store.handle_allocator(now, AllocatorEvent::PolicySet { policy, limits });
        }
        self.policies.deleted.remove(&name);
        self.policies.reported.remove(&name);
        self.policies.policies.insert(name, record);
        (self.policies.is_due, self.sampled_at) = (true, None);
    }

    fn forget_policy(&mut self, now: Time, name: &Name) {
        let Some((record, _)) = self.policies.policies.remove(name) else { return };
        for store in self.stores.values_mut() {
            store.handle_allocator(now, AllocatorEvent::PolicyRemoved { policy: record.key });
        }
        self.policies.deleted.insert(name.clone());
        (self.policies.is_due, self.sampled_at) = (true, None);
    }

    /// Schedules an update of the policies in the desired state. Called when the desired state may
    /// have changed.
    pub(in crate::cluster::driver) fn follow_policies(&mut self) {
        self.policies.is_due = true;
    }

    /// Updates the policies in the desired state to those of the cluster, and adds policies of the
    /// desired state that the cluster does not have to it. Does nothing unless an update is due.
    pub(in crate::cluster::driver) fn adopt_policies(&mut self, now: Time) {
        let is_due =
            self.policies.is_due || self.policies.retry_at.is_some_and(|retry_at| retry_at <= now);
        // A change of a policy on this node writes the cluster's record first. The desired state
        // must not be updated in between.
        let is_up = matches!(self.link, Link::Up { .. });
        if !is_due || !is_up || self.is_changing() || self.is_leaving {
            return;
        }
        (self.policies.is_due, self.policies.retry_at) = (false, None);
        let desired = self.shared.desired();
        self.forget_deleted(&desired.config);
        self.report_deleted(&desired.config);
        for policy in shared_policies(&desired.config) {
            let known_policies = &self.policies;
            if !known_policies.policies.contains_key(&policy.name)
                && !known_policies.deleted.contains(&policy.name)
            {
                let task = Task::AddPolicy(Box::new(policy.clone()));
                self.tasks.push(self.session, task);
                self.policies.retry_at = Some(now + RETRY_INTERVAL);
            }
        }
        let known_policies = &self.policies;
        let edit = Edit::Adopt {
            policies: known_policies
                .policies
                .values()
                .map(|(record, _)| record.config.clone())
                .collect(),
            deleted: known_policies.deleted.clone(),
        };
        if edit.candidate(&desired.config).is_ok_and(|config| config == desired.config) {
            return;
        }
        let operation = self.shared.operations.add(&edit.kind(), &edit.subject(), true);
        self.policies.retry_at = Some(now + RETRY_INTERVAL);
        let Ok(operation) = operation else { return };
        // Minimums were checked where the policy was changed.
        let options = ChangeOptions { force: true, ..ChangeOptions::default() };
        let command = Command::Change { operation, edit: Box::new(edit), options };
        // If the queue of the control thread is full, the update is repeated later.
        let _ = self.commands.try_send(command);
    }

    /// Forgets deleted policies that the desired state does not contain. No change that adds them
    /// can be in progress.
    fn forget_deleted(&mut self, config: &HostConfig) {
        let KnownPolicies { deleted, reported, .. } = &mut self.policies;
        let before = deleted.len();
        deleted.retain(|name| shared_policies(config).any(|policy| policy.name == *name));
        reported.retain(|name| deleted.contains(name));
        if deleted.len() != before {
            self.keep_policies();
        }
    }

    /// Emits events for deleted policies that disks of this host use.
    fn report_deleted(&mut self, config: &HostConfig) {
        let is_used =
            |name: &Name| config.disks.iter().any(|disk| disk.qos_policy.as_ref() == Some(name));
        let new: Vec<Name> = self
            .policies
            .deleted
            .iter()
            .filter(|name| is_used(name) && !self.policies.reported.contains(*name))
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
