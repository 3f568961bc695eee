//! Status of the cluster as API types. Functions that read etcd block their caller only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_cluster_qos::{Cap, DiskKey, Grant, NamedDisk, NodeId, PolicyCap, PolicyKey, Term};
use suimon_contract::{
    ApiError, ClusterAggressor, ClusterBeat, ClusterCap, ClusterDisk, ClusterMember, ClusterShare,
    ClusterStatus, ClusterStore as StoreShown, Condition, ErrorCode, Health, Name, QosPolicyPart,
    StoreConfig,
};
use suimon_ports::{ClusterEntry, ClusterStore};
use suimon_quantity::Time;

use super::beats::Beat;
use super::keys::{GRANTS, MemberRecord, REPORTS, Said, grant_of, report_of};
use super::session::read;
use super::shared_store::SharedStore;
use super::{cluster_prefix, shared_stores};
use crate::disks::capability;
use crate::edit::no_cluster;
use crate::shared::Shared;

/// Maximum number of remembered names of other nodes' disks.
const NAMES_MAX: usize = 8192;
/// Maximum number of aggressors shown per disk.
const AGGRESSORS_MAX: usize = 8;

/// Reachability of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Reach {
    /// The host is not a node of a cluster.
    #[default]
    None,
    Up,
    Unreachable(String),
    Refused(String),
}

/// State that the cluster thread publishes.
#[derive(Default)]
pub(crate) struct View {
    pub(super) reach: Reach,
    pub(super) store: Option<Arc<dyn ClusterStore>>,
    pub(super) names: BTreeMap<(NodeId, DiskKey), String>,
    /// True if reservations were given back as requested.
    pub(super) has_left: bool,
    now: Time,
    stores: BTreeMap<Name, Seen>,
    members: BTreeMap<String, NodeId>,
    alive: BTreeSet<String>,
    /// Numbers of shared policies.
    pub(super) policies: BTreeMap<Name, PolicyKey>,
}

/// Published state of a store.
struct Seen {
    leader: Option<(String, Term)>,
    cap: Cap,
    limit_iops: Option<u64>,
    wrong: Option<String>,
    policies: Vec<PolicyCap>,
    beats: Vec<ClusterBeat>,
}

impl View {
    pub(super) fn show(
        &mut self,
        now: Time,
        stores: &BTreeMap<Name, SharedStore>,
        members: &BTreeMap<String, MemberRecord>,
        alive: &BTreeSet<String>,
    ) {
        self.now = now;
        let seen = |store: &SharedStore| Seen {
            leader: store.leader.clone(),
            cap: store.cap(),
            limit_iops: store.limit_iops(),
            wrong: store.why_not(),
            policies: store.policy_caps.clone(),
            beats: store.beats.living(now).map(|(beat, age)| on_store(beat, age)).collect(),
        };
        self.stores = stores.iter().map(|(name, store)| (name.clone(), seen(store))).collect();
        self.members = members.iter().map(|(name, of)| (name.clone(), of.id)).collect();
        self.alive.clone_from(alive);
    }

    /// Remembers the name of a node's disk.
    pub(super) fn call(&mut self, node: NodeId, disk: DiskKey, name: &str) {
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        self.names.insert((node, disk), name.to_owned());
    }

    /// Returns the reason why no leader has responded for a store.
    pub(super) fn why_nobody_answers(&self, store: &Name) -> String {
        match self.stores.get(store) {
            Some(Seen { wrong: Some(why), .. }) => why.clone(),
            Some(Seen { leader: None, .. }) => "the store has no leader now".to_owned(),
            Some(Seen { leader: Some((node, _)), .. }) => {
                format!(
                    "node {node}, the leader of the store, has not granted the reservation in \
                     time"
                )
            }
            None => "the store is new to the cluster".to_owned(),
        }
    }

    fn name_of(&self, node: NodeId) -> String {
        let found = self.members.iter().find(|(_, id)| **id == node);
        found.map_or_else(|| format!("node number {}", node.0), |(name, _)| name.clone())
    }
}

/// Report of a node on a store.
struct Reported {
    store: String,
    node: NodeId,
    said: Said,
}

