//! Columns of stores, disks and Storage QoS.

use crate::columns::column::{Column, Columns, IOPS, number, text};

const STATE: Column = text(
    "STATE",
    "state, reason, stale",
    "`ready`: in service. `working`: out of service while an operation works on the file. `failed`: could not \
     be opened; the reason follows, and the daemon retries. `stalled`: the store has not completed a request \
     for 5 s; requests are queued. `away`: another node has the file of the disk open, during a migration. `full`: the \
     store has no space for some requests, which are queued, or fail (`on_full`); other requests proceed. \
     `faulted`: a flush has failed; writes and flushes fail until the disk is reopened, and reads proceed. \
     `(stale)`: the worker of the disk does not respond (event 5006), and the values of the row are the last known ones.",
);

const STORE_STATE: Column = text(
    "STATE",
    "state, reason, stale",
    "`ready`: the directory or device can be read. `failed`: it cannot; the reason follows, and the daemon retries. \
     Whether a store is full or does not respond is a state of its disks (`suimon disk list`). `(stale)`: no worker \
     with disks of the store responds, and rate, latency and depth are the last known ones.",
);

pub(crate) const STORES: Columns = Columns {
    commands: &["store list"],
    row: "store",
    path: "[]",
    schema: Some("StoreStatus"),
    all: &[
        text("NAME", "config.name", "Name of the store."),
        text("PATH", "config.path", "Directory or block device."),
        number("DISKS", "disks", "", "Number of disks in the store."),
        number(
            "FREE",
            "free_bytes",
            "bytes",
            "Free space of the file system; `–` for a block device.",
        ),
        number("SIZE", "total_bytes", "bytes", "Size of the file system or block device."),
        number(
            "VIRTUAL",
            "virtual_bytes, overcommit_percent",
            "bytes",
            "Sum of the sizes of the store's disks as guests see them, and its share of the store's size in \
             percent.",
        ),
        number("IOPS", "delivered_iops", IOPS, "Rate of completed operations in the last 5 s."),
        number(
            "CAPACITY",
            "capacity_iops",
            IOPS,
            "Capacity of the store as configured or measured; `–` if unknown.",
        ),
        number(
            "RESERVED",
            "reserved_iops, reserved_percent",
            IOPS,
            "Sum of all minimums on the store, without the 64 IOPS of a node in `suimon cluster status`, and its share \
             of the capacity in percent, rounded up.",
        ),
        number(
            "LATENCY",
            "latency_ns",
            "ns",
            "Mean time of a request in the device, at present; `–` without recent requests.",
        ),
        number(
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
    row: "disk",
    path: "[]",
    schema: Some("DiskStatus"),
    all: &[
        text("NAME", "config.name", "Name of the disk."),
        text("STORE", "config.store", "Store of the disk."),
        text(
            "FORMAT",
            "config.format, kind",
            "Image format on the store, with the kind (`fixed`, `dynamic`, `differencing`) if it is not the \
             default kind of the format.",
        ),
        number(
            "SIZE",
            "size_bytes",
            "bytes",
            "Size that the guest sees; `–` while the disk is not open.",
        ),
        number("ALLOCATED", "allocated_bytes", "bytes", "Space that the file takes on the store."),
        text(
            "QOS",
            "config.qos_policy, config.qos",
            "Name of the QoS policy, or the limits of the disk in the form of `LIMITS` of `suimon qos flows`.",
        ),
        number("READ", "counters.reads.bytes", "bytes", "Bytes read since the disk was opened."),
        number(
            "WRITTEN",
            "counters.writes.bytes",
            "bytes",
            "Bytes written since the disk was opened.",
        ),
        number(
            "ERRORS",
            "counters.reads.errors, counters.writes.errors, counters.flushes.errors, counters.discards.errors",
            "requests",
            "Requests that failed since the disk was opened.",
        ),
        text(
            "USED BY",
            "vhost_user.connected, nbd.clients",
            "`VM` for a vhost-user front-end, and the number of NBD connections.",
        ),
        STATE,
    ],
};

pub(crate) const DISK_REQUESTS: Columns = Columns {
    commands: &["disk show NAME"],
    row: "kind of request, since the disk was opened",
    path: "counters.*",
    schema: Some("DiskRequestCounters"),
    all: &[
        text(
            "REQUEST",
            "",
            "Kind of the requests: `read`, `write`, `flush` or `discard` (with writes of zeros). `reads`, \
                      `writes`, `flushes` and `discards` of `counters` in JSON.",
        ),
        number("COUNT", "requests", "requests", "Completed requests."),
        number("BYTES", "bytes", "bytes", "Bytes of these requests."),
        number("ERRORS", "errors", "requests", "Failed requests."),
        number(
            "LATENCY P50",
            "latency_ns_p50",
            "ns",
            "Median latency, from receipt to completion, time in the scheduler included.",
        ),
        number("LATENCY P99", "latency_ns_p99", "ns", "99th percentile of the latency."),
        number("LATENCY MAX", "latency_ns_max", "ns", "Highest latency."),
    ],
};

pub(crate) const QOS_FLOWS: Columns = Columns {
    commands: &["qos flows"],
    row: "open disk",
    path: "[]",
    schema: Some("QosFlowStatus"),
    all: &[
        text("DISK", "disk", "Name of the disk."),
        text("STORE", "store", "Store of the disk."),
        text(
            "LIMITS OF",
            "holder",
            "Object that the limits belong to: `disk/NAME`, or `qos_policy/NAME` for an aggregated policy, whose \
             disks share the limits.",
        ),
        text(
            "LIMITS",
            "limits",
            "Limits in effect: minimum; maximum, in IOPS, in bytes per second, or both; burst; weight if it is not 100. \
             For example `min 500, max 1000 and 8.00 MiB/s, burst 20.0 k for 60 s, weight 200`.",
        ),
        number(
            "GUARANTEED",
            "last_5_s.guaranteed_iops",
            IOPS,
            "Guaranteed IOPS in the last 5 s: `min_iops`, multiplied by the share of this time in which the disk had \
             requests, queued or in the device. 0 without a minimum. With an aggregated policy, the guarantee of all \
             its disks in the store together.",
        ),
        number(
            "DEMAND",
            "last_5_s.demand_iops",
            IOPS,
            "Demand in the last 5 s: operations that the clients submitted.",
        ),
        number(
            "DELIVERED",
            "last_5_s.delivered_iops",
            IOPS,
            "Delivered IOPS in the last 5 s: completed operations.",
        ),
        number(
            "DELIVERED 5 MIN",
            "last_5_min.delivered_iops",
            IOPS,
            "Delivered IOPS in the last 5 minutes.",
        ),
        number("QUEUED", "queued", "requests", "Requests queued in the scheduler."),
        number(
            "IN FLIGHT",
            "in_flight",
            "requests",
            "Requests submitted to the device and not completed.",
        ),
        text(
            "LIMITED BY",
            "last_5_s.limited_by[].factor, last_5_s.limited_by[].share_ppm",
            "First limiting factor and its share of the last 5 s. JSON has all factors in parts per million; see \
             the table of factors below.",
        ),
    ],
};

pub(crate) const QOS_DELIVERY: Columns = Columns {
    commands: &["qos show DISK", "disk show NAME"],
    row: "window: the last 5 s and the last 5 minutes",
    path: "last_5_s, last_5_min",
    schema: Some("QosDelivery"),
    all: &[
        text(
            "WINDOW",
            "window_ns",
            "Window. JSON has its length in ns, which is shorter while the disk is new.",
        ),
        number(
            "GUARANTEED",
            "guaranteed_iops",
            IOPS,
            "Guaranteed IOPS: `min_iops`, multiplied by the share of the window in which the disk had requests; as in \
             `suimon qos flows`.",
        ),
        number("DEMAND", "demand_iops", IOPS, "Demand: operations that the clients submitted."),
        number("DELIVERED", "delivered_iops", IOPS, "Delivered IOPS: completed operations."),
        number(
            "QUEUE DEPTH",
            "queue_depth_milli",
            "requests / 1000",
            "Mean number of outstanding requests (queued and in the device) while there were any.",
        ),
        number(
            "DEVICE LATENCY",
            "device_latency_ns, device_baseline_latency_ns",
            "ns",
            "Mean time of a read or write in the device. In parentheses the device's own latency at the same \
             depth: the lowest of the last one to two hours, or of the measurement of the store.",
        ),
        text(
            "LIMITED BY",
            "limited_by[].factor, limited_by[].share_ppm",
            "All limiting factors with their shares of the window, first factor first.",
        ),
    ],
};

pub(crate) const QOS_POLICIES: Columns = Columns {
    commands: &["qos policy list"],
    row: "QoS policy",
    path: "[]",
    schema: Some("QosPolicyStatus"),
    all: &[
        text("NAME", "config.name", "Name of the policy."),
        text(
            "KIND",
            "config.kind, config.shared",
            "`dedicated`: each disk has the limits. `aggregated`: the disks share the limits. `shared`: the policy \
             belongs to the cluster.",
        ),
        number("MIN", "config.min_iops", IOPS, "Minimum."),
        number("MAX", "config.max_iops", IOPS, "Maximum."),
        number("MAX BYTES", "config.max_bytes_per_s", "bytes/s", "Maximum throughput."),
        number(
            "BURST",
            "config.burst_iops, config.burst_s",
            IOPS,
            "Burst rate `burst_iops`, and `burst_s`: the credit is at most (`burst_iops` − `max_iops`) × `burst_s` \
             operations.",
        ),
        number("WEIGHT", "config.weight", "", "Weight for the distribution of unreserved IOPS."),
        number("DISKS", "disks", "", "Number of disks with the policy. JSON has their names."),
        number(
            "RESERVED",
            "reserved_iops",
            IOPS,
            "Sum of the minimums that the policy reserves on all stores.",
        ),
        number(
            "IOPS",
            "delivered_iops",
            IOPS,
            "Delivered IOPS of its disks on this host in the last 5 s.",
        ),
    ],
};

pub(crate) const QOS_POLICY_PARTS: Columns = Columns {
    commands: &["qos policy show NAME"],
    row: "shared store with disks of a shared aggregated policy",
    path: "parts[]",
    schema: Some("QosPolicyPart"),
    all: &[
        text("STORE", "store", "Name of the store."),
        number("MIN HERE", "min_iops", IOPS, "Minimum of the disks of this host together."),
        number("MAX HERE", "max.iops", IOPS, "Maximum of the disks of this host together, now."),
        number(
            "RESERVED",
            "max.reserved_iops",
            IOPS,
            "Part of the maximum that holds without etcd.",
        ),
        number("LEASE", "max.lease_ms", "ms", "Remaining time of the lease."),
    ],
};

pub(crate) const WHAT_IF_STORES: Columns = Columns {
    commands: &["qos what-if"],
    row: "store that the proposal concerns",
    path: "stores[]",
    schema: Some("StorePromises"),
    all: &[
        text("STORE", "store", "Name of the store."),
        number("MINIMUMS", "minimums", "", "Number of minimums; an aggregated policy counts once."),
        number("SUM", "minimums_iops", IOPS, "Sum of the minimums."),
        number("CAPACITY", "capacity_iops", IOPS, "Capacity of the store; `–` if unknown."),
        number(
            "LARGEST SUM",
            "reservable_iops",
            IOPS,
            "Largest permitted sum of minimums: 90 % of the capacity.",
        ),
        text("FITS", "fits", "`yes` if the sum of the minimums is permitted."),
    ],
};
