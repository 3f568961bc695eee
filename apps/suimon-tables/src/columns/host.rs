//! Columns of VMs, nodes, operations and power.

use crate::columns::column::{Columns, number, text};

pub(crate) const VMS: Columns = Columns {
    commands: &["vm list"],
    row: "VM",
    path: "[]",
    schema: Some("VmStatus"),
    all: &[
        text("NAME", "config.name", "Name of the VM."),
        number(
            "CPUS",
            "cpus, config.cpus",
            "",
            "Virtual CPUs present; the configured number while the VM is stopped.",
        ),
        number("MEMORY", "config.memory_bytes", "bytes", "Configured memory."),
        text("NICS", "config.nics", "Configured NICs."),
        text("DISKS", "config.disks", "Configured disks."),
        text("ACCELERATOR", "accelerator", "`kvm` or `tcg`; `–` while the VM is stopped."),
        number("UPTIME", "uptime_s", "s", "Time since the VM was started."),
        text(
            "STATE",
            "state, reason, migration",
            "`stopped`, `starting`, `running`, `paused`, `stopping` (shutdown requested), `panicked`, `lost` (QEMU \
             does not respond), `arriving` (incoming migration) or `handed over` (outgoing migration: the \
             destination was requested to run the VM and has not replied). During a migration the other node and the \
             phase follow, after a failure the reason.",
        ),
    ],
};

pub(crate) const GUEST_INTERFACES: Columns = Columns {
    commands: &["vm guest NAME"],
    row: "network interface that the guest agent reports",
    path: "interfaces[]",
    schema: Some("VmGuestInterface"),
    all: &[
        text("INTERFACE", "name", "Name of the interface in the guest."),
        text("MAC", "mac", "MAC address."),
        text("ADDRESSES", "addresses", "IP addresses with prefix lengths."),
    ],
};

pub(crate) const NODES: Columns = Columns {
    commands: &["node list"],
    row: "other node",
    path: "[]",
    schema: Some("NodeStatus"),
    all: &[
        text("NAME", "config.name", "Name of the node in the configuration of this host."),
        text("ADDRESS", "config.address", "Address and port of the API of the node."),
        text("HOST", "host", "Host name that the node reports."),
        text("VERSION", "version", "Version of the daemon of the node."),
        text(
            "DRAINED",
            "drain.is_empty, drain.operation",
            "`empty`: drained, no VM left. `VMs migrate`: the drain is running. `has VMs`: drained, but VMs \
             remain. `–`: not drained.",
        ),
        text(
            "HEALTH",
            "condition.health, condition.reason",
            "`up` if the node responds, `down` if it does not, `failed` if it refuses the request or the request \
             cannot be made. The reason follows.",
        ),
    ],
};

pub(crate) const OPERATIONS: Columns = Columns {
    commands: &["operation list"],
    row: "operation",
    path: "[]",
    schema: Some("Operation"),
    all: &[
        number("ID", "id", "", "Number of the operation."),
        text("KIND", "kind", "Kind of the operation."),
        text("SUBJECT", "subject", "Object that the operation changes."),
        text("STATE", "state", "`running`, `succeeded`, `failed` or `cancelled`."),
        number("STEPS", "steps_done, steps", "", "Completed steps, of all steps."),
        text(
            "STARTED",
            "started_unix_ms",
            "Start time (UTC). JSON has milliseconds since 1970-01-01 UTC.",
        ),
    ],
};

pub(crate) const POWER_SETTINGS: Columns = Columns {
    commands: &["power show"],
    row: "CPU setting that the power plan requires; CPUs with equal values share a row",
    path: "settings[]",
    schema: Some("PowerSettingStatus"),
    all: &[
        text(
            "SETTING",
            "setting",
            "`governor`, `energy_preference`, `performance_percent_min`, `performance_percent_max`, `turbo` or \
             `idle_states`.",
        ),
        text("CPUS", "cpus", "CPUs; `host` for a setting of the whole host."),
        text("REQUIRED", "required", "Value that the plan requires."),
        text("CURRENT", "now", "Current value; `–` if the setting does not exist."),
        text("IN EFFECT", "in_effect", "`yes` if the current value is the required one."),
        text("REASON", "reason", "Why the required value is not in effect, or a remark."),
    ],
};

pub(crate) const POWER_CPUS: Columns = Columns {
    commands: &["power show"],
    row: "group of CPUs with equal values",
    path: "cpus[]",
    schema: Some("PowerCpuStatus"),
    all: &[
        text("CPUS", "cpu", "Logical CPUs."),
        text("ONLINE", "online", "Whether the CPU is online."),
        text("DRIVER", "driver", "cpufreq driver; `–` if there is none."),
        text("GOVERNOR", "governor", "cpufreq governor."),
        text("PREFERENCE", "energy_preference", "Energy-performance preference."),
        number("MHZ", "khz_min, khz_max", "kHz", "Lowest and highest permitted frequency."),
        text("IDLE STATES", "idle_states", "Permitted idle states, shallowest first."),
    ],
};

pub(crate) const POWER_CHANGED: Columns = Columns {
    commands: &["power show"],
    row: "sysfs file that the daemon has changed",
    path: "changed[]",
    schema: Some("PowerChangedStatus"),
    all: &[
        text("CHANGED", "file", "File below sysfs."),
        text("BEFORE", "before", "Value before the change, which the daemon restores."),
        text("WRITTEN", "written", "Value that the daemon wrote."),
        text(
            "CURRENT",
            "now",
            "Current value; `–` if the file does not exist, as for an offline CPU.",
        ),
    ],
};
