//! Columns of switches, NICs, uplinks, teams, offloads, VMQ and SR-IOV.

use super::{Column, Columns, number, text};

const HEALTH: Column = text(
    "HEALTH",
    "condition.health, condition.reason",
    "`up`: as configured, and frames can pass. `down`: as configured, but the peer is missing (no VM, no \
     carrier). `failed`: not as configured; the reason follows, and the daemon retries after 1 s, doubling \
     to 30 s.",
);

const RX: Column = number(
    "RX",
    "counters.rx_bytes",
    "bytes",
    "Bytes that the switch received from the port since the port was created.",
);

const TX: Column = number(
    "TX",
    "counters.tx_bytes",
    "bytes",
    "Bytes that the switch sent to the port since the port was created.",
);

const DROPS: Column = number(
    "DROPS",
    "counters.rx_dropped[].frames, counters.tx_dropped[].frames",
    "frames",
    "Frames dropped at the port in both directions, all reasons added up. The detail view has them by reason.",
);

pub(crate) const SWITCHES: Columns = Columns {
    commands: &["switch list"],
    row: "switch",
    path: "[]",
    schema: Some("SwitchStatus"),
    all: &[
        text("NAME", "config.name", "Name of the switch."),
        text("KIND", "config.kind", "Kind of the switch: `private`, `internal` or `external`."),
        text("UPLINK", "config.uplink", "Uplink or team of an external switch."),
        number("NICS", "nics", "", "Number of NICs on the switch. JSON has their names."),
        number("ADDRESSES", "addresses", "", "Number of MAC addresses in the forwarding table."),
        HEALTH,
    ],
};

pub(crate) const ADDRESSES: Columns = Columns {
    commands: &["switch addresses NAME"],
    row: "entry of the forwarding table",
    path: "[]",
    schema: Some("AddressStatus"),
    all: &[
        text("ADDRESS", "mac", "MAC address."),
        number("VLAN", "vlan", "", "VLAN ID; `–` for untagged frames."),
        text(
            "PORT",
            "port",
            "NIC, uplink or switch (for its host NIC) behind which the address is.",
        ),
        number(
            "AGE",
            "age_s, fixed",
            "s",
            "Time since the address was last seen as a source; `fixed` for a configured address, which does not age.",
        ),
    ],
};

pub(crate) const NICS: Columns = Columns {
    commands: &["nic list"],
    row: "NIC",
    path: "[]",
    schema: Some("NicStatus"),
    all: &[
        text("NAME", "config.name", "Name of the NIC."),
        text("SWITCH", "config.switch", "Switch that the NIC is connected to."),
        text(
            "BACKEND",
            "config.backend, config.device, config.netns",
            "`vhost-user`, `legacy`, or `tap` with the device and its network namespace.",
        ),
        text(
            "VLAN",
            "config.vlan, config.trunk",
            "Access VLAN; with `trunk` the native VLAN and the allowed VLANs.",
        ),
        text(
            "PATH",
            "iov.path, iov.adapter, iov.vf",
            "`VF n of ADAPTER` or `synthetic` (paravirtual path through the switch); `–` for a NIC with \
             `iov_weight` 0.",
        ),
        number("QUEUES", "queue_pairs", "", "Queue pairs in use."),
        RX,
        TX,
        DROPS,
        HEALTH,
    ],
};

pub(crate) const UPLINKS: Columns = Columns {
    commands: &["uplink list"],
    row: "uplink",
    path: "[]",
    schema: Some("UplinkStatus"),
    all: &[
        text("NAME", "config.name", "Name of the uplink."),
        text("DEVICE", "config.device", "Network device of the host."),
        text(
            "DRIVER",
            "config.driver",
            "How the daemon accesses the device: `af_packet`, `af_xdp` or `tap`.",
        ),
        text("SWITCH", "switch", "Switch that uses the uplink, directly or through a team."),
        number("MTU", "mtu", "bytes", "Largest IP packet in effect."),
        RX,
        TX,
        DROPS,
        HEALTH,
    ],
};

