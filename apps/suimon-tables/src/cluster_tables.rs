//! Text output of the cluster's state.

use suimon_contract::{
    ClusterDisk, ClusterMember, ClusterShare, ClusterStatus, ResourceKind, SharedStoreStatus,
};

use crate::columns;
use crate::detail_text::{DetailText, health};
use crate::table::{Table, or_dash};
use crate::units;

/// Returns the complete state of the cluster.
pub fn details(cluster: &ClusterStatus) -> String {
    let mut lines = DetailText::default();
    match &cluster.config {
        Some(config) => lines.add_keys(ResourceKind::Cluster, config),
        None => lines.add("cluster", "none: this host is not a member of a cluster"),
    }
    if cluster.config.is_none() {
        return lines.into_text();
    }
    lines.add("health", health(&cluster.condition));
    lines.add("last contact", or_dash(cluster.age_ms.map(|ms| format!("{ms} ms ago"))));
    lines.add_table(&members(&cluster.members));
    if !cluster.stores.is_empty() {
        lines.add_table(&stores(&cluster.stores));
        lines.add_table(&shares(&cluster.stores));
        if cluster.stores.iter().any(|store| !store.heartbeats.is_empty()) {
            lines.add_table(&heartbeat_table(&cluster.stores));
        }
    }
    lines.into_text()
}

fn members(members: &[ClusterMember]) -> Table {
    let mut table = Table::new(&columns::CLUSTER_MEMBERS);
    for member in members {
        let state = match (member.is_alive, member.is_this_host) {
            (true, true) => "alive, this host",
            (true, false) => "alive",
            (false, _) => "not alive",
        };
        table.add_row([member.name.clone(), member.id.to_string(), state.to_owned()]);
    }
    table
}

fn stores(statuses: &[SharedStoreStatus]) -> Table {
    let mut table = Table::new(&columns::CLUSTER_STORES);
    for store in statuses {
        let external = store.has_external_load.then_some("external load");
        table.add_row([
            store.store.to_string(),
            or_dash(store.leader.as_ref()),
            or_dash(store.term),
            or_dash(store.capacity_iops.map(units::count)),
            or_dash(store.limit_iops.map(units::count)),
            units::count(store.cap.iops),
            units::count(store.cap.reserved_iops),
            or_dash(store.cap.lease_remaining_ms.map(|ms| format!("{ms} ms"))),
            or_dash(store.cap.fallback_iops.map(units::count)),
            or_dash(store.reason.as_deref().or(external)),
        ]);
    }
    table
}

fn shares(statuses: &[SharedStoreStatus]) -> Table {
    let mut table = Table::new(&columns::CLUSTER_SHARES);
    for store in statuses {
        for ClusterShare { node, leased_iops, reserved_iops } in &store.shares {
            table.add_row([
                store.store.to_string(),
                node.clone(),
                units::count(*leased_iops),
                units::count(*reserved_iops),
            ]);
        }
    }
    table
}

/// Returns the table of nodes whose heartbeats were read on stores.
fn heartbeat_table(statuses: &[SharedStoreStatus]) -> Table {
    let mut table = Table::new(&columns::CLUSTER_HEARTBEATS);
    for store in statuses {
        for heartbeat in &store.heartbeats {
            table.add_row([
                store.store.to_string(),
                heartbeat.node.to_string(),
                heartbeat.cluster.to_string(),
                units::count(heartbeat.delivered_iops),
                units::count(heartbeat.reserved_iops),
                format!("{} s", heartbeat.age_ms / 1000),
                or_dash(heartbeat.is_from_other_cluster.then_some("not a member")),
            ]);
        }
    }
    table
}

/// Returns a table with one row per disk of any node. Rates are normalised operations per second.
pub fn flow_table(disks: &[ClusterDisk]) -> Table {
    let mut table = Table::new(&columns::CLUSTER_FLOWS);
    for disk in disks {
        let aggressors = disk.disks_over_guarantee.as_ref().map(|aggressors| {
            let aggressor_text = |aggressor: &suimon_contract::DiskOverGuarantee| {
                format!(
                    "{} on {} {}",
                    aggressor.disk,
                    aggressor.node,
                    units::count(aggressor.delivered_iops)
                )
            };
            aggressors.iter().take(3).map(aggressor_text).collect::<Vec<_>>().join(", ")
        });
        table.add_row([
            disk.node.clone(),
            disk.store.clone(),
            disk.disk.clone(),
            units::count(disk.guaranteed_iops),
            units::count(disk.demand_iops),
            units::count(disk.delivered_iops),
            or_dash(aggressors),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_shown_with_its_nodes_and_stores() {
        let status: ClusterStatus = serde_json::from_value(json!({
            "config": {"name": "lab", "node": "n1", "endpoints": ["http://192.0.2.10:2379"]},
            "condition": {"health": "up"}, "age_ms": 12,
            "members": [
                {"name": "n1", "id": 1, "is_this": true, "is_alive": true},
                {"name": "n2", "id": 2, "is_this": false, "is_alive": false},
            ],
            "stores": [{
                "store": "san", "leader": "n1", "term": 17, "capacity_iops": 17112,
                "limit_iops": 15000, "has_external_load": true,
                "cap": {"iops": 12000, "reserved_iops": 3064, "leased_iops": 12000, "lease_ms": 2400,
                    "fallback_iops": 4000, "fallback_ms": 29000},
                "shares": [
                    {"node": "n1", "leased_iops": 12000, "reserved_iops": 3064},
                    {"node": "n2", "leased_iops": 3000, "reserved_iops": 3000},
                ],
                "heartbeats": [
                    {
                        "cluster": "lab", "node": "n2", "is_other_cluster": false,
                        "delivered_iops": 2900, "reserved_iops": 3000, "age_ms": 4200,
                    },
                    {
                        "cluster": "else", "node": "x1", "is_other_cluster": true,
                        "delivered_iops": 9000, "reserved_iops": 0, "age_ms": 100,
                    },
                ],
            }],
        }))
        .unwrap();
        insta::assert_snapshot!(details(&status));
        let without_cluster = ClusterStatus { config: None, ..status };
        assert_eq!(
            details(&without_cluster).trim(),
            "cluster                 none: this host is not a member of a cluster"
        );
        let disks: Vec<ClusterDisk> = serde_json::from_value(json!([
            {
                "node": "n1", "store": "san", "disk": "db", "guaranteed_iops": 2000,
                "demand_iops": 5000, "delivered_iops": 1500,
                "aggressors": [
                    {"node": "n2", "disk": "scan", "delivered_iops": 9000, "guaranteed_iops": 0},
                ],
            },
            {
                "node": "n2", "store": "san", "disk": "scan", "guaranteed_iops": 0,
                "demand_iops": 9000, "delivered_iops": 9000,
            },
        ]))
        .unwrap();
        insta::assert_snapshot!(flow_table(&disks).render());
    }
}
