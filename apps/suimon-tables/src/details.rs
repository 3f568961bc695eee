//! Lines of detail views, as printed by `suimon KIND show NAME`, for the reference page.

mod line;
mod network;
mod storage;

pub(crate) use self::line::Details;
use self::line::{HEALTH, line};

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
    network::SWITCH,
    network::NIC,
    network::UPLINK,
    network::TEAM,
    Details {
        command: "vmq explain NAME --json",
        lines: &[
            line(
                "(JSON only)",
                "[].queue, [].worker, [].load_ppm, [].age_s",
                "As in the table of the queues of `suimon vmq show NAME`.",
            ),
            line("(JSON only)", "[].reason", "Why the queue was placed on the worker."),
            line(
                "(JSON only)",
                "[].stay_reason",
                "Why VMQ does not move the queue now, with the remaining time if a later move is possible.",
            ),
        ],
    },
    network::VF,
    storage::STORE,
    storage::DISK,
    storage::DISK_EXPORT,
    storage::IMAGE_INFO,
    storage::QOS_POLICY,
    Details {
        command: "vm show",
        lines: &[
            line("state", "state, reason, migration", "As in `suimon vm list`."),
            line("migration", "migration.id", "Identifier of a migration in progress."),
            line("to node, from node", "migration.node", "The other node of the migration."),
            line(
                "phase",
                "migration.phase",
                "`preparing`: the destination prepares the VM's resources. `copying-disks`: disks are copied, including \
                 writes of the guest in the meantime. `copying-memory`: memory is copied in the same way. `switching`: \
                 the VM is stopped, and the remaining state is copied. `handed-over`: the destination has all state, \
                 and was requested to run the VM. The source shows the phase also in `STATE` of `suimon vm list`.",
            ),
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
        command: "power show",
        lines: &[
            line("plan", "config", "Keys of `[power]`, or `none`: CPU settings are not changed."),
            line(
                "in effect",
                "effect",
                "CPU settings in effect: `off` (no plan), `full`, `partial` (the table has the reasons), or `none`.",
            ),
            line(
                "workers park",
                "data_plane.parking",
                "Whether dynamic VMQ moves queues away from lightly loaded workers, so that these park.",
            ),
            line("poll budget", "data_plane.poll_us", "Poll budget of a worker, in microseconds."),
            line(
                "VMQ high and low mark",
                "data_plane.vmq_high_percent, data_plane.vmq_low_percent",
                "Marks of dynamic VMQ, in percent of the time of a worker.",
            ),
            line("power", "energy", "Power of the host and by zone, or why it is unknown."),
        ],
    },
    Details {
        command: "worker list --json",
        lines: &[line("(JSON only)", "[].stages", "Time of the worker by [stage](#stages).")],
    },
];
