//! Columns of the tables that `suimon` prints: title, JSON field, unit and meaning of each. The tables
//! are printed by these definitions, and `docs/reference/status.md` is generated from them.

mod host;
mod network;
mod storage;
mod top;

pub(crate) use host::*;
pub(crate) use network::*;
pub(crate) use storage::*;
pub(crate) use top::*;

use crate::table::Align;

/// A column of a table.
pub(crate) struct Column {
    /// Title in the table.
    pub(crate) title: &'static str,
    /// Side to which its cells are aligned.
    pub(crate) align: Align,
    /// Fields of the row in `--json` from which the cell is made, separated by `, `. Inner fields follow
    /// a dot, elements of a list `[]`.
    pub(crate) fields: &'static str,
    /// Unit of the JSON field; empty for words and plain numbers.
    pub(crate) unit: &'static str,
    /// Meaning, in whole sentences.
    pub(crate) meaning: &'static str,
}

/// A column of words.
const fn text(title: &'static str, fields: &'static str, meaning: &'static str) -> Column {
    Column { title, align: Align::Left, fields, unit: "", meaning }
}

/// A column of numbers.
const fn number(
    title: &'static str,
    fields: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Column {
    Column { title, align: Align::Right, fields, unit, meaning }
}

/// Columns of a table, and where the table is printed.
pub(crate) struct Columns {
    /// Commands that print the table, each with `suimon`.
    pub(crate) commands: &'static [&'static str],
    /// What a row describes, as the end of "One row per".
    pub(crate) row: &'static str,
    /// Place of the rows in the output of `--json`: `[]` for the elements of the output.
    pub(crate) path: &'static str,
    /// Schema of a row in the OpenAPI document; `None` if only `suimon` prints it.
    pub(crate) schema: Option<&'static str>,
    /// The columns, in their order.
    pub(crate) all: &'static [Column],
}

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
    &VMQ_PROCESSORS,
    &VMQ_QUEUES,
    &QUEUES,
    &PROCESSORS,
    &PFS,
    &ADAPTERS,
    &VFS,
    &STORES,
    &DISKS,
    &DISK_REQUESTS,
    &QOS_FLOWS,
    &QOS_DELIVERY,
    &QOS_POLICIES,
    &QOS_POLICY_PARTS,
    &WHAT_IF_STORES,
    &CLUSTER_MEMBERS,
    &CLUSTER_STORES,
    &CLUSTER_SHARES,
    &CLUSTER_SEEN,
    &CLUSTER_FLOWS,
    &VMS,
    &GUEST_INTERFACES,
    &NODES,
    &OPERATIONS,
    &POWER_SETTINGS,
    &POWER_CPUS,
    &POWER_CHANGED,
    &TOP_PORTS,
    &TOP_TEAMS,
    &TOP_DISKS,
    &TOP_PROCESSORS,
    &TOP_STAGES,
    &TOP_POWER,
];

#[cfg(test)]
#[path = "columns_tests.rs"]
mod tests;
