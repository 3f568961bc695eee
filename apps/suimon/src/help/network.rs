//! Help of commands about switches, uplinks, teams, NICs and their offloads.

use crate::help::entry::{Help, read_only_command, state_changing_command};

pub(super) const HELP: &[Help] = &[
    read_only_command(
        "switch",
        "A switch forwards Ethernet frames between its ports by learned MAC addresses. A \
         `private` switch connects NICs only. An `internal` switch connects NICs and the host, \
         through a TAP device. An `external` switch connects NICs and the physical network, \
         through an uplink or a team.",
        &["suimon switch list", "suimon switch add lan --kind private"],
    ),
    read_only_command(
        "switch list",
        "Prints kind, uplink, number of NICs and learned addresses, and health of each switch.",
        &["suimon switch list"],
    ),
    read_only_command(
        "switch show",
        "Prints the keys, health and NICs of the switch; for an internal switch also counters and \
         offloads of the host NIC.",
        &["suimon switch show lan"],
    ),
    state_changing_command(
        "switch add",
        "The daemon starts forwarding on the new switch. An internal switch also creates a TAP \
         device on the host. Existing switches and running VMs are not affected.",
        &[
            "suimon switch add lan --kind private",
            "suimon switch add mgmt --kind internal --host-device mgmt0",
            "suimon switch add dc --kind external --uplink wan",
        ],
    ),
    state_changing_command(
        "switch set",
        "Changes apply at once; no NIC is closed, and traffic between NICs continues. After a change \
         of `kind` or `uplink`, NICs reach the network of the new uplink, if any. A team in LACP \
         mode forwards no frames until its links have negotiated.",
        &["suimon switch set lan --ageing-s 600", "suimon switch set lan --unset ageing_s"],
    ),
    state_changing_command(
        "switch delete",
        "Fails with exit code 6 while a NIC is connected to the switch. The uplink or team of the \
         switch stays and can be used by another switch.",
        &["suimon switch delete lan"],
    ),
    read_only_command(
        "switch addresses",
        "Prints each MAC address with its VLAN, the port behind which it is, and the time since it \
         was last a source address. `fixed` marks addresses that are configured with `mac` of a \
         NIC; they do not age.",
        &["suimon switch addresses lan"],
    ),
    read_only_command(
        "uplink",
        "An uplink is a network device of the host that an external switch uses, directly or as \
         member of a team. The device should have no IP address that the host needs; with the \
         driver `af_xdp`, `host_addresses` keeps addresses for the host.",
        &["suimon uplink list", "suimon uplink add wan --device eth0"],
    ),
    read_only_command(
        "uplink list",
        "Prints device, driver, switch, MTU, traffic, dropped frames and health of each uplink.",
        &["suimon uplink list"],
    ),
    read_only_command(
        "uplink show",
        "Prints the keys, health, counters, offloads and, with the driver `af_xdp`, the receive \
         queues of the uplink.",
        &["suimon uplink show wan"],
    ),
    state_changing_command(
        "uplink add",
        "Opens the device. The uplink carries frames once a switch has it as its `uplink`, or it \
         is a member of a team that a switch has as its `uplink`.",
        &[
            "suimon uplink add wan --device eth0",
            "suimon uplink add wan --device eth0 --driver af_xdp --queues 4",
        ],
    ),
    state_changing_command(
        "uplink set",
        "A change of `device`, `driver` or `queues` closes and reopens the device, which \
         interrupts the traffic of the uplink. Other keys apply without interruption. VMs \
         continue to run.",
        &["suimon uplink set wan --mtu 9000", "suimon uplink set wan --unset mtu"],
    ),
    state_changing_command(
        "uplink delete",
        "Fails with exit code 6 while a switch or team uses the uplink. The network device stays \
         on the host; a TAP device that the daemon created is deleted.",
        &["suimon uplink delete wan"],
    ),
    read_only_command(
        "team",
        "A team combines uplinks for bandwidth and failover, like a bond of Linux. Modes: `static` \
         and `lacp` require a link aggregation group on the physical switch, \
         `switch-independent` requires no configuration there.",
        &["suimon team list", "suimon team add both --members left,right --mode lacp"],
    ),
    read_only_command(
        "team list",
        "Prints mode, algorithm, switch, active members, speed, traffic and health of each team.",
        &["suimon team list"],
    ),
    read_only_command(
        "team show",
        "Prints the keys, health and counters of the team, one row per member with its share of \
         the traffic and the reason of its state, and in mode `lacp` the state of the partner on \
         each link.",
        &["suimon team show both"],
    ),
    state_changing_command(
        "team add",
        "The members must be uplinks that no switch and no other team uses. The team carries \
         frames once a switch has it as its `uplink`.",
        &[
            "suimon team add both --members left,right --mode lacp",
            "suimon team add both --members left,right --mode switch-independent --standby right",
        ],
    ),
    state_changing_command(
        "team set",
        "Changes apply at once. Flows of VMs move to other members where the change requires it; \
         frames of a flow are not reordered.",
        &[
            "suimon team set both --algorithm transport-ports",
            "suimon team set both --members left,right,third",
        ],
    ),
    state_changing_command(
        "team delete",
        "Fails with exit code 6 while a switch uses the team. The member uplinks stay.",
        &["suimon team delete both"],
    ),
];

