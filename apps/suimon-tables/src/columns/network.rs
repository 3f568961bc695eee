//! Columns of switches, NICs, uplinks and teams.

use crate::columns::column::{Column, Columns, HEALTH, number_column, text_column};

const RX: Column = number_column(
    "RX",
    "counters.rx_bytes",
    "bytes",
    "Bytes that the switch received from the port since the port was created: on a NIC sent by the guest, on an \
     uplink received from the wire.",
);

const TX: Column = number_column(
    "TX",
    "counters.tx_bytes",
    "bytes",
    "Bytes that the switch sent to the port since the port was created: on a NIC received by the guest, on an \
     uplink sent to the wire.",
);

const DROPS: Column = number_column(
    "DROPS",
    "counters.rx_dropped[].frames, counters.tx_dropped[].frames",
    "frames",
    "Frames dropped at the port in both directions, all reasons added up. The detail view has them by reason.",
);

pub(crate) const SWITCHES: Columns = Columns {
    commands: &["switch list"],
    row_object: "switch",
    json_path: "[]",
    schema: Some("SwitchStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the switch."),
        text_column(
            "KIND",
            "config.kind",
            "Kind of the switch: `private`, `internal` or `external`.",
        ),
        text_column("UPLINK", "config.uplink", "Uplink or team of an external switch."),
        number_column("NICS", "nics", "", "Number of NICs on the switch. JSON has their names."),
        number_column(
            "ADDRESSES",
            "addresses",
            "",
            "Number of MAC addresses in the forwarding table.",
        ),
        HEALTH,
    ],
};

pub(crate) const ADDRESSES: Columns = Columns {
    commands: &["switch addresses NAME"],
    row_object: "entry of the forwarding table",
    json_path: "[]",
    schema: Some("AddressStatus"),
    columns: &[
        text_column("ADDRESS", "mac", "MAC address."),
        number_column("VLAN", "vlan", "", "VLAN ID; `–` for untagged frames."),
        text_column(
            "PORT",
            "port",
            "NIC, uplink or switch (for its host NIC) behind which the address is.",
        ),
        number_column(
            "AGE",
            "age_s, fixed",
            "s",
            "Time since the address was last seen as a source; `fixed` for a configured address, which does not age.",
        ),
    ],
};

pub(crate) const NICS: Columns = Columns {
    commands: &["nic list"],
    row_object: "NIC",
    json_path: "[]",
    schema: Some("NicStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the NIC."),
        text_column("SWITCH", "config.switch", "Switch that the NIC is connected to."),
        text_column(
            "BACKEND",
            "config.backend, config.device, config.netns",
            "`vhost-user`, `legacy`, or `tap` with the device and its network namespace.",
        ),
        text_column(
            "VLAN",
            "config.vlan, config.trunk",
            "Access VLAN; with `trunk` the native VLAN and the allowed VLANs.",
        ),
        text_column(
            "PATH",
            "iov.path, iov.adapter, iov.vf",
            "`VF n of ADAPTER` or `synthetic` (paravirtual path through the switch); `–` (the same path) for a NIC \
             with `iov_weight` 0 that has no VF.",
        ),
        number_column("QUEUES", "queue_pairs", "", "Queue pairs in use."),
        RX,
        TX,
        DROPS,
        HEALTH,
    ],
};

pub(crate) const UPLINKS: Columns = Columns {
    commands: &["uplink list"],
    row_object: "uplink",
    json_path: "[]",
    schema: Some("UplinkStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the uplink."),
        text_column("DEVICE", "config.device", "Network device of the host."),
        text_column(
            "DRIVER",
            "config.driver",
            "How the daemon accesses the device: `af_packet`, `af_xdp` or `tap`.",
        ),
        text_column("SWITCH", "switch", "Switch that uses the uplink, directly or through a team."),
        number_column("MTU", "mtu", "bytes", "Largest IP packet in effect."),
        RX,
        TX,
        DROPS,
        HEALTH,
    ],
};

