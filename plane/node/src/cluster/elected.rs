//! Data with which an elected leader of a store starts.

use suimon_cluster_qos::{NodeGrant, NodeId, Term};

use crate::cluster::policies::Policies;

/// Data with which an elected leader of a store starts.
pub(super) struct ElectedLeaderState {
    pub(super) term: Term,
    /// Grants that leaders of former terms have written.
    pub(super) records: Vec<(NodeId, NodeGrant)>,
    pub(super) policies: Policies,
}
