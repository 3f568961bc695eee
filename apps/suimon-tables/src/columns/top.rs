//! Columns of `suimon top`.

use crate::columns::column::{Columns, IOPS, number, text};

pub(crate) const TOP_PORTS: Columns = Columns {
    commands: &["top"],
    row: "NIC, and in a second table per uplink",
    path: "nics[], uplinks[]",
    schema: None,
    all: &[
        text("NAME", "name", "Name of the NIC or uplink."),
        text("SWITCH", "switch", "Name of the switch."),
        text("HEALTH", "health", "`up`, `down` or `failed`, as in `suimon nic list`."),
        number(
            "RX",
            "rx_frames_per_s",
            "frames/s",
            "Frames that the switch received from the port: on a NIC sent by the guest.",
        ),
        number(
            "RX BIT/S",
            "rx_bits_per_s",
            "bit/s",
            "Bits that the switch received from the port: on a NIC sent by the guest.",
        ),
        number(
            "TX",
            "tx_frames_per_s",
            "frames/s",
            "Frames that the switch sent to the port: on a NIC received by the guest.",
        ),
        number(
            "TX BIT/S",
            "tx_bits_per_s",
            "bit/s",
            "Bits that the switch sent to the port: on a NIC received by the guest.",
        ),
        number(
            "DROPS/S",
            "rx_drops_per_s, tx_drops_per_s",
            "frames/s",
            "Frames dropped at the port, both directions.",
        ),
    ],
};

pub(crate) const TOP_TEAMS: Columns = Columns {
    commands: &["top"],
    row: "team, followed by one per member",
    path: "teams[]",
    schema: None,
    all: &[
        text("NAME", "name", "Name of the team."),
        text("MEMBER", "members[].uplink", "Member; `–` in the row of the team."),
        text("SWITCH", "switch", "Switch that uses the team."),
        text("HEALTH", "health", "Health of the team or member."),
        number("RX BIT/S", "rx_bits_per_s", "bit/s", "Traffic from the wire."),
        number(
            "RX %",
            "members[].rx_permille",
            "1/1000",
            "Share of the traffic of the team from the wire.",
        ),
        number("TX BIT/S", "tx_bits_per_s", "bit/s", "Traffic to the wire."),
        number(
            "TX %",
            "members[].tx_permille",
            "1/1000",
            "Share of the traffic of the team to the wire.",
        ),
    ],
};

pub(crate) const TOP_DISKS: Columns = Columns {
    commands: &["top"],
    row: "disk",
    path: "disks[]",
    schema: None,
    all: &[
        text("NAME", "name", "Name of the disk."),
        text("STORE", "store", "Store of the disk."),
        text("STATE", "state, stale", "State, as in `suimon disk list`, without the reason."),
        number(
            "READS/S",
            "reads_per_s",
            "requests/s",
            "Completed reads. These are requests of any size, not normalised.",
        ),
        number("READ/S", "read_bytes_per_s", "bytes/s", "Bytes read."),
        number("WRITES/S", "writes_per_s", "requests/s", "Completed writes, not normalised."),
        number("WRITTEN/S", "written_bytes_per_s", "bytes/s", "Bytes written."),
        number(
            "LATENCY",
            "latency_ns",
            "ns",
            "Mean latency of all requests, from receipt to completion, time in the scheduler included.",
        ),
        number(
            "QOS WAIT",
            "qos_wait_ns",
            "ns",
            "Time that requests were queued in the scheduler in the last 5 s, divided by the normalised operations that \
             completed: per request, if a request is at most as large as `normalization_bytes`; otherwise multiply it by \
             the operations of a request.",
        ),
        number("GUARANTEED", "guaranteed_iops", IOPS, "Guaranteed IOPS, as in `suimon qos flows`."),
        number("DEMAND", "demand_iops", IOPS, "Demand, as in `suimon qos flows`."),
        number("DELIVERED", "delivered_iops", IOPS, "Delivered IOPS, as in `suimon qos flows`."),
    ],
};

pub(crate) const TOP_WORKERS: Columns = Columns {
    commands: &["top"],
    row: "worker",
    path: "workers[]",
    schema: None,
    all: &[
        number("ID", "id", "", "Number of the worker."),
        number(
            "CPU",
            "cpu",
            "",
            "Logical CPU that the worker is pinned to; `any` with `floating_workers`.",
        ),
        number("QUEUES", "queues", "", "Queues that the worker owns."),
        number("CPU %", "cpu_permille", "1/1000", "CPU time used, as a share of one CPU."),
        number(
            "BUSY %",
            "busy_permille",
            "1/1000",
            "Share of time in which the worker did not sleep.",
        ),
        number("FRAMES", "frames_per_s", "frames/s", "Frames taken from queues."),
        number("BATCHES/S", "batches_per_s", "1/s", "Batches of frames taken from queues."),
        number("SLEEPS/S", "sleeps_per_s", "1/s", "Times the worker went to sleep."),
    ],
};

pub(crate) const TOP_STAGES: Columns = Columns {
    commands: &["top --stages"],
    row: "worker; shares of its time in percent, in JSON in 1/1000. The stage `storage` is in JSON only \
          (`stages_permille.storage`)",
    path: "workers[]",
    schema: None,
    all: &[
        number("ID", "id", "", "Number of the worker."),
        number("IDLE", "stages_permille.idle", "1/1000", "Stage `idle`."),
        number("POLL", "stages_permille.poll", "1/1000", "Stage `poll`."),
        number("COPY IN", "stages_permille.copy_in", "1/1000", "Stage `copy_in`."),
        number("CLASSIFY", "stages_permille.classify", "1/1000", "Stage `classify`."),
        number("COALESCE", "stages_permille.coalesce", "1/1000", "Stage `coalesce`."),
        number("SEGMENT", "stages_permille.segment", "1/1000", "Stage `segment`."),
        number("CHECKSUM", "stages_permille.checksum", "1/1000", "Stage `checksum`."),
        number("COPY OUT", "stages_permille.copy_out", "1/1000", "Stage `copy_out`."),
        number("NOTIFY", "stages_permille.notify", "1/1000", "Stage `notify`."),
    ],
};

pub(crate) const TOP_POWER: Columns = Columns {
    commands: &["top"],
    row: "host",
    path: "power",
    schema: None,
    all: &[
        text("PLAN", "plan", "Power plan; `none` without `[power]`."),
        text(
            "IN EFFECT",
            "effect",
            "`full`, `partial`, `none` or `off` (no plan), when the plan was last applied.",
        ),
        number("WATTS", "milliwatts", "mW", "Power of packages and memory (RAPL); `–` if unknown."),
        number(
            "FRAMES/S PER W",
            "frames_per_s_per_watt",
            "frames/s per W",
            "Frames taken from queues per watt.",
        ),
        number(
            "REQUESTS/S PER W",
            "disk_requests_per_s_per_watt",
            "requests/s per W",
            "Completed disk requests per watt.",
        ),
        text("REASON", "unavailable_reason", "Why power is unknown."),
    ],
};
