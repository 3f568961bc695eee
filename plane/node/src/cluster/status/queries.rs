//! Queries of the status, which may read the cluster's store.

use suimon_cluster_qos::{NodeGrant, NodeId};
use suimon_contract::{
    ApiError, ClusterDisk, ClusterHeartbeat, ClusterMember, ClusterShare, ClusterStatus, Condition,
    ErrorCode, Health, Name, QosPolicyShare, SharedStoreStatus as StoreShown, StoreConfig,
};
use suimon_ports::ClusterEntry;

use super::{
    PublishedClusterStatus, Reachability, Reported, StoreSnapshot, displayed, milliseconds,
};
use crate::cluster::encoding::decode_entry;
use crate::cluster::keys::{GRANTS, REPORTS, parse_grant_key, parse_report_key};
use crate::cluster::{cluster_prefix, shared_stores};
use crate::disks::capacity;
use crate::errors::no_cluster;
use crate::shared::Shared;

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
        let condition = match &view.reachability {
            Reachability::Up => Condition { health: Health::Up, reason: None },
            Reachability::None => down("the host is joining the cluster"),
            Reachability::Unreachable(reason) => down(reason),
            Reachability::Refused(reason) => {
                Condition { health: Health::Failed, reason: Some(reason.clone()) }
            }
        };
        let member = |(name, id): (&String, &NodeId)| ClusterMember {
            name: name.clone(),
            id: id.0,
            is_this_host: *name == cluster.node.as_str(),
            is_alive: view.alive.contains(name),
        };
        let stores = shared_stores(&desired.config);
        let in_order = desired
            .config
            .stores
            .iter()
            .filter(|store_config| stores.contains_key(&store_config.name));
        ClusterStatus {
            condition,
            age_ms: view
                .store
                .as_ref()
                .and_then(|store| store.time_since_response())
                .map(milliseconds),
            members: view.members.iter().map(member).collect(),
            stores: in_order.map(|store| self.shared_store(&view, store, &grants)).collect(),
            config,
        }
    }

    pub(super) fn shared_store(
        &self,
        view: &PublishedClusterStatus,
        store: &StoreConfig,
        grants: &[(String, ClusterEntry)],
    ) -> StoreShown {
        let store_grants = grants.iter().filter_map(|(key, entry)| {
            let (node, grant_store) = parse_grant_key(key)?;
            let grant = (grant_store == store.name.as_str())
                .then(|| decode_entry::<NodeGrant>(entry))
                .flatten()?;
            Some((node, grant))
        });
        let store_grants: Vec<(NodeId, NodeGrant)> = store_grants.collect();
        let last = store_grants.iter().max_by_key(|(_, grant)| grant.id);
        let snapshot = view.stores.get(&store.name);
        let leader = snapshot.and_then(|snapshot| snapshot.leader.clone());
        let limit_iops = snapshot.and_then(|snapshot| snapshot.limit_iops);
        let limit_iops = limit_iops.or_else(|| last.map(|(_, grant)| grant.store_limit_iops));
        let capacity_iops = capacity(store, &self.disks.measurements()).iops();
        let is_less = |limit: u64| capacity_iops.is_some_and(|iops| limit < iops);
        let share = |(node, grant): &(NodeId, NodeGrant)| ClusterShare {
            node: view.name_of(*node),
            leased_iops: grant.store.leased_iops,
            reserved_iops: grant.store.reserved_iops,
        };
        let cluster = self
            .desired()
            .config
            .cluster
            .as_ref()
            .map(|cluster_config| cluster_config.name.clone());
        let heartbeat_status = |heartbeat: &ClusterHeartbeat| {
            let is_member = view.members.contains_key(heartbeat.node.as_str());
            ClusterHeartbeat {
                is_from_other_cluster: Some(&heartbeat.cluster) != cluster.as_ref() || !is_member,
                ..heartbeat.clone()
            }
        };
        let cap =
            snapshot.map(|snapshot| displayed(&snapshot.cap, self.plane.now())).unwrap_or_default();
        StoreShown {
            store: store.name.clone(),
            term: leader.as_ref().map(|(_, term)| term.0),
            leader: leader.map(|(node, _)| node),
            capacity_iops,
            limit_iops,
            has_external_load: limit_iops.is_some_and(is_less),
            cap,
            shares: store_grants.iter().map(share).collect(),
            heartbeats: snapshot
                .into_iter()
                .flat_map(|snapshot| &snapshot.heartbeats)
                .map(heartbeat_status)
                .collect(),
            reason: snapshot.and_then(|snapshot| snapshot.mismatch.clone()),
        }
    }

    /// Returns this host's shares of the limits of a policy that spans nodes, one per shared store.
    pub(crate) fn policy_shares_status(&self, policy: &Name) -> Vec<QosPolicyShare> {
        let (now, view) = (self.plane.now(), self.cluster.view());
        let Some(key) = view.policies.get(policy) else { return Vec::new() };
        let of_store = |(store, snapshot): (&Name, &StoreSnapshot)| {
            let part = snapshot.policies.iter().find(|part| part.policy == *key)?;
            let max = part.max.as_ref().map(|cap| displayed(cap, now));
            Some(QosPolicyShare { store: store.clone(), min_iops: part.min_iops, max })
        };
        view.stores.iter().filter_map(of_store).collect()
    }

    /// Returns the disks of all nodes on shared stores, as far as reports contain them.
    ///
    /// # Errors
    /// Fails if no cluster is configured, or it does not respond.
    pub(crate) fn cluster_disks(&self) -> Result<Vec<ClusterDisk>, ApiError> {
        let desired = self.desired();
        let refusal =
            |text: &str| ApiError::new(ErrorCode::HostError, text).with_resource("cluster");
        let Some(cluster) = &desired.config.cluster else {
            return Err(no_cluster());
        };
        let reports = self.read_cluster(&cluster.name, REPORTS).ok_or_else(|| {
            refusal("etcd does not respond; `suimon cluster status` shows the reason")
        })?;
        let view = self.cluster.view();
        let is_alive = |node: NodeId| view.alive.contains(&view.name_of(node));
        let reports: Vec<Reported> = reports
            .iter()
            .filter_map(|(key, entry)| {
                let (store, node) = parse_report_key(key).filter(|(_, node)| is_alive(*node))?;
                Some(Reported { store: store.to_owned(), node, reported: decode_entry(entry)? })
            })
            .collect();
        let mut disks: Vec<ClusterDisk> =
            reports.iter().flat_map(|report| report.disks(&view, &reports)).collect();
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

fn down(reason: impl Into<String>) -> Condition {
    Condition { health: Health::Down, reason: Some(reason.into()) }
}