impl Shared {
    /// Returns the status of the cluster. Reads grants from etcd.
    pub(crate) fn cluster_status(&self) -> ClusterStatus {
        let desired = self.desired();
        let config = desired.config.cluster.clone();
        let Some(cluster) = &config else {
            let reason = "no cluster is configured".to_owned();
            let condition = Condition { health: Health::Down, reason: Some(reason) };
            let (members, stores) = (Vec::new(), Vec::new());
            return ClusterStatus { config, condition, age_ms: None, members, stores };
        };
        let grants = self.read_cluster(&cluster.name, GRANTS).unwrap_or_default();
        let view = self.cluster.view();
        let condition = match &view.reach {
            Reach::Up => Condition { health: Health::Up, reason: None },
            Reach::None => down("the host is joining the cluster"),
            Reach::Unreachable(reason) => down(reason),
            Reach::Refused(reason) => {
                Condition { health: Health::Failed, reason: Some(reason.clone()) }
            }
        };
        let member = |(name, id): (&String, &NodeId)| ClusterMember {
            name: name.clone(),
            id: id.0,
            is_this: *name == cluster.node.as_str(),
            is_alive: view.alive.contains(name),
        };
        let stores = shared_stores(&desired.config);
        let in_order = desired.config.stores.iter().filter(|of| stores.contains_key(&of.name));
        ClusterStatus {
            condition,
            age_ms: view.store.as_ref().and_then(|store| store.age()).map(milliseconds),
            members: view.members.iter().map(member).collect(),
            stores: in_order.map(|store| self.shared_store(&view, store, &grants)).collect(),
            config,
        }
    }

    fn shared_store(
        &self,
        view: &View,
        store: &StoreConfig,
        grants: &[(String, ClusterEntry)],
    ) -> StoreShown {
        let of_it = grants.iter().filter_map(|(key, entry)| {
            let (node, of) = grant_of(key)?;
            let grant = (of == store.name.as_str()).then(|| read::<Grant>(entry)).flatten()?;
            Some((node, grant))
        });
        let of_it: Vec<(NodeId, Grant)> = of_it.collect();
        let last = of_it.iter().max_by_key(|(_, grant)| grant.id);
        let seen = view.stores.get(&store.name);
        let leader = seen.and_then(|seen| seen.leader.clone());
        let limit_iops = seen.and_then(|seen| seen.limit_iops);
        let limit_iops = limit_iops.or_else(|| last.map(|(_, grant)| grant.limit_iops));
        let capability_iops = capability(store, &self.disks.measured()).iops();
        let is_less = |limit: u64| capability_iops.is_some_and(|iops| limit < iops);
        let share = |(node, grant): &(NodeId, Grant)| ClusterShare {
            node: view.name_of(*node),
            leased_iops: grant.store.leased_iops,
            reserved_iops: grant.store.reserved_iops,
        };
        let cluster = self.desired().config.cluster.as_ref().map(|of| of.name.clone());
        let known = |beat: &ClusterBeat| {
            let is_member = view.members.contains_key(beat.node.as_str());
            ClusterBeat {
                is_stranger: Some(&beat.cluster) != cluster.as_ref() || !is_member,
                ..beat.clone()
            }
        };
        let cap = seen.map(|seen| shown(&seen.cap, self.plane.now())).unwrap_or_default();
        StoreShown {
            store: store.name.clone(),
            term: leader.as_ref().map(|(_, term)| term.0),
            leader: leader.map(|(node, _)| node),
            capability_iops,
            limit_iops,
            has_foreign_load: limit_iops.is_some_and(is_less),
            cap,
            shares: of_it.iter().map(share).collect(),
            seen: seen.into_iter().flat_map(|seen| &seen.beats).map(known).collect(),
            wrong: seen.and_then(|seen| seen.wrong.clone()),
        }
    }

    /// Returns this host's parts of a policy that spans nodes, by store.
    pub(crate) fn policy_parts(&self, policy: &Name) -> Vec<QosPolicyPart> {
        let (now, view) = (self.plane.now(), self.cluster.view());
        let Some(key) = view.policies.get(policy) else { return Vec::new() };
        let of_store = |(store, seen): (&Name, &Seen)| {
            let part = seen.policies.iter().find(|part| part.policy == *key)?;
            let max = part.max.as_ref().map(|cap| shown(cap, now));
            Some(QosPolicyPart { store: store.clone(), min_iops: part.min_iops, max })
        };
        view.stores.iter().filter_map(of_store).collect()
    }