pub(crate) const TEAMS: Columns = Columns {
    commands: &["team list"],
    row_object: "team",
    json_path: "[]",
    schema: Some("TeamStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the team."),
        text_column("MODE", "config.mode", "Team mode: `switch-independent`, `static` or `lacp`."),
        text_column("ALGORITHM", "config.algorithm", "Load-balancing algorithm."),
        text_column("SWITCH", "switch", "Switch that uses the team."),
        number_column(
            "ACTIVE",
            "members[].state",
            "",
            "Members in state `active`, of all members.",
        ),
        number_column(
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
    row_object: "member of the team",
    json_path: "members[]",
    schema: Some("TeamMemberStatus"),
    columns: &[
        text_column("MEMBER", "uplink", "Uplink."),
        text_column(
            "STATE",
            "state",
            "`active`: frames leave by the member. `waiting`: the member could carry frames, but it is the \
             standby, or the team is down. `failed`: the member cannot carry frames.",
        ),
        text_column(
            "ROLE",
            "primary, standby",
            "`primary`: receives what only one member may receive. In switch-independent mode that is the traffic \
             for NICs that have no member of their own; in other modes the role has no effect. `standby`: used \
             only while another member has failed; switch-independent mode only.",
        ),
        text_column("LINK", "link_up", "Carrier of the device: `up` or `down`."),
        number_column(
            "SPEED",
            "speed_mbps",
            "Mbit/s",
            "Speed that the device reports; `–` if it reports none. Load balancing then treats the member as being \
             as fast as the slowest active member of known speed.",
        ),
        number_column("RX", "rx_bps", "bit/s", "Rate of traffic from the wire in the last second."),
        number_column(
            "RX %",
            "rx_share_ppm",
            "ppm",
            "Member's share of the traffic that the team received from the wire in the last second.",
        ),
        number_column("TX", "tx_bps", "bit/s", "Rate of traffic to the wire in the last second."),
        number_column(
            "TX %",
            "tx_share_ppm",
            "ppm",
            "Member's share of the traffic that the team sent to the wire in the last second.",
        ),
        number_column(
            "FLOWS",
            "flows_share_ppm",
            "ppm",
            "Share of the flows that hashing or load balancing assigns to the member.",
        ),
        number_column(
            "NICS",
            "nics",
            "",
            "NICs that the algorithm assigns to the member; 0 with the hash algorithms.",
        ),
        text_column("REASON", "reason", "Why the member is in its state."),
    ],
};

pub(crate) const LACP_LINKS: Columns = Columns {
    commands: &["team show NAME"],
    row_object: "member of a team in LACP mode (IEEE 802.1AX)",
    json_path: "members[]",
    schema: Some("TeamMemberStatus"),
    columns: &[
        text_column("MEMBER", "uplink", "Uplink."),
        text_column(
            "PARTNER",
            "lacp.partner.system",
            "System address of the partner; `–` before the first LACPDU.",
        ),
        number_column(
            "PRIORITY",
            "lacp.partner.system_priority",
            "",
            "System priority of the partner.",
        ),
        number_column(
            "KEY",
            "lacp.partner.key",
            "",
            "Key of the partner's port. Links of one group have the same key.",
        ),
        number_column("PORT", "lacp.partner.port", "", "Port number of the partner."),
        text_column(
            "ACTOR STATE",
            "lacp.actor.state",
            "State bits of this host (the actor), one letter per set bit: `A` activity, `T` short timeout, `G` aggregation, \
             `S` synchronization, `C` collecting, `D` distributing, `F` defaulted, `E` expired.",
        ),
        text_column(
            "PARTNER STATE",
            "lacp.partner.state",
            "State bits of the partner, same letters.",
        ),
        text_column(
            "IN SYNC",
            "lacp.actor.state, lacp.partner.state",
            "Which ends have set the synchronization bit: `both`, `actor only`, `partner only` or `no`.",
        ),
        text_column(
            "COLLECTING",
            "lacp.collecting",
            "`yes` if the team accepts frames from the link.",
        ),
        text_column(
            "DISTRIBUTING",
            "lacp.distributing",
            "`yes` if the team may send frames on the link.",
        ),
        text_column("RECEIVE", "lacp.receive", "State of the Receive machine."),
        text_column("MUX", "lacp.mux", "State of the Mux machine."),
        number_column(
            "LAST LACPDU",
            "lacp.last_pdu_age_ms",
            "ms",
            "Time since the last valid LACPDU; `–` if none was received.",
        ),
    ],
};
