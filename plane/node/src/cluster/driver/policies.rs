//! Shared QoS policies: received from the cluster, stored, and applied to the desired state and to
//! disks.

mod adoption;
mod driving;

use std::collections::{BTreeMap, BTreeSet};

use suimon_cluster_qos::{PolicyCap, PolicyKey};
use suimon_contract::{HostConfig, Name, QosPolicyConfig};
use suimon_quantity::{StoreId, Time, TimedRateLimit};
use suimon_storage_qos::{PolicyId, PolicyShare};

use self::adoption::Adoption;
use crate::cluster::policies::Policies;
use crate::disks::Disks;
use crate::shared::Shared;
use crate::state::ReportedFailure;

/// Known shared policies of the cluster.
#[derive(Default)]
pub(super) struct KnownPolicies {
    pub(super) policies: Policies,
    /// Highest revision of etcd of which a key of a policy was processed in this session.
    pub(super) processed: u64,
    /// Deleted policies that the desired state may still contain, at most as many as a cluster can
    /// have policies.
    deleted: BTreeSet<Name>,
    /// True if the desired state must be updated.
    is_due: bool,
    /// Time at which policies that the cluster lacks are added again.
    retry_at: Option<Time>,
    adoption: Adoption,
    /// True if the policies have changed since they were last saved.
    is_unsaved: bool,
    /// Earliest time of the next attempt to save the policies, if the last one has failed.
    save_at: Option<Time>,
    save_failure: ReportedFailure,
    /// Policies of the desired state that the cluster has refused, as reported by an event.
    refused: BTreeSet<Name>,
    /// True if an event has reported that the cluster has too many policies.
    is_excess_reported: bool,
    /// Deleted policies that disks use and that were reported by an event.
    reported: BTreeSet<Name>,
}

impl KnownPolicies {
    /// Returns the numbers of policies by name.
    pub(super) fn keys(&self) -> BTreeMap<Name, PolicyKey> {
        self.policies.iter().map(|(name, (record, _))| (name.clone(), record.key)).collect()
    }

    /// Sets this node's shares of the limits of policies that span nodes, for the disks on a store.
    pub(super) fn set_policy_shares(
        &self,
        shared: &Shared,
        (name, id): (&Name, StoreId),
        caps: &[PolicyCap],
    ) {
        let desired = shared.desired();
        let disks = &shared.disks;
        for (policy, part) in parts(&self.policies, disks, (&desired.config, name), caps) {
            disks.dependencies.plane.set_policy_share(id, policy, Some(part));
        }
    }

    /// Removes the cluster's shares, so that policies that span nodes apply in full to this node's
    /// disks on a store.
    pub(super) fn remove_policy_shares(&self, shared: &Shared, (name, id): (&Name, StoreId)) {
        let desired = shared.desired();
        for policy in policies_on(&desired.config, name) {
            let policy = shared.disks.policy_id(&policy.name);
            shared.disks.dependencies.plane.set_policy_share(id, policy, None);
        }
    }
}

/// Returns this node's share of each policy that spans nodes and is used on a store: minimum and
/// maximum of 0 if the cluster has granted no share.
fn parts(
    known_policies: &Policies,
    disks: &Disks,
    (config, store): (&HostConfig, &Name),
    caps: &[PolicyCap],
) -> BTreeMap<PolicyId, PolicyShare> {
    let used = policies_on(config, store);
    let caps: BTreeMap<PolicyKey, &PolicyCap> = caps.iter().map(|cap| (cap.policy, cap)).collect();
    let part = |policy: &QosPolicyConfig| {
        let key = known_policies.get(&policy.name).map(|(record, _)| record.key);
        let cap = key.and_then(|key| caps.get(&key));
        let nothing = PolicyShare { min_iops: 0, max: Some(TimedRateLimit::default()) };
        let part = cap.map_or(nothing, |cap| PolicyShare { min_iops: cap.min_iops, max: cap.max });
        (disks.policy_id(&policy.name), part)
    };
    used.into_iter().map(part).collect()
}

/// Returns the policies that span nodes and are used on a store.
fn policies_on<'a>(config: &'a HostConfig, store: &Name) -> Vec<&'a QosPolicyConfig> {
    let disks_on_store = config.disks.iter().filter(|disk| disk.store == *store);
    let used: BTreeSet<&Name> =
        disks_on_store.filter_map(|disk| disk.qos_policy.as_ref()).collect();
    let is_used = |policy: &&QosPolicyConfig| policy.spans_nodes() && used.contains(&policy.name);
    config.qos_policies.iter().filter(is_used).collect()
}
