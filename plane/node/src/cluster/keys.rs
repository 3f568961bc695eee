//! What is kept in the cluster's store. Values are JSON.
//!
//! | key below `/suimon/CLUSTER/` | value | written by |
//! |---|---|---|
//! | `next-node` | the number that the next new node gets | who joins |
//! | `members/NAME` | [`MemberRecord`] | the node; removed by who leaves, or by who says that it is gone |
//! | `alive/NAME` | who it is, while it lives (lease) | the node |
//! | `stores/STORE` | what makes the store this one (`identity.rs`) | the first node that has it |
//! | `next-policy` | the number that the next new policy gets | who makes a policy |
//! | `policies/NAME` | a policy that all nodes have (`policies.rs`) | who changes it |
//! | `leaders/STORE` | which node divides it (lease); its creation is the term | who is elected |
//! | `reports/STORE/NUMBER` | [`Said`] | the node of that number |
//! | `grants/NUMBER/STORE` | a grant to that node | the store's leader, fenced by its term |

use serde::{Deserialize, Serialize};
use suimon_cluster_qos::{DiskKey, NodeId, Report};
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

/// A node, for as long as it is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberRecord {
    /// Its number.
    pub(super) id: NodeId,
    /// Which host it is: 128 random bits that it has chosen once.
    pub(super) host: String,
    /// Which start of its daemon was the last.
    pub(super) incarnation: u64,
    /// Version of its daemon.
    pub(super) version: String,
}

/// What a node says of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) report: Report,
    /// What the disks are called that the report names.
    pub(super) names: Vec<(DiskKey, String)>,
    /// What the node was told that the store can do.
    pub(super) capability_iops: u64,
    /// What it counts as one operation.
    pub(super) normalization_bytes: u64,
}

/// The key of a node's report on a store.
pub(super) fn report_key(store: &Name, node: NodeId) -> String {
    format!("{REPORTS}{store}/{:010}", node.0)
}

/// What keys of grants to a node begin with.
pub(super) fn grants_of(node: NodeId) -> String {
    format!("{GRANTS}{:010}/", node.0)
}

pub(super) fn grant_key(node: NodeId, store: &Name) -> String {
    format!("{}{store}", grants_of(node))
}

/// The node and the store of a grant's key.
pub(super) fn grant_of(key: &str) -> Option<(NodeId, &str)> {
    let (node, store) = key.strip_prefix(GRANTS)?.split_once('/')?;
    Some((NodeId(node.parse().ok()?), store))
}

/// The store and the node of a report's key.
pub(super) fn report_of(key: &str) -> Option<(&str, NodeId)> {
    let (store, node) = key.strip_prefix(REPORTS)?.rsplit_once('/')?;
    Some((store, NodeId(node.parse().ok()?)))
}

/// The same disk has the same number on each node: FNV-1a of its store's and its own name.
pub(super) fn disk_key(store: &Name, disk: &str) -> DiskKey {
    let bytes = store.as_str().bytes().chain([b'/']).chain(disk.bytes());
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    DiskKey(bytes.fold(0xcbf2_9ce4_8422_2325, fold))
}
