//! Status of the cluster as API types. Functions that read etcd block only their calling thread.

mod queries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_cluster_qos::{
    DiskKey, NodeId, PolicyCap, PolicyKey, ReportedDisk, Term, TimedRateLimit,
};
use suimon_contract::{ClusterCap, ClusterDisk, ClusterHeartbeat, DiskOverGuarantee, Name};
use suimon_ports::ClusterKvStore;
use suimon_quantity::Time;

use super::heartbeat::Heartbeat;
use super::keys::{MemberRecord, NodeReport};
use super::shared_store::SharedStore;

/// Maximum number of remembered names of other nodes' disks.
const NAMES_MAX: usize = 8192;
/// Maximum length in bytes of such a name. Names of disks, and of copies in progress, are shorter.
const NAME_BYTES_MAX: usize = 256;
/// Maximum number of aggressors shown per disk.
const AGGRESSORS_MAX: usize = 8;

/// Reachability of the cluster's etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Reachability {
    /// No cluster is configured, or the node has not tried to join it yet.
    #[default]
    None,
    /// The node is in a session, and etcd responds.
    Up,
    /// The node could not join, or etcd does not respond; with the reason.
    Unreachable(String),
    /// The cluster rejects the host as a node; with the reason.
    Refused(String),
}

/// State that the cluster thread publishes.
#[derive(Default)]
pub(crate) struct PublishedClusterStatus {
    pub(super) reachability: Reachability,
    pub(super) store: Option<Arc<dyn ClusterKvStore>>,
    pub(super) names: BTreeMap<(NodeId, DiskKey), String>,
    /// True if reservations were given back as requested.
    pub(super) has_left: bool,
    now: Time,
    stores: BTreeMap<Name, StoreSnapshot>,
    members: BTreeMap<String, NodeId>,
    alive: BTreeSet<String>,
    /// Numbers of shared QoS policies by name.
    pub(super) policies: BTreeMap<Name, PolicyKey>,
}

/// Published state of a store.
struct StoreSnapshot {
    leader: Option<(String, Term)>,
    cap: TimedRateLimit,
    limit_iops: Option<u64>,
    mismatch: Option<String>,
    policies: Vec<PolicyCap>,
    heartbeats: Vec<ClusterHeartbeat>,
}

impl PublishedClusterStatus {
    pub(super) fn update(
        &mut self,
        now: Time,
        stores: &BTreeMap<Name, SharedStore>,
        members: &BTreeMap<String, MemberRecord>,
        alive: &BTreeSet<String>,
    ) {
        self.now = now;
        let snapshot = |store: &SharedStore| StoreSnapshot {
            leader: store.leader.clone(),
            cap: store.cap(),
            limit_iops: store.limit_iops(),
            mismatch: store.unavailable_reason(),
            policies: store.policy_caps.clone(),
            heartbeats: store
                .heartbeats
                .alive(now)
                .map(|(heartbeat, age)| on_store(heartbeat, age))
                .collect(),
        };
        self.stores = stores.iter().map(|(name, store)| (name.clone(), snapshot(store))).collect();
        self.members = members.iter().map(|(name, member)| (name.clone(), member.id)).collect();
        self.alive.clone_from(alive);
    }

    /// Stores the name of a node's disk, by which status and events show the disk. Ignores names
    /// above [`NAME_BYTES_MAX`], which no disk can have but a node may report.
    pub(super) fn remember_disk_name(&mut self, node: NodeId, disk: DiskKey, name: &str) {
        if name.len() > NAME_BYTES_MAX {
            return;
        }
        let key = (node, disk);
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&key) {
            self.names.clear();
        }
        self.names.insert(key, name.to_owned());
    }

    /// Returns the reason why no leader has responded for a store.
    pub(super) fn missing_leader_reason(&self, store: &Name) -> String {
        match self.stores.get(store) {
            Some(StoreSnapshot { mismatch: Some(reason), .. }) => reason.clone(),
            Some(StoreSnapshot { leader: None, .. }) => {
                "the nodes are electing a leader of the store".to_owned()
            }
            Some(StoreSnapshot { leader: Some((node, _)), .. }) => {
                format!(
                    "node {node}, the leader of the store, has not granted the reservation in \
                     time"
                )
            }
            None => "the store is new to the cluster".to_owned(),
        }
    }

    fn name_of(&self, node: NodeId) -> String {
        let member_entry = self.members.iter().find(|(_, id)| **id == node);
        member_entry.map_or_else(|| format!("node number {}", node.0), |(name, _)| name.clone())
    }
}

