//! Columns of offloads, VMQ, queues and workers.

use crate::columns::column::{Column, Columns, number_column, text_column};

const OFFLOAD: Column = text_column(
    "OFFLOAD",
    "name",
    "Offload, seen from the guest; for an uplink seen from the switch: `rx_` or `tx_`, and `checksum`, `ip_checksum`, \
     `tcp4_segmentation`, `tcp6_segmentation`, `tcp_ecn_segmentation` or `udp_segmentation`; or `receive_coalescing`. \
     The key `segmentation` concerns all kinds of segmentation in both directions.",
);
const SUPPORTED: Column = text_column(
    "SUPPORTED",
    "supported",
    "Whether the peer (guest driver, TAP, device of the uplink) supports the offload; `–` if unknown.",
);
const ENABLED: Column =
    text_column("ENABLED", "enabled", "Whether the configuration permits the offload.");
const USED: Column = text_column("USED", "effective", "Whether the offload is in use.");
const BY: Column = text_column(
    "BY",
    "by",
    "Component that does the work: `guest`, `device` (of the uplink; `nic` in JSON), `kernel`, `software` (the \
     switch), `egress port` (the component that the egress port selects; `egress` in JSON) or `not done` (`nobody` \
     in JSON).",
);
const REASON: Column = text_column("REASON", "reason", "Why the offload is used or not.");

pub(crate) const PORT_OFFLOADS: Columns = Columns {
    commands: &["offload show"],
    row_object: "offload of each NIC, uplink and host NIC",
    json_path: "[].offloads[]",
    schema: Some("OffloadStatus"),
    columns: &[
        text_column(
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
    row_object: "offload of the port",
    json_path: "offloads[]",
    schema: Some("OffloadStatus"),
    columns: &[OFFLOAD, SUPPORTED, ENABLED, USED, BY, REASON],
};

pub(crate) const VMQS: Columns = Columns {
    commands: &["vmq list"],
    row_object: "uplink or team with VMQ",
    json_path: "[]",
    schema: Some("VmqStatus"),
    columns: &[
        text_column("UPLINK", "uplink", "Uplink or team."),
        text_column("ENABLED", "config.enabled", "`no`: the base worker services all queues."),
        text_column(
            "MODE",
            "config.mode",
            "`dynamic`: queues are placed by load. `static`: once, by `vmq_weight`.",
        ),
        number_column("QUEUES", "queues", "", "Number of queues."),
        number_column(
            "IN USE",
            "workers[].queues",
            "",
            "Workers that own at least one of the queues.",
        ),
        number_column(
            "PARKED",
            "workers[].permitted, workers[].queues",
            "",
            "Permitted workers that own none of the queues.",
        ),
        number_column(
            "BUSIEST",
            "workers[].worker, workers[].load_ppm",
            "ppm",
            "Number and load of the most loaded worker among those in use.",
        ),
    ],
};

pub(crate) const VMQ_WORKERS: Columns = Columns {
    commands: &["vmq show NAME"],
    row_object: "worker",
    json_path: "workers[]",
    schema: Some("VmqProcessorStatus"),
    columns: &[
        number_column("WORKER", "worker", "", "Number of the worker."),
        text_column(
            "STATE",
            "permitted, queues",
            "`in use`: owns queues of this uplink or team. `parked`: permitted, owns none. `not permitted`: the \
             VMQ configuration excludes it. `draining`: excluded, and its queues are being moved away.",
        ),
        number_column(
            "QUEUES",
            "queues",
            "",
            "Queues of this uplink or team that the worker owns.",
        ),
        number_column(
            "LOAD",
            "load_ppm",
            "ppm",
            "Share of time in which the worker did work, for all of its queues.",
        ),
        number_column(
            "OTHER LOAD",
            "other_load_ppm",
            "ppm",
            "Part of the load that queues of other switches, uplinks and disks cause.",
        ),
    ],
};

pub(crate) const VMQ_QUEUES: Columns = Columns {
    commands: &["vmq show NAME"],
    row_object: "queue",
    json_path: "queues[]",
    schema: Some("VmqQueueStatus"),
    columns: &[
        text_column(
            "QUEUE",
            "queue",
            "Queue as `PORT/rx/N` or `PORT/tx/N`. For a NIC, `rx` carries frames to the guest.",
        ),
        number_column("WORKER", "worker", "", "Number of the worker that owns the queue."),
        text_column("PORT", "nic", "NIC or uplink of the queue."),
        number_column(
            "LOAD",
            "load_ppm",
            "ppm",
            "Share of the worker's time that the queue takes.",
        ),
        number_column(
            "AGE",
            "age_s",
            "s",
            "Time since the queue was moved to the worker or created there.",
        ),
        text_column(
            "DEFAULT QUEUE",
            "default_queue",
            "`yes` if the queue must stay on the base worker: the NIC has `vmq_weight` 0, or VMQ is not enabled.",
        ),
    ],
};

pub(crate) const QUEUES: Columns = Columns {
    commands: &["queue list"],
    row_object: "queue of the data plane",
    json_path: "[]",
    schema: Some("QueueStatus"),
    columns: &[
        text_column(
            "ID",
            "id",
            "Queue as `PORT/rx/N` or `PORT/tx/N`. For a NIC, `rx` carries frames to the guest.",
        ),
        number_column("WORKER", "worker", "", "Number of the worker that owns the queue."),
        number_column("FRAMES", "frames", "frames", "Frames carried since the queue was created."),
        number_column("BYTES", "bytes", "bytes", "Bytes carried since the queue was created."),
        number_column(
            "FULL",
            "full",
            "frames",
            "Frames dropped because the receiver had no free buffer (drop reason `egress_full`).",
        ),
        number_column("MOVES", "moves", "", "Times the queue was moved to another worker."),
    ],
};

pub(crate) const WORKERS: Columns = Columns {
    commands: &["worker list"],
    row_object: "worker (data-plane thread)",
    json_path: "[]",
    schema: Some("ProcessorStatus"),
    columns: &[
        text_column(
            "ID",
            "id",
            "Number of the worker, from 0 in the order of `[host] worker_cpus`.",
        ),
        number_column(
            "CPU",
            "cpu",
            "",
            "Logical CPU that the worker is pinned to; `any` with `floating_workers`.",
        ),
        number_column("QUEUES", "queues", "", "Queues that the worker owns."),
        number_column("CPU TIME", "cpu_time_ns", "ns", "CPU time used since the daemon started."),
        number_column(
            "BUSY",
            "busy_ns",
            "ns",
            "Time in which the worker did not sleep: all stages except `idle`.",
        ),
        number_column("FRAMES", "frames", "frames", "Frames taken from queues."),
        number_column("BATCHES", "batches", "", "Batches of frames taken from queues."),
        number_column("SLEEPS", "sleeps", "", "Times the worker went to sleep."),
        number_column(
            "YIELDS",
            "yields",
            "",
            "Times the worker suspended polling for device completions because other threads needed its CPU.",
        ),
        text_column(
            "STATE",
            "asleep, yielding",
            "`awake` or `asleep`; `yields its CPU` while polling for device completions is suspended.",
        ),
    ],
};
