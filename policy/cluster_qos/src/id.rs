//! Identifiers of nodes, disks, policies, terms, grants and reports.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Identifier of a node of the cluster, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// Identifier of a disk, independent of the node it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskKey(pub u64);

/// Identifier of a policy whose limits several disks, possibly on different nodes, share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyKey(pub u32);

/// Term of a leader, higher than the terms of all earlier leaders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

/// Identifier of a grant. Later grants compare greater, across leaders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GrantId {
    /// Term of the leader that gave the grant.
    pub term: Term,
    /// Number of the grant within the term, from 1.
    pub number: u64,
}

/// Identifier of a node's report. Later reports compare greater, across restarts of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReportId {
    /// Incarnation of the node's daemon, higher after each start.
    pub incarnation: u64,
    /// Number of the report within the incarnation, from 1.
    pub number: u64,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}