    /// Returns the disks of all nodes on shared stores, as far as reports contain them.
    ///
    /// # Errors
    /// Fails if no cluster is configured, or it does not respond.
    pub(crate) fn cluster_flows(&self) -> Result<Vec<ClusterDisk>, ApiError> {
        let desired = self.desired();
        let refused = |text: &str| ApiError::new(ErrorCode::HostError, text).about("cluster");
        let Some(cluster) = &desired.config.cluster else {
            return Err(no_cluster());
        };
        let reports = self.read_cluster(&cluster.name, REPORTS).ok_or_else(|| {
            refused("etcd does not respond; `suimon cluster status` shows the reason")
        })?;
        let view = self.cluster.view();
        let lives = |node: NodeId| view.alive.contains(&view.name_of(node));
        let reports: Vec<Reported> = reports
            .iter()
            .filter_map(|(key, entry)| {
                let (store, node) = report_of(key).filter(|(_, node)| lives(*node))?;
                Some(Reported { store: store.to_owned(), node, said: read(entry)? })
            })
            .collect();
        let mut disks: Vec<ClusterDisk> =
            reports.iter().flat_map(|of| of.disks(&view, &reports)).collect();
        disks.sort_by(|a, b| (&a.store, &a.node, &a.disk).cmp(&(&b.store, &b.node, &b.disk)));
        Ok(disks)
    }

    /// Returns all entries below a prefix, without the cluster's prefix; `None` if etcd does not
    /// respond.
    fn read_cluster(&self, cluster: &Name, prefix: &str) -> Option<Vec<(String, ClusterEntry)>> {
        let store = self.cluster.view().store.clone()?;
        let root = cluster_prefix(cluster);
        let read = store.read(&format!("{root}{prefix}"));
        let view = read.inspect_err(|error| tracing::debug!(%error, "not read yet")).ok()?;
        let short = |entry: ClusterEntry| Some((entry.key.strip_prefix(&root)?.to_owned(), entry));
        Some(view.entries.into_iter().filter_map(short).collect())
    }
}

impl Reported {
    fn disks(&self, view: &View, all: &[Self]) -> Vec<ClusterDisk> {
        let report = &self.said.report;
        let mut named: BTreeMap<DiskKey, (&NamedDisk, bool)> = BTreeMap::new();
        named.extend(report.largest.iter().map(|of| (of.disk, (of, false))));
        named.extend(report.unmet.iter().map(|of| (of.disk, (of, true))));
        let shown = |(of, is_unmet): (&NamedDisk, bool)| ClusterDisk {
            node: view.name_of(self.node),
            store: self.store.clone(),
            disk: self.disk_name(of.disk),
            entitled_iops: of.entitled_iops,
            demanded_iops: of.demanded_iops,
            delivered_iops: of.delivered_iops,
            aggressors: is_unmet.then(|| aggressors(view, &self.store, all)),
        };
        named.into_values().map(shown).collect()
    }

    fn disk_name(&self, disk: DiskKey) -> String {
        let found = self.said.names.iter().find(|(key, _)| *key == disk);
        found.map_or_else(|| format!("{:016x}", disk.0), |(_, name)| name.clone())
    }
}

/// Returns the disks that exceed their guaranteed rate on a store, the highest excess first.
fn aggressors(view: &View, store: &str, all: &[Reported]) -> Vec<ClusterAggressor> {
    let of_store = all.iter().filter(|of| of.store == store);
    let mut found: Vec<ClusterAggressor> = of_store
        .flat_map(|of| of.said.report.largest.iter().map(move |disk| (of, disk)))
        .map(|(of, disk)| ClusterAggressor {
            node: view.name_of(of.node),
            disk: of.disk_name(disk.disk),
            delivered_iops: disk.delivered_iops,
            entitled_iops: disk.entitled_iops,
        })
        .collect();
    let beyond = |of: &ClusterAggressor| of.delivered_iops.saturating_sub(of.entitled_iops);
    found.sort_by_key(|of| std::cmp::Reverse(beyond(of)));
    found.truncate(AGGRESSORS_MAX);
    found
}

/// Converts a heartbeat to the API type. `is_stranger` is set by the caller, which has the
/// cluster's members.
fn on_store(beat: &Beat, age: std::time::Duration) -> ClusterBeat {
    ClusterBeat {
        cluster: beat.cluster.clone(),
        node: beat.node.clone(),
        is_stranger: false,
        delivered_iops: beat.delivered_iops,
        reserved_iops: beat.reserved_iops,
        age_ms: milliseconds(age),
    }
}

fn shown(cap: &Cap, now: Time) -> ClusterCap {
    let lease = cap.leased.filter(|(_, until)| *until > now);
    ClusterCap {
        iops: cap.iops_at(now),
        reserved_iops: cap.reserved_iops,
        leased_iops: lease.map(|(iops, _)| iops),
        lease_ms: lease.map(|(_, until)| milliseconds(until.since(now))),
        fallback_iops: cap.late.map(|(iops, _)| iops),
        fallback_ms: cap.late.map(|(_, from)| milliseconds(from.since(now))),
    }
}

fn milliseconds(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn down(reason: impl Into<String>) -> Condition {
    Condition { health: Health::Down, reason: Some(reason.into()) }
}
