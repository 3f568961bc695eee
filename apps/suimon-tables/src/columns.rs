//! Columns of the tables that `suimon` prints: title, JSON field, unit and meaning of each. The
//! tables are printed by these definitions, and `docs/reference/status.md` is generated from them.

mod cluster;
mod column;
mod data_plane;
mod host;
mod network;
mod sriov;
mod storage;
mod top;

pub(crate) use cluster::*;
pub(crate) use column::{Align, Column, Columns};
pub(crate) use data_plane::*;
pub(crate) use host::*;
pub(crate) use network::*;
pub(crate) use sriov::*;
pub(crate) use storage::*;
pub(crate) use top::*;

/// Every table, in the order of the reference page.
pub(crate) const TABLES: &[&Columns] = &[
    &SWITCHES,
    &ADDRESSES,
    &NICS,
    &UPLINKS,
    &TEAMS,
    &TEAM_MEMBERS,
    &LACP_LINKS,
    &PORT_OFFLOADS,
    &OFFLOADS,
    &VMQS,
    &VMQ_WORKERS,
    &VMQ_QUEUES,
    &QUEUES,
    &WORKERS,
    &PFS,
    &ADAPTERS,
    &VFS,
    &STORES,
    &DISKS,
    &DISK_REQUESTS,
    &QOS_FLOWS,
    &QOS_DELIVERY,
    &QOS_POLICIES,
    &QOS_POLICY_SHARES,
    &WHAT_IF_STORES,
    &CLUSTER_MEMBERS,
    &CLUSTER_STORES,
    &CLUSTER_SHARES,
    &CLUSTER_HEARTBEATS,
    &CLUSTER_FLOWS,
    &VMS,
    &GUEST_INTERFACES,
    &NODES,
    &OPERATIONS,
    &POWER_SETTINGS,
    &POWER_CPUS,
    &POWER_CHANGED_SETTINGS,
    &TOP_PORTS,
    &TOP_TEAMS,
    &TOP_DISKS,
    &TOP_WORKERS,
    &TOP_STAGES,
    &TOP_POWER,
];

#[cfg(test)]
#[path = "columns_tests.rs"]
mod tests;
