//! Identifiers in a cluster.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A node of the cluster. Never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// A disk, the same on whichever node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskKey(pub u64);

/// A policy whose limits disks of several nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyKey(pub u32);

/// A leader's time in office: each has a higher one than the leaders before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

/// A grant: later ones are greater, whoever gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GrantId {
    /// The leader's term.
    pub term: Term,
    /// Counts from 1 within the term.
    pub number: u64,
}

/// A node's report: later ones are greater, restarts of the node included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReportId {
    /// Which start of the node's daemon; each has a higher one than those before.
    pub incarnation: u64,
    /// Counts from 1 within the incarnation.
    pub number: u64,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}
