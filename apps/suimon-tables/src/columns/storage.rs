//! Columns of stores, disks and Storage QoS.

use crate::columns::column::{Column, Columns, UNIT_IOPS, number_column, text_column};

const STATE: Column = text_column(
    "STATE",
    "state, reason, stale",
    "`ready`: in service. `working`: out of service while an operation works on the file. `failed`: could not \
     be opened; the reason follows, and the daemon retries. `stalled`: the store has not completed a request \
     for 5 s; requests are queued. `away`: another node has the file of the disk open, during a migration. `full`: the \
     store has no space for some requests, which are queued, or fail (`on_full`); other requests proceed. \
     `faulted`: a flush has failed; writes and flushes fail until the disk is reopened, and reads proceed. \
     `(stale)`: the worker of the disk does not respond (event 5006), and the values of the row are the last known ones.",
);

const STORE_STATE: Column = text_column(
    "STATE",
    "state, reason, stale",
    "`ready`: the directory or device can be read. `failed`: it cannot; the reason follows, and the daemon retries. \
     Whether a store is full or does not respond is a state of its disks (`suimon disk list`). `(stale)`: no worker \
     with disks of the store responds, and rate, latency and depth are the last known ones.",
);

pub(crate) const STORES: Columns = Columns {
    commands: &["store list"],
    row_object: "store",
    json_path: "[]",
    schema: Some("StoreStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the store."),
        text_column("PATH", "config.path", "Directory or block device."),
        number_column("DISKS", "disks", "", "Number of disks in the store."),
        number_column(
            "FREE",
            "free_bytes",
            "bytes",
            "Free space of the file system; `–` for a block device.",
        ),
        number_column("SIZE", "total_bytes", "bytes", "Size of the file system or block device."),
        number_column(
            "VIRTUAL",
            "virtual_bytes, overcommit_percent",
            "bytes",
            "Sum of the sizes of the store's disks as guests see them, and its share of the store's size in \
             percent.",
        ),
        number_column(
            "IOPS",
            "delivered_iops",
            UNIT_IOPS,
            "Rate of completed operations in the last 5 s.",
        ),
        number_column(
            "CAPACITY",
            "capacity_iops",
            UNIT_IOPS,
            "Capacity of the store as configured or measured; `–` if unknown.",
        ),
        number_column(
            "RESERVED",
            "reserved_iops, reserved_percent",
            UNIT_IOPS,
            "Sum of all minimums on the store, without the 64 IOPS of a node in `suimon cluster status`, and its share \
             of the capacity in percent, rounded up.",
        ),
        number_column(
            "LATENCY",
            "latency_ns",
            "ns",
            "Mean time of a request in the device, at present; `–` without recent requests.",
        ),
        number_column(
            "DEPTH",
            "depth, depth_allowed",
            "requests",
            "Requests in the device, of those that the scheduler currently allows there (`depth_max` at most).",
        ),
        STORE_STATE,
    ],
};

pub(crate) const DISKS: Columns = Columns {
    commands: &["disk list"],
    row_object: "disk",
    json_path: "[]",
    schema: Some("DiskStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the disk."),
        text_column("STORE", "config.store", "Store of the disk."),
        text_column(
            "FORMAT",
            "config.format, kind",
            "Image format on the store, with the kind (`fixed`, `dynamic`, `differencing`) if it is not the \
             default kind of the format.",
        ),
        number_column(
            "SIZE",
            "size_bytes",
            "bytes",
            "Size that the guest sees; `–` while the disk is not open.",
        ),
        number_column(
            "ALLOCATED",
            "allocated_bytes",
            "bytes",
            "Space that the file takes on the store.",
        ),
        text_column(
            "QOS",
            "config.qos_policy, config.qos",
            "Name of the QoS policy, or the limits of the disk in the form of `LIMITS` of `suimon qos flows`.",
        ),
        number_column(
            "READ",
            "counters.reads.bytes",
            "bytes",
            "Bytes read since the disk was opened.",
        ),
        number_column(
            "WRITTEN",
            "counters.writes.bytes",
            "bytes",
            "Bytes written since the disk was opened.",
        ),
        number_column(
            "ERRORS",
            "counters.reads.errors, counters.writes.errors, counters.flushes.errors, counters.discards.errors",
            "requests",
            "Requests that failed since the disk was opened.",
        ),
        text_column(
            "USED BY",
            "vhost_user.connected, nbd.clients",
            "`VM` for a vhost-user front-end, and the number of NBD connections.",
        ),
        STATE,
    ],
};

