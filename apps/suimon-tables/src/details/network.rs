//! Detail views of switches, ports and adapters.

use super::line::{Details, HEALTH, Line, line};

const RX_DROPPED: Line = line(
    "rx dropped",
    "counters.rx_dropped",
    "Frames from the port that were dropped, one line per reason; 0 without drops.",
);
const TX_DROPPED: Line = line(
    "tx dropped",
    "counters.tx_dropped",
    "Frames for the port that were dropped, one line per reason; 0 without drops.",
);
const SOFTWARE_SEGMENTED: Line = line(
    "software segmented",
    "counters.software_segmented",
    "Frames that were segmented in software because the port does not segment.",
);
const SOFTWARE_CHECKSUMMED: Line = line(
    "software checksummed",
    "counters.software_checksummed",
    "Frames whose partial checksum was completed in software for the port.",
);
const SOFTWARE_COALESCED: Line = line(
    "software coalesced",
    "counters.software_coalesced_segments, counters.software_coalesced_units",
    "Frames that were coalesced in software for the port, and the large frames that resulted.",
);

pub(super) const SWITCH: Details = Details {
    command: "switch show",
    lines: &[
        HEALTH,
        line("addresses", "addresses", "Number of addresses in the forwarding table."),
        line("nics", "nics", "NICs on the switch."),
        line(
            "rx dropped … software coalesced",
            "host_nic",
            "Counters of the host NIC, as in `suimon nic show`; only if the switch has one.",
        ),
    ],
};

pub(super) const NIC: Details = Details {
    command: "nic show",
    lines: &[
        HEALTH,
        line("queue pairs in use", "queue_pairs", "Queue pairs that the guest has enabled."),
        line("addresses learned", "learned", "Number of source addresses learned on the port."),
        line(
            "bound address",
            "bound_mac",
            "First source address of a guest whose NIC has no address of its own: other NICs may not send from it.",
        ),
        line(
            "virtio features",
            "virtio_features",
            "Features that the guest's driver has negotiated.",
        ),
        line(
            "path",
            "iov",
            "`VF n of ADAPTER`, or `synthetic` with the reason why the NIC has no virtual function.",
        ),
        RX_DROPPED,
        TX_DROPPED,
        SOFTWARE_SEGMENTED,
        SOFTWARE_CHECKSUMMED,
        SOFTWARE_COALESCED,
        line(
            "kernel path",
            "kernel_path.open, kernel_path.reason",
            "`open` if the kernel may forward frames of the NIC, or `closed` with the reason; only with `kernel_path`.",
        ),
        line(
            "rx on this path, tx on this path",
            "kernel_path.rx_frames, kernel_path.rx_bytes, kernel_path.tx_frames, kernel_path.tx_bytes",
            "Frames that the kernel has forwarded from the NIC and to it. The counters of the NIC include them.",
        ),
    ],
};

pub(super) const UPLINK: Details = Details {
    command: "uplink show",
    lines: &[
        HEALTH,
        line(
            "used by switch",
            "switch",
            "Switch whose uplink it is, directly or as member of a team.",
        ),
        line("mtu in effect", "mtu", "Largest IP packet, as currently in effect."),
        line("address", "mac", "MAC address of the device."),
        line("AF_XDP", "af_xdp", "Mode of the AF_XDP sockets; only with `driver = \"af_xdp\"`."),
        line(
            "lost frames",
            "af_xdp.lost_frames",
            "Received frames that were lost because a socket had no space.",
        ),
        line(
            "steering",
            "steering",
            "Whether the device steers frames to receive queues of NICs, with the reason if it does not; below \
                 it the queue of each NIC.",
        ),
        RX_DROPPED,
        TX_DROPPED,
        SOFTWARE_SEGMENTED,
        SOFTWARE_CHECKSUMMED,
        SOFTWARE_COALESCED,
    ],
};

pub(super) const TEAM: Details = Details {
    command: "team show",
    lines: &[
        HEALTH,
        line("used by switch", "switch", "Switch whose uplink is the team."),
        line("members active", "members[].state", "Members that carry frames, of all members."),
        line(
            "speed of active",
            "speed_mbps",
            "Sum of the speeds of active members with a known speed, in Mbit/s in JSON.",
        ),
        line("mtu in effect", "mtu", "Smallest MTU of the members."),
        line(
            "lacp partner",
            "lacp_partner",
            "System ID, system priority and key of the other end.",
        ),
        RX_DROPPED,
        TX_DROPPED,
        SOFTWARE_SEGMENTED,
        SOFTWARE_CHECKSUMMED,
        SOFTWARE_COALESCED,
    ],
};

pub(super) const VF: Details = Details {
    command: "vf show ADAPTER N",
    lines: &[
        line("index", "index", "Number of the VF on its adapter."),
        line("address", "address", "PCI address of the VF."),
        line("driver", "driver", "Driver of the VF; `vfio-pci` for assignment to VMs."),
        line("iommu group", "iommu_group", "Number of the IOMMU group; `–` without IOMMU."),
        line(
            "device",
            "device, netns",
            "Network device of the VF and its network namespace; `–` if there is none, or it is not visible.",
        ),
        line("used by", "used_by", "User of the VF; `–` if it is not in use."),
        line(
            "mac … link_state",
            "mac, vlan, spoof_check, trust, bandwidth_min_bps, bandwidth_max_bps, link_state",
            "Settings of the VF as the adapter reports them ([keys](config.md)); `–` if it does not report one.",
        ),
    ],
};
