//! Keys and values of the cluster in etcd. Values are JSON.
//!
//! | key below `/suimon/CLUSTER/` | value | written by |
//! |---|---|---|
//! | `next-node` | number of the next new node | a joining node |
//! | `members/NAME` | [`MemberRecord`] | the node; removed on leaving or by an operator |
//! | `alive/NAME` | node, host and start of the daemon (lease) | the node |
//! | `stores/STORE` | identity of the store (`identity.rs`) | the first node that has the store; removed by the last node that leaves |
//! | `next-policy` | number of the next new policy | node that creates a policy |
//! | `policies/NAME` | shared QoS policy (`policies.rs`) | the node that changes the policy |
//! | `leaders/STORE` | leader (lease); the creation revision is the term | the elected node |
//! | `reports/STORE/NUMBER` | [`NodeReport`] | the node of that number |
//! | `grants/NUMBER/STORE` | grant to that node | the store's leader, fenced by its term; removed with the node |

use serde::{Deserialize, Deserializer, Serialize};
use suimon_cluster_qos::{DiskKey, LoadReport, NodeId};
use suimon_contract::Name;

pub(super) const MEMBERS: &str = "members/";
pub(super) const ALIVE: &str = "alive/";
pub(super) const LEADERS: &str = "leaders/";
pub(super) const REPORTS: &str = "reports/";
pub(super) const GRANTS: &str = "grants/";
pub(super) const STORES: &str = "stores/";
pub(super) const POLICIES: &str = "policies/";
pub(super) const NEXT_POLICY: &str = "next-policy";
pub(super) const NEXT_NODE: &str = "next-node";

/// Record of a member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberRecord {
    /// Number of the node in the cluster.
    pub(super) id: NodeId,
    /// Identity of the host: 128 random bits, created once.
    #[serde(rename = "host")]
    pub(super) host_id: String,
    /// Number of the daemon's last start.
    pub(super) incarnation: u64,
    /// Version of the node's daemon.
    pub(super) version: String,
}

impl MemberRecord {
    /// Shortens texts that are longer than any that a daemon writes.
    pub(super) fn into_shortened(mut self) -> Self {
        const CHARS_MAX: usize = 256;
        for text in [&mut self.host_id, &mut self.version] {
            if let Some((end, _)) = text.char_indices().nth(CHARS_MAX) {
                text.truncate(end);
            }
        }
        self
    }
}

/// Report of a node on a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeReport {
    pub(super) report: LoadReport,
    /// Names of the disks in the report.
    pub(super) names: Vec<(DiskKey, String)>,
    /// Capacity of the store according to the node's configuration or measurement; absent if
    /// unknown. Nodes of earlier versions write 0 instead.
    #[serde(rename = "capability_iops", default)]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "unless_zero")]
    pub(super) capacity_iops: Option<u64>,
    /// Bytes that the node counts as one operation.
    pub(super) normalization_bytes: u64,
}

fn unless_zero<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let iops = Option::<u64>::deserialize(value)?;
    Ok(iops.filter(|iops| *iops > 0))
}

/// Returns the key of a node's report on a store.
pub(super) fn report_key(store: &Name, node: NodeId) -> String {
    format!("{REPORTS}{store}/{:010}", node.0)
}

/// Returns the common prefix of grants to a node.
pub(super) fn grants_prefix(node: NodeId) -> String {
    format!("{GRANTS}{:010}/", node.0)
}

pub(super) fn grant_key(node: NodeId, store: &Name) -> String {
    format!("{}{store}", grants_prefix(node))
}

/// Splits the key of a grant into node and store. Returns `None` if it is not such a key.
pub(super) fn parse_grant_key(key: &str) -> Option<(NodeId, &str)> {
    let (node, store) = key.strip_prefix(GRANTS)?.split_once('/')?;
    Some((NodeId(node.parse().ok()?), store))
}

/// Splits the key of a report into store and node. Returns `None` if it is not such a key.
pub(super) fn parse_report_key(key: &str) -> Option<(&str, NodeId)> {
    let (store, node) = key.strip_prefix(REPORTS)?.rsplit_once('/')?;
    Some((store, NodeId(node.parse().ok()?)))
}

/// Returns the number of a disk, which is the same on each node: FNV-1a of the names of store and
/// disk.
pub(super) fn disk_key(store: &Name, disk: &str) -> DiskKey {
    let bytes = store.as_str().bytes().chain([b'/']).chain(disk.bytes());
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    DiskKey(bytes.fold(0xcbf2_9ce4_8422_2325, fold))
}

#[cfg(test)]
mod tests {
    use suimon_cluster_qos::{Demand, NodeLoad, PROTOCOL_VERSION, ReportId};

    use super::*;

    /// Nodes of earlier versions write 0 for an unknown capacity.
    #[test]
    fn an_unknown_capacity_is_absent_and_0_is_read_as_unknown() {
        let load = NodeLoad::default();
        let id = ReportId { incarnation: 1, number: 2 };
        let report = LoadReport {
            version: PROTOCOL_VERSION,
            node: NodeId(1),
            id,
            acknowledged: None,
            reserved_iops: 0,
            applies_leases: true,
            load,
            demand: Demand::default(),
            policies: Vec::new(),
            disks_over_guarantee: Vec::new(),
            disks_below_guarantee: Vec::new(),
        };
        let report_with_capacity = |capacity_iops| NodeReport {
            report: report.clone(),
            names: Vec::new(),
            capacity_iops,
            normalization_bytes: 8192,
        };
        let unknown = serde_json::to_value(report_with_capacity(None)).unwrap();
        assert!(unknown.get("capability_iops").is_none(), "{unknown}");
        let mut of_old = unknown.clone();
        of_old["capability_iops"] = 0.into();
        for written in [unknown, of_old] {
            assert_eq!(
                serde_json::from_value::<NodeReport>(written).unwrap(),
                report_with_capacity(None)
            );
        }
        let known_capacity = serde_json::to_value(report_with_capacity(Some(500))).unwrap();
        assert_eq!(
            serde_json::from_value::<NodeReport>(known_capacity).unwrap(),
            report_with_capacity(Some(500))
        );
    }
}
