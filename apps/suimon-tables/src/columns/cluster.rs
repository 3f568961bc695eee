//! Columns of the cluster.

use crate::columns::column::{Columns, IOPS, number, text};

pub(crate) const CLUSTER_MEMBERS: Columns = Columns {
    commands: &["cluster status"],
    row: "node of the cluster",
    path: "members[]",
    schema: Some("ClusterMember"),
    all: &[
        text("NODE", "name", "Name of the node in the cluster."),
        number("NUMBER", "id", "", "Number of the node, which is never assigned again."),
        text(
            "STATE",
            "is_alive, is_this",
            "`alive` if the node renews its lease in etcd, else `not alive`; `this host` marks the own node.",
        ),
    ],
};

pub(crate) const CLUSTER_STORES: Columns = Columns {
    commands: &["cluster status"],
    row: "shared store of this host",
    path: "stores[]",
    schema: Some("ClusterStore"),
    all: &[
        text("STORE", "store", "Name of the store."),
        text(
            "LEADER",
            "leader",
            "Node that divides the store among the nodes; `–` without a leader.",
        ),
        number("TERM", "term", "", "Term of the leader; each new leader has a higher one."),
        number(
            "CAPACITY",
            "capacity_iops",
            IOPS,
            "Capacity of the store in the configuration of this host.",
        ),
        number(
            "SHARED LIMIT",
            "limit_iops",
            IOPS,
            "IOPS that the leader divides among all nodes; below the capacity while external load is present.",
        ),
        number(
            "LIMIT HERE",
            "cap.iops",
            IOPS,
            "IOPS that the disks of this host may use together, now.",
        ),
        number(
            "RESERVED",
            "cap.reserved_iops",
            IOPS,
            "Part of these that is reserved: it holds without etcd and without a lease.",
        ),
        number(
            "LEASE",
            "cap.lease_ms",
            "ms",
            "Remaining time of the lease, if it is not renewed; `–` without a lease.",
        ),
        number(
            "FALLBACK",
            "cap.fallback_iops",
            IOPS,
            "Limit in effect 30 s after contact with the cluster is lost; `–` if the reservation is the limit (no \
             `fallback_iops`, or not more than the reservation).",
        ),
        text(
            "REMARK",
            "reason, has_external_load",
            "Why this host has no share of the store; `external load` if load from outside of the cluster was \
             detected, or if the store delivers less than its capacity.",
        ),
    ],
};

pub(crate) const CLUSTER_SHARES: Columns = Columns {
    commands: &["cluster status"],
    row: "shared store and node",
    path: "stores[].shares[]",
    schema: Some("ClusterShare"),
    all: &[
        text("STORE", "", "Store. `store` of the element of `stores` in JSON."),
        text("NODE", "node", "Name of the node in the cluster."),
        number("LEASED", "leased_iops", IOPS, "IOPS that the node may use while its lease lasts."),
        number(
            "RESERVED",
            "reserved_iops",
            IOPS,
            "IOPS that are reserved for the node without time limit: the minimums of its disks, and 64 IOPS if it has \
             disks.",
        ),
    ],
};

pub(crate) const CLUSTER_HEARTBEATS: Columns = Columns {
    commands: &["cluster status"],
    row: "other node whose heartbeat file is on a shared store",
    path: "stores[].heartbeats[]",
    schema: Some("ClusterBeat"),
    all: &[
        text("STORE", "", "Store. `store` of the element of `stores` in JSON."),
        text("HEARTBEAT OF", "node", "Node that wrote the heartbeat."),
        text("CLUSTER", "cluster", "Cluster of that node."),
        number("IOPS", "delivered_iops", IOPS, "Delivered IOPS of its disks on the store."),
        number("RESERVED", "reserved_iops", IOPS, "IOPS that are reserved for that node."),
        number("AGE", "age_ms", "ms", "Age of the heartbeat. Nodes write one every 5 s."),
        text(
            "REMARK",
            "is_other_cluster",
            "`not a member` if the node does not belong to this cluster.",
        ),
    ],
};

pub(crate) const CLUSTER_FLOWS: Columns = Columns {
    commands: &["qos flows --cluster"],
    row: "disk on a shared store that a node reported: per node the 8 disks with the highest IOPS beyond their \
          guarantee, and the 8 disks furthest below it",
    path: "[]",
    schema: Some("ClusterDisk"),
    all: &[
        text("NODE", "node", "Name of the node that has the disk."),
        text("STORE", "store", "Name of the store."),
        text("DISK", "disk", "Name of the disk."),
        number(
            "GUARANTEED",
            "guaranteed_iops",
            IOPS,
            "Guaranteed IOPS on the shared store: `min_iops`, or the demand if that is lower and the disk had no requests \
             for part of the time.",
        ),
        number(
            "DEMAND",
            "demand_iops",
            IOPS,
            "IOPS that the clients submitted in about the last second, as the node last reported them.",
        ),
        number(
            "DELIVERED",
            "delivered_iops",
            IOPS,
            "Delivered IOPS of about the last second, as the node last reported them.",
        ),
        text(
            "ABOVE GUARANTEE",
            "aggressors[].disk, aggressors[].node, aggressors[].delivered_iops",
            "If less than the guarantee is delivered: up to three disks of the store above their guarantee, \
             highest excess first.",
        ),
    ],
};