pub(crate) const DISK_REQUESTS: Columns = Columns {
    commands: &["disk show NAME"],
    row_object: "kind of request, since the disk was opened",
    json_path: "counters.*",
    schema: Some("DiskRequestCounters"),
    columns: &[
        text_column(
            "REQUEST",
            "",
            "Kind of the requests: `read`, `write`, `flush` or `discard` (with writes of zeros). `reads`, \
                      `writes`, `flushes` and `discards` of `counters` in JSON.",
        ),
        number_column("COUNT", "requests", "requests", "Completed requests."),
        number_column("BYTES", "bytes", "bytes", "Bytes of the completed requests."),
        number_column("ERRORS", "errors", "requests", "Failed requests."),
        number_column(
            "LATENCY P50",
            "latency_ns_p50",
            "ns",
            "Median latency, from receipt to completion, time in the scheduler included.",
        ),
        number_column("LATENCY P99", "latency_ns_p99", "ns", "99th percentile of the latency."),
        number_column("LATENCY MAX", "latency_ns_max", "ns", "Highest latency."),
    ],
};

pub(crate) const QOS_FLOWS: Columns = Columns {
    commands: &["qos flows"],
    row_object: "open disk",
    json_path: "[]",
    schema: Some("QosFlowStatus"),
    columns: &[
        text_column("DISK", "disk", "Name of the disk."),
        text_column("STORE", "store", "Store of the disk."),
        text_column(
            "LIMITS OF",
            "holder",
            "Object that the limits belong to: `disk/NAME`, or `qos_policy/NAME` for an aggregated policy, whose \
             disks share the limits.",
        ),
        text_column(
            "LIMITS",
            "limits",
            "Limits in effect: minimum; maximum, in IOPS, in bytes per second, or both; burst; weight if it is not 100. \
             For example `min 500, max 1000 and 8.00 MiB/s, burst 20.0 k for 60 s, weight 200`.",
        ),
        number_column(
            "GUARANTEED",
            "last_5_s.guaranteed_iops",
            UNIT_IOPS,
            "Guaranteed IOPS in the last 5 s: `min_iops`, multiplied by the share of this time in which the disk had \
             requests, queued or in the device. 0 without a minimum. With an aggregated policy, the guarantee of all \
             its disks in the store together.",
        ),
        number_column(
            "DEMAND",
            "last_5_s.demand_iops",
            UNIT_IOPS,
            "Demand in the last 5 s: operations that the clients submitted.",
        ),
        number_column(
            "DELIVERED",
            "last_5_s.delivered_iops",
            UNIT_IOPS,
            "Delivered IOPS in the last 5 s: completed operations.",
        ),
        number_column(
            "DELIVERED 5 MIN",
            "last_5_min.delivered_iops",
            UNIT_IOPS,
            "Delivered IOPS in the last 5 minutes.",
        ),
        number_column("QUEUED", "queued", "requests", "Requests queued in the scheduler."),
        number_column(
            "IN FLIGHT",
            "in_flight",
            "requests",
            "Requests submitted to the device and not completed.",
        ),
        text_column(
            "LIMITED BY",
            "last_5_s.limited_by[].factor, last_5_s.limited_by[].share_ppm",
            "First limiting factor and its share of the last 5 s. JSON has all factors in parts per million; see \
             the table of factors below.",
        ),
    ],
};