pub(crate) const TEAMS: Columns = Columns {
    commands: &["team list"],
    row: "team",
    path: "[]",
    schema: Some("TeamStatus"),
    all: &[
        text("NAME", "config.name", "Name of the team."),
        text("MODE", "config.mode", "Team mode: `switch-independent`, `static` or `lacp`."),
        text("ALGORITHM", "config.algorithm", "Load-balancing algorithm."),
        text("SWITCH", "switch", "Switch that uses the team."),
        number("ACTIVE", "members[].state", "", "Members in state `active`, of all members."),
        number(
            "SPEED",
            "speed_mbps",
            "Mbit/s",
            "Sum of the speeds of the active members. A member of unknown speed adds nothing.",
        ),
        RX,
        TX,
        HEALTH,
    ],
};

pub(crate) const TEAM_MEMBERS: Columns = Columns {
    commands: &["team show NAME"],
    row: "member of the team",
    path: "members[]",
    schema: Some("TeamMemberStatus"),
    all: &[
        text("MEMBER", "uplink", "Uplink."),
        text(
            "STATE",
            "state",
            "`active`: frames leave by the member. `waiting`: the member could carry frames, but it is the \
             standby, or the team is down. `failed`: the member cannot carry frames.",
        ),
        text(
            "ROLE",
            "primary, standby",
            "`primary`: receives for NICs that have no member of their own. `standby`: used only while another \
             member has failed. Switch-independent mode only.",
        ),
        text("LINK", "link_up", "Carrier of the device: `up` or `down`."),
        number(
            "SPEED",
            "speed_mbps",
            "Mbit/s",
            "Speed that the device reports; `–` if it reports none. The team then counts the member as fast as \
             its slowest member of known speed.",
        ),
        number("RX", "rx_bps", "bit/s", "Rate of received traffic in the last second."),
        number(
            "SHARE",
            "rx_share_ppm",
            "ppm",
            "Share of the traffic that the team received in the last second.",
        ),
        number("TX", "tx_bps", "bit/s", "Rate of sent traffic in the last second."),
        number(
            "SHARE",
            "tx_share_ppm",
            "ppm",
            "Share of the traffic that the team sent in the last second.",
        ),
        number(
            "FLOWS",
            "flows_share_ppm",
            "ppm",
            "Share of the flows that hashing or load balancing assigns to the member.",
        ),
        number(
            "NICS",
            "nics",
            "",
            "NICs that the algorithm assigns to the member; 0 with the hash algorithms.",
        ),
        text("REASON", "reason", "Why the member is in its state."),
    ],
};

pub(crate) const LACP_LINKS: Columns = Columns {
    commands: &["team show NAME"],
    row: "member of a team in LACP mode (IEEE 802.1AX)",
    path: "members[]",
    schema: Some("TeamMemberStatus"),
    all: &[
        text("MEMBER", "uplink", "Uplink."),
        text(
            "PARTNER",
            "lacp.partner.system",
            "System address of the partner; `–` before the first LACPDU.",
        ),
        number("PRIORITY", "lacp.partner.system_priority", "", "System priority of the partner."),
        number(
            "KEY",
            "lacp.partner.key",
            "",
            "Key of the partner's port. Links of one group have the same key.",
        ),
        number("PORT", "lacp.partner.port", "", "Port number of the partner."),
        text(
            "OUR STATE",
            "lacp.actor.state",
            "State bits of this end, one letter per set bit: `A` activity, `T` short timeout, `G` aggregation, \
             `S` synchronization, `C` collecting, `D` distributing, `F` defaulted, `E` expired.",
        ),
        text("ITS STATE", "lacp.partner.state", "State bits of the partner, same letters."),
        text(
            "IN SYNC",
            "lacp.actor.state, lacp.partner.state",
            "Which ends have set the synchronization bit: `both ends`, `only ours`, `only its` or `no`.",
        ),
        text("COLLECTING", "lacp.collecting", "`yes` if the team accepts frames from the link."),
        text("DISTRIBUTING", "lacp.distributing", "`yes` if the team may send frames on the link."),
        text("RECEIVE", "lacp.receive", "State of the Receive machine."),
        text("MUX", "lacp.mux", "State of the Mux machine."),
        number(
            "HEARD",
            "lacp.last_pdu_age_ms",
            "ms",
            "Time since the last valid LACPDU; `–` if none was received.",
        ),
    ],
};

