//! Columns of the cluster.

use crate::columns::column::{Columns, UNIT_IOPS, number_column, text_column};

pub(crate) const CLUSTER_MEMBERS: Columns = Columns {
    commands: &["cluster status"],
    row_object: "node of the cluster",
    json_path: "members[]",
    schema: Some("ClusterMember"),
    columns: &[
        text_column("NODE", "name", "Name of the node in the cluster."),
        number_column("NUMBER", "id", "", "Number of the node, which is never assigned again."),
        text_column(
            "STATE",
            "is_alive, is_this",
            "`alive` if the node renews its lease in etcd, else `not alive`; `this host` marks the own node.",
        ),
    ],
};

pub(crate) const CLUSTER_STORES: Columns = Columns {
    commands: &["cluster status"],
    row_object: "shared store of this host",
    json_path: "stores[]",
    schema: Some("ClusterStore"),
    columns: &[
        text_column("STORE", "store", "Name of the store."),
        text_column(
            "LEADER",
            "leader",
            "Node that divides the store among the nodes; `–` without a leader.",
        ),
        number_column("TERM", "term", "", "Term of the leader; each new leader has a higher one."),
        number_column(
            "CAPACITY",
            "capacity_iops",
            UNIT_IOPS,
            "Capacity of the store in the configuration of this host.",
        ),
        number_column(
            "SHARED LIMIT",
            "limit_iops",
            UNIT_IOPS,
            "IOPS that the leader divides among all nodes; below the capacity while external load is present.",
        ),
        number_column(
            "LIMIT HERE",
            "cap.iops",
            UNIT_IOPS,
            "IOPS that the disks of this host may use together, now.",
        ),
        number_column(
            "RESERVED",
            "cap.reserved_iops",
            UNIT_IOPS,
            "Part of these that is reserved: it holds without etcd and without a lease.",
        ),
        number_column(
            "LEASE",
            "cap.lease_ms",
            "ms",
            "Remaining time of the lease, if it is not renewed; `–` without a lease.",
        ),
        number_column(
            "FALLBACK",
            "cap.fallback_iops",
            UNIT_IOPS,
            "Limit in effect 30 s after contact with the cluster is lost; `–` if the reservation is the limit (no \
             `fallback_iops`, or not more than the reservation).",
        ),
        text_column(
            "REMARK",
            "reason, has_external_load",
            "Why this host has no share of the store; `external load` if load from outside of the cluster was \
             detected, or if the store delivers less than its capacity.",
        ),
    ],
};

pub(crate) const CLUSTER_SHARES: Columns = Columns {
    commands: &["cluster status"],
    row_object: "shared store and node",
    json_path: "stores[].shares[]",
    schema: Some("ClusterShare"),
    columns: &[
        text_column("STORE", "", "Store. `store` of the element of `stores` in JSON."),
        text_column("NODE", "node", "Name of the node in the cluster."),
        number_column(
            "LEASED",
            "leased_iops",
            UNIT_IOPS,
            "IOPS that the node may use while its lease lasts.",
        ),
        number_column(
            "RESERVED",
            "reserved_iops",
            UNIT_IOPS,
            "IOPS that are reserved for the node without time limit: the minimums of its disks, and 64 IOPS if it has \
             disks.",
        ),
    ],
};

pub(crate) const CLUSTER_HEARTBEATS: Columns = Columns {
    commands: &["cluster status"],
    row_object: "other node whose heartbeat file is on a shared store",
    json_path: "stores[].heartbeats[]",
    schema: Some("ClusterBeat"),
    columns: &[
        text_column("STORE", "", "Store. `store` of the element of `stores` in JSON."),
        text_column("HEARTBEAT OF", "node", "Node that wrote the heartbeat."),
        text_column("CLUSTER", "cluster", "Cluster of that node."),
        number_column(
            "IOPS",
            "delivered_iops",
            UNIT_IOPS,
            "Delivered IOPS of its disks on the store.",
        ),
        number_column(
            "RESERVED",
            "reserved_iops",
            UNIT_IOPS,
            "IOPS that are reserved for that node.",
        ),
        number_column("AGE", "age_ms", "ms", "Age of the heartbeat. Nodes write one every 5 s."),
        text_column(
            "REMARK",
            "is_other_cluster",
            "`not a member` if the node does not belong to this cluster.",
        ),
    ],
};

pub(crate) const CLUSTER_FLOWS: Columns = Columns {
    commands: &["qos flows --cluster"],
    row_object: "disk on a shared store that a node reported: per node the 8 disks with the highest IOPS beyond their \
          guarantee, and the 8 disks furthest below it",
    json_path: "[]",
    schema: Some("ClusterDisk"),
    columns: &[
        text_column("NODE", "node", "Name of the node that has the disk."),
        text_column("STORE", "store", "Name of the store."),
        text_column("DISK", "disk", "Name of the disk."),
        number_column(
            "GUARANTEED",
            "guaranteed_iops",
            UNIT_IOPS,
            "Guaranteed IOPS on the shared store: `min_iops`, or the demand if that is lower and the disk had no requests \
             for part of the time.",
        ),
        number_column(
            "DEMAND",
            "demand_iops",
            UNIT_IOPS,
            "IOPS that the clients submitted in about the last second, as the node last reported them.",
        ),
        number_column(
            "DELIVERED",
            "delivered_iops",
            UNIT_IOPS,
            "Delivered IOPS of about the last second, as the node last reported them.",
        ),
        text_column(
            "ABOVE GUARANTEE",
            "aggressors[].disk, aggressors[].node, aggressors[].delivered_iops",
            "If less than the guarantee is delivered: up to three disks of the store above their guarantee, \
             highest excess first.",
        ),
    ],
};
