//! Lines of detail views, as printed by `suimon KIND show NAME`, for the reference page.

/// Detail view of one kind of object.
pub(crate) struct Details {
    /// Command that prints the view, without `suimon`.
    pub(crate) command: &'static str,
    /// Lines beside those of configuration keys, in the order of the view.
    pub(crate) lines: &'static [Line],
}

/// Line of a detail view.
pub(crate) struct Line {
    /// Title at the beginning of the line.
    pub(crate) title: &'static str,
    /// Fields of `--json` from which the line is made, separated by `, `.
    pub(crate) fields: &'static str,
    /// Meaning of the line in complete sentences.
    pub(crate) meaning: &'static str,
}

const fn line(title: &'static str, fields: &'static str, meaning: &'static str) -> Line {
    Line { title, fields, meaning }
}

const HEALTH: Line =
    line("health", "condition.health, condition.reason", "As in the table of this kind.");

/// Detail views whose lines are not columns of a table.
pub(crate) const DETAILS: &[Details] = &[
    Details {
        command: "host show",
        lines: &[
            line("name", "name", "Name of the host."),
            line("version", "version", "Version of the daemon."),
            line("uptime", "uptime_s", "Time since the start of the daemon, in seconds in JSON."),
            line(
                "revision",
                "revision",
                "Number of changes of the desired state. It continues across restarts of the daemon.",
            ),
            line("switches … nodes", "switches, …", "Numbers of configured objects of each kind."),
            line(
                "drained",
                "drain",
                "Progress of `suimon node drain`; only on a drained host, which accepts no VM.",
            ),
            line(
                "state",
                "state_store.reason",
                "`not writable` with the reason, if the state directory cannot be written. Then changes of the \
                 configuration are refused, and no VM is started. Absent otherwise.",
            ),
            line(
                "nbd",
                "nbd.connections, nbd.connections_max, nbd.buffer_bytes, nbd.buffer_max_bytes, nbd.peers",
                "NBD connections and their buffer memory, each with its limit, for all disks; below it by peer.",
            ),
            line(
                "confined",
                "confinement",
                "`full`: capabilities, system calls and file access of all threads are restricted. `partial`: the \
                 kernel lacks what `missing` lists. `off`: the daemon runs with `--no-confine`. Below it, the \
                 restrictions of each kind of thread.",
            ),
        ],
    },
    Details {
        command: "switch show",
        lines: &[
            HEALTH,
            line("addresses", "addresses", "Number of addresses in the forwarding table."),
            line("nics", "nics", "NICs on the switch."),
        ],
    },
    Details {
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
            line(
                "software segmented",
                "counters.software_segmented",
                "Frames that were segmented in software because the port does not segment.",
            ),
        ],
    },
    Details {
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
            line(
                "AF_XDP",
                "af_xdp",
                "Mode of the AF_XDP sockets; only with `driver = \"af_xdp\"`.",
            ),
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
        ],
    },
    Details {
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
        ],
    },
    Details {
        command: "store show",
        lines: &[
            line("state", "state, stale, reason", "As in `suimon store list`."),
            line("disks", "disks", "Number of disks in the store."),
            line(
                "free",
                "free_bytes, total_bytes",
                "Free space, and size of the file system or block device.",
            ),
            line(
                "nearly full",
                "nearly_full",
                "`yes` if more than `full_warning_percent` of the store is used.",
            ),
            line(
                "virtual size of disks",
                "virtual_bytes, overcommit_percent",
                "Sum of the sizes of the disks, and its ratio to the size of the store.",
            ),
            line(
                "allocated by disks",
                "allocated_bytes",
                "Space that the files of the disks take.",
            ),
            line(
                "capacity",
                "capacity_iops, capacity_source",
                "Capacity for admission control, in normalised IOPS; `configured` or `measured`.",
            ),
            line(
                "measured",
                "measured",
                "Result and conditions of the last measurement; below it the rate of each pattern of requests.",
            ),
            line(
                "rate at saturation",
                "estimate.iops, estimate.age_ms",
                "Normalised IOPS that the store delivered when requests were last queued for it, and how long ago \
                 that was: an estimate of its capacity for the load of that time. `–` if that has not occurred since \
                 its disks went into service.",
            ),
            line(
                "reserved",
                "reserved_iops, reserved_percent",
                "Sum of minimums, and its ratio to the capacity.",
            ),
            line("delivered (5 s)", "delivered_iops", "Rate of all disks in the last 5 s."),
            line("latency", "latency_ns", "Current time of a request in the device."),
            line(
                "requests in flight",
                "depth, depth_allowed",
                "Requests in the device, of those that the scheduler currently allows there.",
            ),
        ],
    },
    Details {
        command: "disk show",
        lines: &[
            line("state", "state, stale, reason", "As in `suimon disk list`."),
            line("image file", "file", "Path of the image that the disk writes to."),
            line("image format", "config.format, kind", "Format and kind of this image."),
            line("parent", "parent", "Parent of a differencing image, relative to the store."),
            line("size", "size_bytes", "Size that the guest sees."),
            line("allocated", "allocated_bytes", "Space that the image takes on the store."),
            line("files", "layers", "Number of images of the disk: its own and its parents."),
            line(
                "metadata",
                "uncommitted_bytes",
                "`clean` if no metadata of the image is pending (0 in JSON); otherwise bytes of metadata that the \
                 next flush, or 2 s without writes, makes durable.",
            ),
            line(
                "requests without space",
                "full.queued_requests",
                "Requests that wait because the store is full; only while there are any.",
            ),
            line("worker", "worker", "Number of the worker that serves the disk."),
            line("used by", "vhost_user.connected, nbd", "VM, and NBD clients."),
            line(
                "limits in effect",
                "qos.limits, qos.holder",
                "Limits of the disk, and the object that they belong to.",
            ),
            line("requests queued", "qos.queued", "Requests queued in the scheduler."),
            line("requests in flight", "qos.in_flight", "Requests in the device."),
        ],
    },
    Details {
        command: "vm show",
        lines: &[
            line("state", "state, reason, migration", "As in `suimon vm list`."),
            line("migration", "migration.id", "Identifier of a migration in progress."),
            line("to node, from node", "migration.node", "The other node of the migration."),
            line("phase", "migration.phase", "Phase of the migration."),
            line(
                "copied, handed over",
                "migration.disks_copied, migration.disks_handed_over",
                "Disks by how they move.",
            ),
            line(
                "disks, memory",
                "migration.disk_bytes_copied, migration.disk_bytes_left, migration.memory_bytes_copied, \
                 migration.memory_bytes_left",
                "Progress of the copy; on the source only.",
            ),
            line("process, user id", "process, user", "Process of QEMU, and its user."),
            line("accelerator in use", "accelerator", "`kvm` or `tcg`."),
            line("QEMU", "qemu_version", "Version of the QEMU that runs the VM."),
            line(
                "CPUs now, NICs now, disks now",
                "cpus, nics, disks",
                "Devices that the running VM has.",
            ),
            line(
                "guest agent",
                "agent, frozen_s",
                "Whether the guest agent is connected, or file systems are frozen.",
            ),
            line(
                "pending for next start",
                "waits_for_start",
                "Keys whose new value the VM gets at its next start.",
            ),
        ],
    },
    Details {
        command: "node show",
        lines: &[
            HEALTH,
            line("host", "host", "Name of the host at this address."),
            line("version", "version", "Version of its daemon."),
            line(
                "drained",
                "drain",
                "Progress of `suimon node drain` there; only if it is drained.",
            ),
        ],
    },
    Details {
        command: "cluster status",
        lines: &[
            line(
                "health",
                "condition.health, condition.reason",
                "`up` if etcd responds; otherwise the reason. `failed` if the host cannot join the cluster.",
            ),
            line(
                "last contact",
                "age_ms",
                "Age of the following values; `–` before the first report of etcd.",
            ),
        ],
    },
    Details {
        command: "worker list --json",
        lines: &[line("(JSON only)", "[].stages", "Time of the worker by [stage](#stages).")],
    },
];