const OFFLOAD: Column =
    text("OFFLOAD", "name", "Offload, seen from the guest; for an uplink seen from the switch.");
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
    "Component that does the work: `guest`, `nic` (device of the uplink), `kernel`, `software` (the switch), \
     `egress` (whichever component the egress port selects) or `nobody`.",
);
const REASON: Column = text("REASON", "reason", "Why the offload is used or not.");

pub(crate) const PORT_OFFLOADS: Columns = Columns {
    commands: &["offload show"],
    row: "offload of each NIC, uplink and host NIC",
    path: "[].offloads[]",
    schema: Some("OffloadStatus"),
    all: &[
        Column {
            title: "PORT",
            align: crate::table::Align::Left,
            fields: "",
            unit: "",
            meaning: "Port; with its kind if ports of two kinds have the same name. `name` and `kind` of the \
                      element of the output in JSON.",
        },
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
        text("ENABLED", "config.enabled", "`no`: the base processor services all queues."),
        text(
            "MODE",
            "config.mode",
            "`dynamic`: queues are placed by load. `static`: once, by `vmq_weight`.",
        ),
        number("QUEUES", "queues", "", "Number of queues."),
        number("IN USE", "processors[].queues", "", "Workers that own at least one of the queues."),
        number(
            "PARKED",
            "processors[].permitted, processors[].queues",
            "",
            "Permitted workers that own none of the queues.",
        ),
        number(
            "BUSIEST",
            "processors[].processor, processors[].load_ppm",
            "ppm",
            "Number and load of the most loaded worker among those in use.",
        ),
    ],
};

