//! Columns of switches, NICs, uplinks and teams.

use crate::columns::column::{Column, Columns, HEALTH, number, text};

const RX: Column = number(
    "RX",
    "counters.rx_bytes",
    "bytes",
    "Bytes that the switch received from the port since the port was created: on a NIC sent by the guest, on an \
     uplink received from the wire.",
);

const TX: Column = number(
    "TX",
    "counters.tx_bytes",
    "bytes",
    "Bytes that the switch sent to the port since the port was created: on a NIC received by the guest, on an \
     uplink sent to the wire.",
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
            "`VF n of ADAPTER` or `synthetic` (paravirtual path through the switch); `–` (the same path) for a NIC \
             with `iov_weight` 0 that has no VF.",
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
            "`primary`: receives what only one member may receive. In switch-independent mode that is the traffic \
             for NICs that have no member of their own; in other modes the role has no effect. `standby`: used \
             only while another member has failed; switch-independent mode only.",
        ),
        text("LINK", "link_up", "Carrier of the device: `up` or `down`."),
        number(
            "SPEED",
            "speed_mbps",
            "Mbit/s",
            "Speed that the device reports; `–` if it reports none. Load balancing then treats the member as being \
             as fast as the slowest active member of known speed.",
        ),
        number("RX", "rx_bps", "bit/s", "Rate of traffic from the wire in the last second."),
        number(
            "RX %",
            "rx_share_ppm",
            "ppm",
            "Share of the traffic that the team received from the wire in the last second.",
        ),
        number("TX", "tx_bps", "bit/s", "Rate of traffic to the wire in the last second."),
        number(
            "TX %",
            "tx_share_ppm",
            "ppm",
            "Share of the traffic that the team sent to the wire in the last second.",
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
            "ACTOR STATE",
            "lacp.actor.state",
            "State bits of this host (the actor), one letter per set bit: `A` activity, `T` short timeout, `G` aggregation, \
             `S` synchronization, `C` collecting, `D` distributing, `F` defaulted, `E` expired.",
        ),
        text("PARTNER STATE", "lacp.partner.state", "State bits of the partner, same letters."),
        text(
            "IN SYNC",
            "lacp.actor.state, lacp.partner.state",
            "Which ends have set the synchronization bit: `both`, `actor only`, `partner only` or `no`.",
        ),
        text("COLLECTING", "lacp.collecting", "`yes` if the team accepts frames from the link."),
        text("DISTRIBUTING", "lacp.distributing", "`yes` if the team may send frames on the link."),
        text("RECEIVE", "lacp.receive", "State of the Receive machine."),
        text("MUX", "lacp.mux", "State of the Mux machine."),
        number(
            "LAST LACPDU",
            "lacp.last_pdu_age_ms",
            "ms",
            "Time since the last valid LACPDU; `–` if none was received.",
        ),
    ],
};
