//! Initial state of a leader.

use suimon_cluster_qos::{NodeGrant, NodeId, Term};

use crate::cluster::policies::Policies;

/// Initial state of a leader.
pub(super) struct Elected {
    pub(super) term: Term,
    /// Grants that leaders of former terms have written.
    pub(super) records: Vec<(NodeId, NodeGrant)>,
    pub(super) policies: Policies,
}