/// Report of a node on a store.
struct Reported {
    store: String,
    node: NodeId,
    reported: NodeReport,
}

impl Reported {
    fn disks(&self, view: &PublishedClusterStatus, reports: &[Self]) -> Vec<ClusterDisk> {
        let report = &self.reported.report;
        let mut named_disks: BTreeMap<DiskKey, (&ReportedDisk, bool)> = BTreeMap::new();
        named_disks
            .extend(report.disks_over_guarantee.iter().map(|disk| (disk.disk, (disk, false))));
        named_disks
            .extend(report.disks_below_guarantee.iter().map(|disk| (disk.disk, (disk, true))));
        let cluster_disk = |(disk, is_unmet): (&ReportedDisk, bool)| ClusterDisk {
            node: view.name_of(self.node),
            store: self.store.clone(),
            disk: self.disk_name(disk.disk),
            guaranteed_iops: disk.guaranteed_iops,
            demand_iops: disk.demand_iops,
            delivered_iops: disk.delivered_iops,
            disks_over_guarantee: is_unmet.then(|| aggressors(view, &self.store, reports)),
        };
        named_disks.into_values().map(cluster_disk).collect()
    }

    fn disk_name(&self, disk: DiskKey) -> String {
        let name_entry = self.reported.names.iter().find(|(key, _)| *key == disk);
        name_entry.map_or_else(|| format!("{:016x}", disk.0), |(_, name)| name.clone())
    }
}

/// Returns the disks that exceed their guaranteed rate on a store, the highest excess first.
fn aggressors(
    view: &PublishedClusterStatus,
    store: &str,
    reports: &[Reported],
) -> Vec<DiskOverGuarantee> {
    let of_store = reports.iter().filter(|report| report.store == store);
    let mut disks: Vec<DiskOverGuarantee> = of_store
        .flat_map(|report| {
            report.reported.report.disks_over_guarantee.iter().map(move |disk| (report, disk))
        })
        .map(|(report, disk)| DiskOverGuarantee {
            node: view.name_of(report.node),
            disk: report.disk_name(disk.disk),
            delivered_iops: disk.delivered_iops,
            guaranteed_iops: disk.guaranteed_iops,
        })
        .collect();
    let excess = |aggressor: &DiskOverGuarantee| {
        aggressor.delivered_iops.saturating_sub(aggressor.guaranteed_iops)
    };
    disks.sort_by_key(|aggressor| std::cmp::Reverse(excess(aggressor)));
    disks.truncate(AGGRESSORS_MAX);
    disks
}

/// Converts a heartbeat to the API type. `is_other_cluster` is set by the caller, which has the
/// cluster's members.
fn on_store(heartbeat: &Heartbeat, age: std::time::Duration) -> ClusterHeartbeat {
    ClusterHeartbeat {
        cluster: heartbeat.cluster.clone(),
        node: heartbeat.node.clone(),
        is_from_other_cluster: false,
        delivered_iops: heartbeat.delivered_iops,
        reserved_iops: heartbeat.reserved_iops,
        age_ms: milliseconds(age),
    }
}

fn displayed(cap: &TimedRateLimit, now: Time) -> ClusterCap {
    let lease = cap.leased_iops_until.filter(|(_, until)| *until > now);
    ClusterCap {
        iops: cap.iops_at(now),
        reserved_iops: cap.reserved_iops,
        leased_iops: lease.map(|(iops, _)| iops),
        lease_remaining_ms: lease.map(|(_, until)| milliseconds(until.since(now))),
        fallback_iops: cap.next_iops_from.map(|(iops, _)| iops),
        time_to_fallback_ms: cap
            .next_iops_from
            .map(|(_, starts_at)| milliseconds(starts_at.since(now))),
    }
}

fn milliseconds(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_disks_that_other_nodes_report_are_bounded() {
        let mut view = PublishedClusterStatus::default();
        let long_name = "x".repeat(1 << 20);
        for disk in 0..20_000 {
            view.remember_disk_name(NodeId(1), DiskKey(disk), "disk");
            view.remember_disk_name(NodeId(2), DiskKey(disk), &long_name);
        }
        assert!(view.names.len() <= NAMES_MAX, "{}", view.names.len());
        assert!(view.names.values().all(|name| name == "disk"));
        assert!(view.names.contains_key(&(NodeId(1), DiskKey(19_999))));
        // A known name needs no room.
        let before = view.names.len();
        view.remember_disk_name(NodeId(1), DiskKey(19_999), "disk");
        assert_eq!(view.names.len(), before);
    }
}