/// Help of NICs and offloads.
pub(super) const PORT_HELP: &[Help] = &[
    read_only_command(
        "nic",
        "A NIC is a port of a switch. Its other side is a VM (backends `vhost-user` and `legacy`) \
         or a TAP device on the host or in a network namespace (backend `tap`).",
        &["suimon nic list", "suimon nic add web --switch lan --backend vhost-user"],
    ),
    read_only_command(
        "nic list",
        "Prints switch, backend, VLANs, path, queue pairs, traffic, dropped frames and health of \
         each NIC. RX counts what the switch receives from the guest, TX what it sends to the \
         guest. Queue ids, offload keys and metrics have the opposite directions: those of the \
         guest.",
        &["suimon nic list"],
    ),
    read_only_command(
        "nic show",
        "Prints the keys, health, counters with the reasons of dropped frames, offloads, and the \
         virtio features that the guest driver negotiated.",
        &["suimon nic show web"],
    ),
    state_changing_command(
        "nic add",
        "A TAP NIC is usable at once. A NIC with the backend `vhost-user` or `legacy` is down \
         until its VM connects: name it in `nics` of the VM (`suimon vm set`), which hot-plugs \
         it into a running VM, or give `--socket` to connect a QEMU process that another program \
         starts.",
        &[
            "suimon nic add web --switch lan --backend vhost-user --mac 52:54:00:12:34:56",
            "suimon nic add probe --switch lan --backend tap --netns blue --vlan 20",
            "suimon nic add fw --switch lan --backend vhost-user --trunk 10,20-29 --vlan 1",
        ],
    ),
    state_changing_command(
        "nic set",
        "A change of `backend`, `socket`, `mode`, `device`, `netns` or `queues`, and on a \
         vhost-user NIC of `mac` or `mtu`, closes and reopens the port: the NIC loses its link \
         until the VM has reconnected, usually within seconds. Other keys apply without \
         interruption. The VM continues to run. While the NIC is plugged into a running VM, a \
         change of `backend` or `mac` fails with exit code 6, because the guest keeps the former \
         device and address: stop the VM first.",
        &[
            "suimon nic set web --vlan 20",
            "suimon nic set web --bandwidth-max-bps 1000000000",
            "suimon nic set web --unset vlan",
        ],
    ),
    state_changing_command(
        "nic delete",
        "Fails with exit code 6 while a VM names the NIC in `nics`; remove it there first with \
         `suimon vm set`. The TAP device or socket of the NIC is deleted.",
        &["suimon nic delete web"],
    ),
    read_only_command(
        "nic capture",
        "Captures until a limit is reached or Ctrl-C is pressed. Inbound frames in the file are \
         those to the guest. A new file is readable by its owner only. Capturing costs CPU time \
         of the workers. Frames that `suimon` does not read in time are missing from the file. \
         Traffic is not affected.",
        &[
            "suimon nic capture web --write web.pcapng --count 1000",
            "suimon nic capture web --write - --snaplen 96",
        ],
    ),
    read_only_command(
        "uplink capture",
        "Captures until a limit is reached or Ctrl-C is pressed. Inbound frames in the file are \
         those from the physical network. A new file is readable by its owner only. Capturing \
         costs CPU time of the workers. Frames that `suimon` does not read in time are missing \
         from the file. Traffic is not affected.",
        &["suimon uplink capture wan --write wan.pcapng --max-bytes 10000000"],
    ),
    read_only_command(
        "offload",
        "An offload leaves checksums, segmentation (TSO, GSO) or coalescing (LRO, GRO) of frames \
         to another component: the guest, the network device, or the switch in software. Ports \
         with offloads are NICs, uplinks and host NICs of internal switches. `rx` and `tx` in names \
         of offloads are the directions of the user of the port's device: the guest for a NIC, the \
         host for a host NIC, the switch for an uplink.",
        &["suimon offload show web", "suimon offload set web segmentation=off"],
    ),
    read_only_command(
        "offload show",
        "Prints one row per port and offload: whether the other side supports it, whether the \
         configuration enables it, whether it is in use, which component does the work, and why.",
        &["suimon offload show", "suimon offload show web uplink:wan"],
    ),
    state_changing_command(
        "offload set",
        "Changes apply at once and without loss of frames. A guest driver keeps the offloads that \
         it negotiated; the switch then does the work of a disabled offload in software. Keys that \
         are not given are unchanged.",
        &[
            "suimon offload set web segmentation=off",
            "suimon offload set uplink:wan rx_checksum=off receive_coalescing=default",
        ],
    ),
];