pub(crate) const VMQ_PROCESSORS: Columns = Columns {
    commands: &["vmq show NAME"],
    row: "worker",
    path: "processors[]",
    schema: Some("VmqProcessorStatus"),
    all: &[
        number("PROCESSOR", "processor", "", "Number of the worker."),
        text(
            "STATE",
            "permitted, queues",
            "`in use`: owns queues of this uplink or team. `parked`: permitted, owns none. `not permitted`: the \
             VMQ configuration excludes it. `to be left`: excluded, and its queues are still being moved.",
        ),
        number("QUEUES", "queues", "", "Queues of this uplink or team that the worker owns."),
        number(
            "LOAD",
            "load_ppm",
            "ppm",
            "Share of time in which the worker did work, for all of its queues.",
        ),
        number(
            "OF OTHERS",
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
        number("PROCESSOR", "processor", "", "Number of the worker that owns the queue."),
        text("NIC", "nic", "NIC or uplink of the queue."),
        number("LOAD", "load_ppm", "ppm", "Share of the worker's time that the queue takes."),
        number(
            "SINCE",
            "age_s",
            "s",
            "Time since the queue was moved to the worker or created there.",
        ),
        text(
            "DEFAULT QUEUE",
            "default_queue",
            "`yes` if the NIC has `vmq_weight` 0: the base processor services it.",
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
        number("PROCESSOR", "processor", "", "Number of the worker that owns the queue."),
        number("FRAMES", "frames", "frames", "Frames carried since the queue was created."),
        number("BYTES", "bytes", "bytes", "Bytes carried since the queue was created."),
        number("FULL", "full", "frames", "Frames lost because the receiver had no free buffer."),
        number("MOVES", "moves", "", "Times the queue was moved to another worker."),
    ],
};

pub(crate) const PROCESSORS: Columns = Columns {
    commands: &["processor list"],
    row: "worker (data-plane thread)",
    path: "[]",
    schema: Some("ProcessorStatus"),
    all: &[
        text("ID", "id", "Number of the worker, from 0 in the order of `[host] processors`."),
        number(
            "CPU",
            "cpu",
            "",
            "Logical CPU that the worker is pinned to; `any` with `floating_processors`.",
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
        number("BATCHES", "batches", "", "Batches taken from queues."),
        number("SLEEPS", "sleeps", "", "Times the worker went to sleep."),
        number(
            "RESTS",
            "rests",
            "",
            "Times the worker suspended polling for device completions because other threads need its CPU.",
        ),
        text(
            "STATE",
            "asleep, resting",
            "`awake` or `asleep`; `others want its CPU` while polling for device completions is suspended.",
        ),
    ],
};

pub(crate) const PFS: Columns = Columns {
    commands: &["pf list"],
    row: "configured SR-IOV adapter",
    path: "[]",
    schema: Some("PfStatus"),
    all: &[
        text("NAME", "config.name", "Name of the `[[pf]]`."),
        text("DEVICE", "config.device", "Network device or PCI address of the adapter."),
        number("VFS", "config.vfs", "", "Configured number of virtual functions."),
        number("NOW", "adapter.vfs_enabled", "", "Virtual functions that exist."),
        number("IN USE", "adapter.vfs_in_use", "", "Virtual functions in use."),
        HEALTH,
    ],
};

pub(crate) const ADAPTERS: Columns = Columns {
    commands: &["vf list"],
    row: "network adapter with SR-IOV",
    path: "[]",
    schema: Some("SriovAdapter"),
    all: &[
        text(
            "DEVICE",
            "device, netns",
            "Network device of the physical function, with its namespace if it is not the daemon's.",
        ),
        text("ADDRESS", "address", "PCI address of the physical function."),
        text("DRIVER", "driver", "Kernel driver of the physical function."),
        number("SUPPORTED", "vfs_supported", "", "Largest number of virtual functions."),
        number("ENABLED", "vfs_enabled", "", "Virtual functions that exist."),
        number("IN USE", "vfs_in_use", "", "Virtual functions in use."),
        number("IOMMU", "iommu_group", "", "IOMMU group."),
        number("NUMA", "numa_node", "", "NUMA node of the adapter."),
        text(
            "SRIOV SUPPORT",
            "support",
            "`Supported` if VMs can have virtual functions, else the first obstacle, in the words of Hyper-V's \
             `SriovSupport`. The remedy is printed below the table.",
        ),
    ],
};

pub(crate) const VFS: Columns = Columns {
    commands: &["vf list", "vf show ADAPTER", "pf show NAME"],
    row: "virtual function",
    path: "vfs[]",
    schema: Some("VfStatus"),
    all: &[
        number("VF", "index", "", "Number of the virtual function."),
        text("ADDRESS", "address", "PCI address."),
        text("DRIVER", "driver", "Kernel driver; `vfio-pci` while a VM has the function."),
        number("IOMMU", "iommu_group", "", "IOMMU group."),
        text(
            "DEVICE",
            "device, netns",
            "Network device, with its namespace if it is not the daemon's.",
        ),
        text("MAC", "mac", "MAC address that the adapter has for the function."),
        number("VLAN", "vlan", "", "VLAN of all frames of the function."),
        text(
            "SPOOF",
            "spoof_check",
            "Whether the adapter drops frames from other source addresses; `–` if the driver does not report it.",
        ),
        text(
            "TRUST",
            "trust",
            "Whether the function may change its address and receive promiscuously.",
        ),
        number("MIN", "bandwidth_min_bps", "bit/s", "Guaranteed transmit rate."),
        number("MAX", "bandwidth_max_bps", "bit/s", "Maximum transmit rate."),
        text(
            "LINK",
            "link_state",
            "Link state that the function is shown: `auto`, `enable` or `disable`.",
        ),
        text(
            "USED BY",
            "used_by",
            "User of the function: a VM, a network namespace, an uplink, a driver or the host.",
        ),
    ],
};
