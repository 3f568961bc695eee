//! Initial state of a leader.

use suimon_cluster_qos::{Grant, NodeId, Term};

use crate::cluster::policies::Policies;

/// Initial state of a leader.
pub(in crate::cluster) struct Elected {
    pub(in crate::cluster) term: Term,
    /// Grants of former terms.
    pub(in crate::cluster) records: Vec<(NodeId, Grant)>,
    pub(in crate::cluster) policies: Policies,
}
