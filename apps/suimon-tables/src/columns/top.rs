//! Columns of `suimon top`.

use crate::columns::column::{Columns, UNIT_IOPS, number_column, text_column};

pub(crate) const TOP_PORTS: Columns = Columns {
    commands: &["top"],
    row_object: "NIC, and in a second table per uplink",
    json_path: "nics[], uplinks[]",
    schema: None,
    columns: &[
        text_column("NAME", "name", "Name of the NIC or uplink."),
        text_column("SWITCH", "switch", "Name of the switch."),
        text_column("HEALTH", "health", "`up`, `down` or `failed`, as in `suimon nic list`."),
        number_column(
            "RX",
            "rx_frames_per_s",
            "frames/s",
            "Frames that the switch received from the port: on a NIC sent by the guest.",
        ),
        number_column(
            "RX BIT/S",
            "rx_bits_per_s",
            "bit/s",
            "Bits that the switch received from the port: on a NIC sent by the guest.",
        ),
        number_column(
            "TX",
            "tx_frames_per_s",
            "frames/s",
            "Frames that the switch sent to the port: on a NIC received by the guest.",
        ),
        number_column(
            "TX BIT/S",
            "tx_bits_per_s",
            "bit/s",
            "Bits that the switch sent to the port: on a NIC received by the guest.",
        ),
        number_column(
            "DROPS/S",
            "rx_drops_per_s, tx_drops_per_s",
            "frames/s",
            "Frames dropped at the port, both directions.",
        ),
    ],
};

pub(crate) const TOP_TEAMS: Columns = Columns {
    commands: &["top"],
    row_object: "team, followed by one per member",
    json_path: "teams[]",
    schema: None,
    columns: &[
        text_column("NAME", "name", "Name of the team."),
        text_column("MEMBER", "members[].uplink", "Member; `–` in the row of the team."),
        text_column("SWITCH", "switch", "Switch that uses the team."),
        text_column("HEALTH", "health", "Health of the team or member."),
        number_column("RX BIT/S", "rx_bits_per_s", "bit/s", "Traffic from the wire."),
        number_column(
            "RX %",
            "members[].rx_permille",
            "1/1000",
            "Member's share of the team's traffic from the wire.",
        ),
        number_column("TX BIT/S", "tx_bits_per_s", "bit/s", "Traffic to the wire."),
        number_column(
            "TX %",
            "members[].tx_permille",
            "1/1000",
            "Member's share of the team's traffic to the wire.",
        ),
    ],
};

pub(crate) const TOP_DISKS: Columns = Columns {
    commands: &["top"],
    row_object: "disk",
    json_path: "disks[]",
    schema: None,
    columns: &[
        text_column("NAME", "name", "Name of the disk."),
        text_column("STORE", "store", "Store of the disk."),
        text_column(
            "STATE",
            "state, stale",
            "State, as in `suimon disk list`, without the reason.",
        ),
        number_column(
            "READS/S",
            "reads_per_s",
            "requests/s",
            "Completed reads. These are requests of any size, not normalised.",
        ),
        number_column("READ/S", "read_bytes_per_s", "bytes/s", "Bytes read."),
        number_column(
            "WRITES/S",
            "writes_per_s",
            "requests/s",
            "Completed writes, not normalised.",
        ),
        number_column("WRITTEN/S", "written_bytes_per_s", "bytes/s", "Bytes written."),
        number_column(
            "LATENCY",
            "latency_ns",
            "ns",
            "Mean latency of all requests, from receipt to completion, time in the scheduler included.",
        ),
        number_column(
            "QOS WAIT",
            "qos_wait_ns",
            "ns",
            "Time that requests were queued in the scheduler in the last 5 s, divided by the normalised operations that \
             completed: per request, if a request is at most as large as `normalization_bytes`; otherwise multiply it by \
             the operations of a request.",
        ),
        number_column(
            "GUARANTEED",
            "guaranteed_iops",
            UNIT_IOPS,
            "Guaranteed IOPS, as in `suimon qos flows`.",
        ),
        number_column("DEMAND", "demand_iops", UNIT_IOPS, "Demand, as in `suimon qos flows`."),
        number_column(
            "DELIVERED",
            "delivered_iops",
            UNIT_IOPS,
            "Delivered IOPS, as in `suimon qos flows`.",
        ),
    ],
};

pub(crate) const TOP_WORKERS: Columns = Columns {
    commands: &["top"],
    row_object: "worker",
    json_path: "workers[]",
    schema: None,
    columns: &[
        number_column("ID", "id", "", "Number of the worker."),
        number_column(
            "CPU",
            "cpu",
            "",
            "Logical CPU that the worker is pinned to; `any` with `floating_workers`.",
        ),
        number_column("QUEUES", "queues", "", "Queues that the worker owns."),
        number_column("CPU %", "cpu_permille", "1/1000", "CPU time used, as a share of one CPU."),
        number_column(
            "BUSY %",
            "busy_permille",
            "1/1000",
            "Share of time in which the worker did not sleep.",
        ),
        number_column("FRAMES", "frames_per_s", "frames/s", "Frames taken from queues."),
        number_column("BATCHES/S", "batches_per_s", "1/s", "Batches of frames taken from queues."),
        number_column("SLEEPS/S", "sleeps_per_s", "1/s", "Times the worker went to sleep."),
    ],
};

pub(crate) const TOP_STAGES: Columns = Columns {
    commands: &["top --stages"],
    row_object: "worker; shares of its time in percent, in JSON in 1/1000. The stage `storage` is in JSON only \
          (`stages_permille.storage`)",
    json_path: "workers[]",
    schema: None,
    columns: &[
        number_column("ID", "id", "", "Number of the worker."),
        number_column("IDLE", "stages_permille.idle", "1/1000", "Stage `idle`."),
        number_column("POLL", "stages_permille.poll", "1/1000", "Stage `poll`."),
        number_column("COPY IN", "stages_permille.copy_in", "1/1000", "Stage `copy_in`."),
        number_column("CLASSIFY", "stages_permille.classify", "1/1000", "Stage `classify`."),
        number_column("COALESCE", "stages_permille.coalesce", "1/1000", "Stage `coalesce`."),
        number_column("SEGMENT", "stages_permille.segment", "1/1000", "Stage `segment`."),
        number_column("CHECKSUM", "stages_permille.checksum", "1/1000", "Stage `checksum`."),
        number_column("COPY OUT", "stages_permille.copy_out", "1/1000", "Stage `copy_out`."),
        number_column("NOTIFY", "stages_permille.notify", "1/1000", "Stage `notify`."),
    ],
};

pub(crate) const TOP_POWER: Columns = Columns {
    commands: &["top"],
    row_object: "host",
    json_path: "power",
    schema: None,
    columns: &[
        text_column("PLAN", "plan", "Power plan; `none` without `[power]`."),
        text_column(
            "IN EFFECT",
            "effect",
            "`full`, `partial`, `none` or `off` (no plan), when the plan was last applied.",
        ),
        number_column(
            "WATTS",
            "milliwatts",
            "mW",
            "Power of packages and memory (RAPL); `–` if unknown.",
        ),
        number_column(
            "FRAMES/S PER W",
            "frames_per_s_per_watt",
            "frames/s per W",
            "Frames taken from queues per watt.",
        ),
        number_column(
            "REQUESTS/S PER W",
            "disk_requests_per_s_per_watt",
            "requests/s per W",
            "Completed disk requests per watt.",
        ),
        text_column("REASON", "unavailable_reason", "Why power is unknown."),
    ],
};
