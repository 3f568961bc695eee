//! Data with which an elected leader of a store starts.

use suimon_cluster_qos::{NodeGrant, NodeId, Term};

use crate::cluster::policies::ReadPolicies;

/// Data with which an elected leader of a store starts.
pub(super) struct ElectedLeaderState {
    pub(super) term: Term,
    /// Grants that leaders of former terms have written.
    pub(super) recorded_grants: Vec<(NodeId, NodeGrant)>,
    /// Nodes with a recorded grant that are not members of the cluster any more.
    pub(super) left_nodes: Vec<NodeId>,
    pub(super) policies: ReadPolicies,
}