pub(crate) const QOS_DELIVERY: Columns = Columns {
    commands: &["qos show DISK", "disk show NAME"],
    row_object: "window: the last 5 s and the last 5 minutes",
    json_path: "last_5_s, last_5_min",
    schema: Some("QosDelivery"),
    columns: &[
        text_column(
            "WINDOW",
            "window_ns",
            "Window. JSON has its length in ns, which is shorter while the disk is new.",
        ),
        number_column(
            "GUARANTEED",
            "guaranteed_iops",
            UNIT_IOPS,
            "Guaranteed IOPS: `min_iops`, multiplied by the share of the window in which the disk had requests; as in \
             `suimon qos flows`.",
        ),
        number_column(
            "DEMAND",
            "demand_iops",
            UNIT_IOPS,
            "Demand: operations that the clients submitted.",
        ),
        number_column(
            "DELIVERED",
            "delivered_iops",
            UNIT_IOPS,
            "Delivered IOPS: completed operations.",
        ),
        number_column(
            "QUEUE DEPTH",
            "queue_depth_milli",
            "requests / 1000",
            "Mean number of outstanding requests (queued and in the device) while there were any.",
        ),
        number_column(
            "DEVICE LATENCY",
            "device_latency_ns, device_baseline_latency_ns",
            "ns",
            "Mean time of a read or write in the device. In parentheses the device's own latency at the same \
             depth: the lowest of the last one to two hours, or of the measurement of the store.",
        ),
        text_column(
            "LIMITED BY",
            "limited_by[].factor, limited_by[].share_ppm",
            "All limiting factors with their shares of the window, first factor first.",
        ),
    ],
};

pub(crate) const QOS_POLICIES: Columns = Columns {
    commands: &["qos policy list"],
    row_object: "QoS policy",
    json_path: "[]",
    schema: Some("QosPolicyStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the policy."),
        text_column(
            "KIND",
            "config.kind, config.shared",
            "`dedicated`: each disk has the limits. `aggregated`: the disks share the limits. `shared`: the policy \
             belongs to the cluster.",
        ),
        number_column("MIN", "config.min_iops", UNIT_IOPS, "Minimum."),
        number_column("MAX", "config.max_iops", UNIT_IOPS, "Maximum."),
        number_column("MAX BYTES", "config.max_bytes_per_s", "bytes/s", "Maximum throughput."),
        number_column(
            "BURST",
            "config.burst_iops, config.burst_s",
            UNIT_IOPS,
            "Burst rate `burst_iops`, and `burst_s`: the credit is at most (`burst_iops` − `max_iops`) × `burst_s` \
             operations.",
        ),
        number_column(
            "WEIGHT",
            "config.weight",
            "",
            "Weight for the distribution of unreserved IOPS.",
        ),
        number_column(
            "DISKS",
            "disks",
            "",
            "Number of disks with the policy. JSON has their names.",
        ),
        number_column(
            "RESERVED",
            "reserved_iops",
            UNIT_IOPS,
            "Sum of the minimums that the policy reserves on all stores.",
        ),
        number_column(
            "IOPS",
            "delivered_iops",
            UNIT_IOPS,
            "Delivered IOPS of its disks on this host in the last 5 s.",
        ),
    ],
};

pub(crate) const QOS_POLICY_SHARES: Columns = Columns {
    commands: &["qos policy show NAME"],
    row_object: "shared store with disks of a shared aggregated policy",
    json_path: "parts[]",
    schema: Some("QosPolicyPart"),
    columns: &[
        text_column("STORE", "store", "Name of the store."),
        number_column(
            "MIN HERE",
            "min_iops",
            UNIT_IOPS,
            "Minimum of the disks of this host together.",
        ),
        number_column(
            "MAX HERE",
            "max.iops",
            UNIT_IOPS,
            "Maximum of the disks of this host together, now.",
        ),
        number_column(
            "RESERVED",
            "max.reserved_iops",
            UNIT_IOPS,
            "Part of the maximum that holds without etcd.",
        ),
        number_column("LEASE", "max.lease_ms", "ms", "Remaining time of the lease."),
    ],
};

pub(crate) const WHAT_IF_STORES: Columns = Columns {
    commands: &["qos what-if"],
    row_object: "store that the proposal concerns",
    json_path: "stores[]",
    schema: Some("StorePromises"),
    columns: &[
        text_column("STORE", "store", "Name of the store."),
        number_column(
            "MINIMUMS",
            "minimums",
            "",
            "Number of minimums; an aggregated policy counts once.",
        ),
        number_column("SUM", "minimums_iops", UNIT_IOPS, "Sum of the minimums."),
        number_column(
            "CAPACITY",
            "capacity_iops",
            UNIT_IOPS,
            "Capacity of the store; `–` if unknown.",
        ),
        number_column(
            "LARGEST SUM",
            "reservable_iops",
            UNIT_IOPS,
            "Largest permitted sum of minimums: 90 % of the capacity.",
        ),
        text_column("FITS", "fits", "`yes` if the sum of the minimums is permitted."),
    ],
};
