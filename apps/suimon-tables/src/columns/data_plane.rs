//! Columns of offloads, VMQ, queues and workers.

use crate::columns::column::{Column, Columns, number, text};

const OFFLOAD: Column = text(
    "OFFLOAD",
    "name",
    "Offload, seen from the guest; for an uplink seen from the switch: `rx_` or `tx_`, and `checksum`, `ip_checksum`, \
     `tcp4_segmentation`, `tcp6_segmentation`, `tcp_ecn_segmentation` or `udp_segmentation`; or `receive_coalescing`. \
     The key `segmentation` concerns all kinds of segmentation in both directions.",
);
const SUPPORTED: Column = text(
    "SUPPORTED",
    "supported",
    "Whether the peer (guest driver, TAP, device of the uplink) supports the offload; `–` if unknown.",
);
const ENABLED: Column =
    text("ENABLED", "enabled", "Whether the configuration permits the offload.");
const USED: Column = text("USED", "effective", "Whether the offload is in use.");
const BY: Column = text(
    "BY",
    "by",
    "Component that does the work: `guest`, `device` (of the uplink; `nic` in JSON), `kernel`, `software` (the \
     switch), `egress port` (the component that the egress port selects; `egress` in JSON) or `not done` (`nobody` \
     in JSON).",
);
const REASON: Column = text("REASON", "reason", "Why the offload is used or not.");

pub(crate) const PORT_OFFLOADS: Columns = Columns {
    commands: &["offload show"],
    row: "offload of each NIC, uplink and host NIC",
    path: "[].offloads[]",
    schema: Some("OffloadStatus"),
    all: &[
        text(
            "PORT",
            "",
            "Port; with its kind if ports of two kinds have the same name. `name` and `kind` of the \
                      element of the output in JSON.",
        ),
        OFFLOAD,
        SUPPORTED,
        ENABLED,
        USED,
        BY,
        REASON,
    ],
};

pub(crate) const OFFLOADS: Columns = Columns {
    commands: &["nic show NAME", "uplink show NAME", "switch show NAME"],
    row: "offload of the port",
    path: "offloads[]",
    schema: Some("OffloadStatus"),
    all: &[OFFLOAD, SUPPORTED, ENABLED, USED, BY, REASON],
};

pub(crate) const VMQS: Columns = Columns {
    commands: &["vmq list"],
    row: "uplink or team with VMQ",
    path: "[]",
    schema: Some("VmqStatus"),
    all: &[
        text("UPLINK", "uplink", "Uplink or team."),
        text("ENABLED", "config.enabled", "`no`: the base worker services all queues."),
        text(
            "MODE",
            "config.mode",
            "`dynamic`: queues are placed by load. `static`: once, by `vmq_weight`.",
        ),
        number("QUEUES", "queues", "", "Number of queues."),
        number("IN USE", "workers[].queues", "", "Workers that own at least one of the queues."),
        number(
            "PARKED",
            "workers[].permitted, workers[].queues",
            "",
            "Permitted workers that own none of the queues.",
        ),
        number(
            "BUSIEST",
            "workers[].worker, workers[].load_ppm",
            "ppm",
            "Number and load of the most loaded worker among those in use.",
        ),
    ],
};

pub(crate) const VMQ_WORKERS: Columns = Columns {
    commands: &["vmq show NAME"],
    row: "worker",
    path: "workers[]",
    schema: Some("VmqProcessorStatus"),
    all: &[
        number("WORKER", "worker", "", "Number of the worker."),
        text(
            "STATE",
            "permitted, queues",
            "`in use`: owns queues of this uplink or team. `parked`: permitted, owns none. `not permitted`: the \
             VMQ configuration excludes it. `draining`: excluded, and its queues are being moved away.",
        ),
        number("QUEUES", "queues", "", "Queues of this uplink or team that the worker owns."),
        number(
            "LOAD",
            "load_ppm",
            "ppm",
            "Share of time in which the worker did work, for all of its queues.",
        ),
        number(
            "OTHER LOAD",
            "other_load_ppm",
            "ppm",
            "Part of the load that queues of other switches, uplinks and disks cause.",
        ),
    ],
};

pub(crate) const VMQ_QUEUES: Columns = Columns {
    commands: &["vmq show NAME"],
    row: "queue",
    path: "queues[]",
    schema: Some("VmqQueueStatus"),
    all: &[
        text(
            "QUEUE",
            "queue",
            "Queue as `PORT/rx/N` or `PORT/tx/N`. For a NIC, `rx` carries frames to the guest.",
        ),
        number("WORKER", "worker", "", "Number of the worker that owns the queue."),
        text("PORT", "nic", "NIC or uplink of the queue."),
        number("LOAD", "load_ppm", "ppm", "Share of the worker's time that the queue takes."),
        number(
            "AGE",
            "age_s",
            "s",
            "Time since the queue was moved to the worker or created there.",
        ),
        text(
            "DEFAULT QUEUE",
            "default_queue",
            "`yes` if the queue must stay on the base worker: the NIC has `vmq_weight` 0, or VMQ is not enabled.",
        ),
    ],
};

pub(crate) const QUEUES: Columns = Columns {
    commands: &["queue list"],
    row: "queue of the data plane",
    path: "[]",
    schema: Some("QueueStatus"),
    all: &[
        text(
            "ID",
            "id",
            "Queue as `PORT/rx/N` or `PORT/tx/N`. For a NIC, `rx` carries frames to the guest.",
        ),
        number("WORKER", "worker", "", "Number of the worker that owns the queue."),
        number("FRAMES", "frames", "frames", "Frames carried since the queue was created."),
        number("BYTES", "bytes", "bytes", "Bytes carried since the queue was created."),
        number(
            "FULL",
            "full",
            "frames",
            "Frames dropped because the receiver had no free buffer (drop reason `egress_full`).",
        ),
        number("MOVES", "moves", "", "Times the queue was moved to another worker."),
    ],
};

pub(crate) const WORKERS: Columns = Columns {
    commands: &["worker list"],
    row: "worker (data-plane thread)",
    path: "[]",
    schema: Some("ProcessorStatus"),
    all: &[
        text("ID", "id", "Number of the worker, from 0 in the order of `[host] worker_cpus`."),
        number(
            "CPU",
            "cpu",
            "",
            "Logical CPU that the worker is pinned to; `any` with `floating_workers`.",
        ),
        number("QUEUES", "queues", "", "Queues that the worker owns."),
        number("CPU TIME", "cpu_time_ns", "ns", "CPU time used since the daemon started."),
        number(
            "BUSY",
            "busy_ns",
            "ns",
            "Time in which the worker did not sleep: all stages except `idle`.",
        ),
        number("FRAMES", "frames", "frames", "Frames taken from queues."),
        number("BATCHES", "batches", "", "Batches of frames taken from queues."),
        number("SLEEPS", "sleeps", "", "Times the worker went to sleep."),
        number(
            "YIELDS",
            "yields",
            "",
            "Times the worker suspended polling for device completions because other threads needed its CPU.",
        ),
        text(
            "STATE",
            "asleep, yielding",
            "`awake` or `asleep`; `yields its CPU` while polling for device completions is suspended.",
        ),
    ],
};
