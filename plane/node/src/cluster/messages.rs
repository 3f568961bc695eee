//! Tasks of the worker, and their results.

use std::sync::Arc;

use suimon_cluster_qos::{NodeGrant, NodeId, Term};
use suimon_contract::{ClusterConfig, Name, QosPolicyConfig};
use suimon_ports::{ClusterEntry, ClusterKvStore};

use crate::cluster::elected::ElectedLeaderState;
use crate::cluster::heartbeat::Heartbeat;
use crate::cluster::identity::IdentityMismatch;
use crate::cluster::keys::MemberRecord;
use crate::cluster::policies::ReadPolicies;

/// Task for the thread that accesses etcd.
pub(super) enum Task {
    /// End the former session, and join this cluster.
    BeginSession(Box<ClusterConfig>),
    /// Write a report for a store's leader.
    Report { store: Name, report: Vec<u8> },
    /// Take part in the election of a store's leader.
    Elect { store: Name },
    /// Store the leader's grants in etcd.
    WriteGrants {
        store: Name,
        term: Term,
        grants: Vec<(NodeId, NodeGrant)>,
        forgotten: Vec<NodeId>,
    },
    /// Resign as a store's leader.
    Resign { store: Name, term: Term },
    /// Remove the node's records of a store that it does not share any more.
    Withdraw { store: Name },
    /// Add a policy to the cluster, unless a policy of that name exists.
    AddPolicy(Box<QosPolicyConfig>),
    /// Create a new etcd lease if the session's has expired, and repeat failed resignations.
    RenewLease,
    /// Read the keys of members and of running nodes.
    ReadMembers,
    /// Delete the node's records and leave the cluster.
    Leave { stores: Vec<Name> },
    /// End the session without leaving the cluster.
    EndSession,
}

impl Task {
    /// Returns true if this task, once executed, makes another one unnecessary.
    pub(super) fn supersedes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::RenewLease, Self::RenewLease) | (Self::ReadMembers, Self::ReadMembers) => true,
            (Self::Resign { store, term }, Self::Resign { store: other_store, term: other }) => {
                (store, term) == (other_store, other)
            }
            (Self::Withdraw { store }, Self::Withdraw { store: other_store }) => {
                store == other_store
            }
            (Self::AddPolicy(policy), Self::AddPolicy(other)) => policy == other,
            _ => false,
        }
    }
}

/// Keys of members and of running nodes.
pub(super) struct MemberKeys {
    /// Revision of etcd up to which the keys contain all changes.
    pub(super) revision: u64,
    /// Entries by name below the cluster's prefix.
    pub(super) entries: Vec<(String, ClusterEntry)>,
}

/// Result of a [`Task`].
pub(super) enum TaskResult {
    SessionBegun {
        store: Arc<dyn ClusterKvStore>,
        member: MemberRecord,
        policies: ReadPolicies,
    },
    SessionFailed {
        is_refused: bool,
        detail: String,
    },
    Elected {
        store: Name,
        leader_state: ElectedLeaderState,
    },
    NotElected {
        store: Name,
    },
    GrantsWritten {
        store: Name,
        term: Term,
        is_written: bool,
    },
    /// Present keys of members and of running nodes; `None` if they could not be read.
    MembersRead(Option<MemberKeys>),
    /// The node was removed from the cluster: its name or record belongs to another host, or its
    /// record does not exist.
    NodeRemoved,
    /// The session has ended. `failure`: reason if the node's records could not be removed.
    SessionEnded {
        failure: Option<String>,
    },
    /// The cluster has not taken a policy of this host.
    PolicyRefused {
        policy: Name,
        reason: String,
    },
    /// Result of removing the node's records of a store.
    StoreWithdrawn {
        store: Name,
        is_done: bool,
    },
    /// Result of checking a store's identity in session `session`. `mismatch` is `Ok(None)` if the
    /// store is the cluster's, and an error if the check failed.
    IdentityChecked {
        store: Name,
        session: u64,
        mismatch: Result<Option<IdentityMismatch>, String>,
    },
    /// Result of writing a heartbeat to a store: heartbeats of the other nodes.
    HeartbeatWritten {
        store: Name,
        heartbeats: Result<Vec<Heartbeat>, String>,
    },
}
