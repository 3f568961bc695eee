//! Columns of VMs, nodes, operations and power.

use crate::columns::column::{Columns, number_column, text_column};

pub(crate) const VMS: Columns = Columns {
    commands: &["vm list"],
    row_object: "VM",
    json_path: "[]",
    schema: Some("VmStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the VM."),
        number_column(
            "CPUS",
            "cpus, config.cpus",
            "",
            "Virtual CPUs present; the configured number while the VM is stopped.",
        ),
        number_column("MEMORY", "config.memory_bytes", "bytes", "Configured memory."),
        text_column("NICS", "config.nics", "Configured NICs."),
        text_column("DISKS", "config.disks", "Configured disks."),
        text_column("ACCELERATOR", "accelerator", "`kvm` or `tcg`; `–` while the VM is stopped."),
        number_column("UPTIME", "uptime_s", "s", "Time since the VM was started."),
        text_column(
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
    row_object: "network interface that the guest agent reports",
    json_path: "interfaces[]",
    schema: Some("VmGuestInterface"),
    columns: &[
        text_column("INTERFACE", "name", "Name of the interface in the guest."),
        text_column("MAC", "mac", "MAC address."),
        text_column("ADDRESSES", "addresses", "IP addresses with prefix lengths."),
    ],
};

pub(crate) const NODES: Columns = Columns {
    commands: &["node list"],
    row_object: "other node",
    json_path: "[]",
    schema: Some("NodeStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the node in the configuration of this host."),
        text_column("ADDRESS", "config.address", "Address and port of the API of the node."),
        text_column("HOST", "host", "Host name that the node reports."),
        text_column("VERSION", "version", "Version of the daemon of the node."),
        text_column(
            "DRAINED",
            "drain.is_empty, drain.operation",
            "`empty`: drained, no VM left. `VMs migrate`: the drain is running. `has VMs`: drained, but VMs \
             remain. `–`: not drained.",
        ),
        text_column(
            "HEALTH",
            "condition.health, condition.reason",
            "`up` if the node responds, `down` if it does not, `failed` if it refuses the request or the request \
             cannot be made. The reason follows.",
        ),
    ],
};

pub(crate) const OPERATIONS: Columns = Columns {
    commands: &["operation list"],
    row_object: "operation",
    json_path: "[]",
    schema: Some("Operation"),
    columns: &[
        number_column("ID", "id", "", "Number of the operation."),
        text_column("KIND", "kind", "Kind of the operation."),
        text_column("SUBJECT", "subject", "Object that the operation changes."),
        text_column("STATE", "state", "`running`, `succeeded`, `failed` or `cancelled`."),
        number_column("STEPS", "steps_done, steps", "", "Completed steps, of all steps."),
        text_column(
            "STARTED",
            "started_unix_ms",
            "Start time (UTC). JSON has milliseconds since 1970-01-01 UTC.",
        ),
    ],
};

pub(crate) const POWER_SETTINGS: Columns = Columns {
    commands: &["power show"],
    row_object: "CPU setting that the power plan requires; CPUs with equal values share a row",
    json_path: "settings[]",
    schema: Some("PowerSettingStatus"),
    columns: &[
        text_column(
            "SETTING",
            "setting",
            "`governor`, `energy_preference`, `performance_percent_min`, `performance_percent_max`, `turbo` or \
             `idle_states`.",
        ),
        text_column("CPUS", "cpus", "CPUs; `host` for a setting of the whole host."),
        text_column("REQUIRED", "required", "Value that the plan requires."),
        text_column("CURRENT", "now", "Current value; `–` if the setting does not exist."),
        text_column("IN EFFECT", "in_effect", "`yes` if the current value is the required one."),
        text_column("REASON", "reason", "Why the required value is not in effect, or a remark."),
    ],
};

pub(crate) const POWER_CPUS: Columns = Columns {
    commands: &["power show"],
    row_object: "group of CPUs with equal values",
    json_path: "cpus[]",
    schema: Some("PowerCpuStatus"),
    columns: &[
        text_column("CPUS", "cpu", "Logical CPUs."),
        text_column("ONLINE", "online", "Whether the CPU is online."),
        text_column("DRIVER", "driver", "cpufreq driver; `–` if there is none."),
        text_column("GOVERNOR", "governor", "cpufreq governor."),
        text_column("PREFERENCE", "energy_preference", "Energy-performance preference."),
        number_column("MHZ", "khz_min, khz_max", "kHz", "Lowest and highest permitted frequency."),
        text_column("IDLE STATES", "idle_states", "Permitted idle states, shallowest first."),
    ],
};

pub(crate) const POWER_CHANGED_SETTINGS: Columns = Columns {
    commands: &["power show"],
    row_object: "sysfs file that the daemon has changed",
    json_path: "changed[]",
    schema: Some("PowerChangedStatus"),
    columns: &[
        text_column("CHANGED", "file", "File below sysfs."),
        text_column("BEFORE", "before", "Value before the change, which the daemon restores."),
        text_column("WRITTEN", "written", "Value that the daemon wrote."),
        text_column(
            "CURRENT",
            "now",
            "Current value; `–` if the file does not exist, as for an offline CPU.",
        ),
    ],
};
