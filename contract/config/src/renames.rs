//! Renamed names: configuration keys, fields of the API and of events, metrics, paths, commands and
//! options, each with its former name, which stays valid until a later version.
//!
//! This table is the only definition. Parsers of host files and of request bodies, responses, the
//! OpenAPI document, stored state, metrics, the command line and the reference page derive from it.

use core::fmt;

use crate::ResourceKind;

/// Renamed metrics that are counters: exported with the suffix `_total`.
const COUNTERS: [&str; 7] = [
    "suimon_worker_batches",
    "suimon_worker_frames",
    "suimon_worker_sleeps",
    "suimon_worker_yields",
    "suimon_worker_cpu_seconds",
    "suimon_worker_busy_seconds",
    "suimon_worker_stage_seconds",
];

/// Version that removes the old names.
const REMOVED_IN: &str = "0.3";

/// Object whose name was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenamedItem {
    /// Field of a component of the OpenAPI document. If the component describes a table of the host
    /// file, the field is also a key of the table and an option of commands.
    Field {
        /// Name of the component.
        schema: &'static str,
    },
    /// Field of a struct that only the JSON output of a command has (`suimon top --json`).
    CommandOutput {
        /// Name of the struct.
        schema: &'static str,
    },
    /// Entry in `fields` of events.
    EventField,
    /// Name of an event kind. The number of the kind is unchanged.
    Event,
    /// Metric, with its labels. Names of counters are without `_total`.
    Metric {
        /// Labels of the old metric, in the order of the labels of the new one.
        old_labels: &'static [&'static str],
    },
    /// Path of the REST API.
    ApiPath,
    /// First word of a command of `suimon`.
    Command,
    /// Option of a command of `suimon` that is not a configuration key.
    CommandOption,
    /// Environment variable of `suimon`.
    EnvironmentVariable,
}

/// Change of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename {
    /// Object whose name was changed.
    pub item: RenamedItem,
    /// Name before the rename.
    pub old: &'static str,
    /// Name after the rename.
    pub new: &'static str,
    /// Version that removes the former name.
    pub removed_in: &'static str,
}

const fn rename(renamed: RenamedItem, old: &'static str, new: &'static str) -> Rename {
    Rename { item: renamed, old, new, removed_in: REMOVED_IN }
}

const fn field(schema: &'static str, old: &'static str, new: &'static str) -> Rename {
    rename(RenamedItem::Field { schema }, old, new)
}

const fn output(schema: &'static str, old: &'static str, new: &'static str) -> Rename {
    rename(RenamedItem::CommandOutput { schema }, old, new)
}

const fn metric(
    old_labels: &'static [&'static str],
    old: &'static str,
    new: &'static str,
) -> Rename {
    rename(RenamedItem::Metric { old_labels }, old, new)
}

const PROCESSOR: &[&str] = &["processor"];
const STORE: &[&str] = &["store"];
const DISK: &[&str] = &["disk"];

/// Renamed names, configuration keys first.
pub const RENAMES: &[Rename] = &[
    field("HostSection", "processors", "worker_cpus"),
    field("HostSection", "floating_processors", "floating_workers"),
    field("VmqConfig", "base_processor", "base_worker"),
    field("VmqConfig", "max_processors", "max_workers"),
    field("VmqConfig", "max_processor_number", "max_worker_number"),
    field("StoreConfig", "capability_iops", "capacity_iops"),
    field("NodeConfig", "authority", "ca_certificate"),
    field("ClusterTls", "authority", "ca_certificate"),
    field("StoreStatus", "capability_iops", "capacity_iops"),
    field("StoreStatus", "capability_source", "capacity_source"),
    field("StoreStatus", "promised_iops", "reserved_iops"),
    field("StoreStatus", "promised_percent", "reserved_percent"),
    field("StorePromises", "capability_iops", "capacity_iops"),
    field("StorePromises", "promisable_iops", "reservable_iops"),
    field("StoreProposal", "capability_iops", "capacity_iops"),
    field("QosPolicyStatus", "promised_iops", "reserved_iops"),
    field("QosDelivery", "entitled_iops", "guaranteed_iops"),
    field("QosDelivery", "demanded_iops", "demand_iops"),
    field("QosDelivery", "waits_ns", "queued_ns"),
    field("QosDelivery", "device_own_latency_ns", "device_baseline_latency_ns"),
    field("QosFlowStatus", "waiting", "queued"),
    field("ClusterDisk", "entitled_iops", "guaranteed_iops"),
    field("ClusterDisk", "demanded_iops", "demand_iops"),
    field("ClusterAggressor", "entitled_iops", "guaranteed_iops"),
    field("ClusterStore", "capability_iops", "capacity_iops"),
    field("ClusterStore", "has_foreign_load", "has_external_load"),
    field("ClusterStore", "seen", "heartbeats"),
    field("ClusterStore", "wrong", "reason"),
    field("ClusterBeat", "is_stranger", "is_other_cluster"),
    field("QueueStatus", "processor", "worker"),
    field("DiskStatus", "processor", "worker"),
    field("MoveQueueRequest", "processor", "worker"),
    field("VmqStatus", "processors", "workers"),
    field("VmqProcessorStatus", "processor", "worker"),
    field("VmqQueueStatus", "processor", "worker"),
    field("VmqQueueStatus", "why", "reason"),
    field("VmqQueueStatus", "stays", "stay_reason"),
    field("TopSnapshot", "processors", "workers"),
    field("ProcessorStatus", "rests", "yields"),
    field("ProcessorStatus", "resting", "yielding"),
    field("PowerSettingStatus", "wanted", "required"),
    field("PowerSettingStatus", "why_not", "reason"),
    field("PowerEnergyStatus", "lacking", "unavailable_reason"),
    field("TopPower", "lacking", "unavailable_reason"),
    field("ConfinementStatus", "lacking", "missing"),
    field("DiskNbdClient", "way", "transport"),
    field("DrainedVm", "is_in_the_way", "blocks_drain"),
    field("VmMigration", "leaves", "is_outgoing"),
    output("Rates", "processors", "workers"),
    output("ProcessorRates", "rests_per_s", "yields_per_s"),
    output("ProcessorRates", "resting", "yielding"),
    output("DiskRates", "entitled_iops", "guaranteed_iops"),
    output("DiskRates", "demanded_iops", "demand_iops"),
    output("PowerRates", "lacking", "unavailable_reason"),
    rename(RenamedItem::EventField, "capability_iops", "capacity_iops"),
    rename(RenamedItem::EventField, "promised_iops", "reserved_iops"),
    rename(RenamedItem::EventField, "entitled_iops", "guaranteed_iops"),
    rename(RenamedItem::EventField, "demanded_iops", "demand_iops"),
    rename(RenamedItem::EventField, "foreign_iops", "external_iops"),
    rename(RenamedItem::EventField, "asked_iops", "requested_iops"),
    rename(RenamedItem::EventField, "others_iops", "other_load_iops"),
    rename(RenamedItem::EventField, "came", "newly_online"),
    rename(RenamedItem::EventField, "went", "migrated"),
    rename(RenamedItem::EventField, "late", "late_reason"),
    rename(RenamedItem::EventField, "seen_on_it", "other_hosts"),
    rename(RenamedItem::EventField, "silent_nodes", "nodes_without_reports"),
    rename(RenamedItem::EventField, "asked_for", "on_request"),
    rename(RenamedItem::EventField, "failed_before", "unreported_failures"),
    rename(RenamedItem::EventField, "because", "move_reason"),
    rename(RenamedItem::Event, "processor_started", "worker_started"),
    rename(RenamedItem::Event, "processor_stopped", "worker_stopped"),
    rename(RenamedItem::Event, "promise_forced", "overcommit_forced"),
    rename(RenamedItem::Event, "capability_low", "capacity_low"),
    rename(RenamedItem::Event, "capability_enough", "capacity_sufficient"),
    rename(RenamedItem::Event, "shared_foreign_load", "shared_external_load"),
    rename(RenamedItem::Event, "shared_foreign_load_gone", "shared_external_load_ended"),
    rename(RenamedItem::Event, "shared_promise_refused", "shared_reservation_refused"),
    rename(RenamedItem::Event, "node_emptied", "node_drain_completed"),
    rename(RenamedItem::Event, "node_not_emptied", "node_drain_incomplete"),
    rename(RenamedItem::Event, "disk_file_made", "disk_file_created"),
    rename(RenamedItem::Event, "disk_answered", "disk_resumed"),
    rename(RenamedItem::Event, "disk_work_resumed", "disk_job_resumed"),
    rename(RenamedItem::Event, "disk_work_given_up", "disk_job_abandoned"),
    rename(RenamedItem::Event, "shared_store_wrong", "shared_store_mismatch"),
    rename(RenamedItem::Event, "shared_store_right", "shared_store_matches"),
    rename(RenamedItem::Event, "vm_found", "vm_adopted"),
    rename(RenamedItem::Event, "vm_lost", "vm_not_responding"),
    rename(RenamedItem::Event, "vm_leaves", "vm_migration_started"),
    rename(RenamedItem::Event, "vm_left", "vm_migrated"),
    rename(RenamedItem::Event, "vm_stays", "vm_migration_failed"),
    rename(RenamedItem::Event, "vm_arrives", "vm_incoming_migration_started"),
    rename(RenamedItem::Event, "vm_arrived", "vm_incoming_migration_completed"),
    rename(RenamedItem::Event, "vm_did_not_arrive", "vm_incoming_migration_failed"),
    rename(RenamedItem::Event, "nic_on_synthetic", "nic_on_switch"),
    metric(PROCESSOR, "suimon_processor_batches", "suimon_worker_batches"),
    metric(PROCESSOR, "suimon_processor_frames", "suimon_worker_frames"),
    metric(PROCESSOR, "suimon_processor_sleeps", "suimon_worker_sleeps"),
    metric(PROCESSOR, "suimon_processor_rests", "suimon_worker_yields"),
    metric(PROCESSOR, "suimon_processor_cpu_seconds", "suimon_worker_cpu_seconds"),
    metric(PROCESSOR, "suimon_processor_busy_seconds", "suimon_worker_busy_seconds"),
    metric(PROCESSOR, "suimon_processor_queues", "suimon_worker_queues"),
    metric(
        &["processor", "stage"],
        "suimon_processor_stage_seconds",
        "suimon_worker_stage_seconds",
    ),
    metric(&["uplink", "nic", "queue"], "suimon_vmq_queue_processor", "suimon_vmq_queue_worker"),
    metric(&["uplink", "processor"], "suimon_vmq_processor_queues", "suimon_vmq_worker_queues"),
    metric(STORE, "suimon_store_capability_iops", "suimon_store_capacity_iops"),
    metric(STORE, "suimon_store_promised_iops", "suimon_store_reserved_iops"),
    metric(DISK, "suimon_disk_entitled_iops", "suimon_disk_guaranteed_iops"),
    metric(DISK, "suimon_disk_demanded_iops", "suimon_disk_demand_iops"),
    rename(RenamedItem::ApiPath, "/1.0/processors", "/1.0/workers"),
    rename(RenamedItem::Command, "processor", "worker"),
    rename(RenamedItem::CommandOption, "--authority", "--ca-certificate"),
    rename(RenamedItem::EnvironmentVariable, "SUIMON_AUTHORITY", "SUIMON_CA_CERTIFICATE"),
];

impl Rename {
    /// Returns the warning that is shown when the old name is used.
    pub fn warning(&self) -> String {
        format!(
            "`{}` is the old name of `{}` and is accepted until version {}; use `{}`",
            self.old, self.new, self.removed_in, self.new
        )
    }

    /// Returns the object that contains the name, as Markdown for the reference page; "–" if the
    /// kind of name has no such object.
    fn place(&self) -> String {
        match self.item {
            RenamedItem::Field { schema } => {
                let kind = ResourceKind::ALL.into_iter().find(|kind| kind.schema_name() == schema);
                kind.map_or_else(|| format!("`{schema}`"), |kind| format!("`{}`", kind.noun()))
            }
            RenamedItem::CommandOutput { schema } => format!("`{schema}`"),
            RenamedItem::Metric { old_labels } if !old_labels.is_empty() => {
                format!("old labels: `{}`", old_labels.join("`, `"))
            }
            _ => "–".to_owned(),
        }
    }
}

/// Returns the renamed fields of a component of the OpenAPI document, or of a struct in the output
/// of a command, by its name.
pub fn renames_of_schema(schema: &str) -> impl Iterator<Item = &'static Rename> {
    RENAMES.iter().filter(move |rename| match rename.item {
        RenamedItem::Field { schema: name } | RenamedItem::CommandOutput { schema: name } => {
            name == schema
        }
        _ => false,
    })
}

/// Returns the rename of a key of the host file by the key's old name; `None` if `old` is not one.
pub fn rename_of_old_key(kind: ResourceKind, old: &str) -> Option<&'static Rename> {
    renames_of_schema(kind.schema_name()).find(|rename| rename.old == old)
}

/// Returns the rename of a key of the host file by the key's new name; `None` if it was not
/// renamed.
pub fn rename_of_new_key(kind: ResourceKind, new: &str) -> Option<&'static Rename> {
    renames_of_schema(kind.schema_name()).find(|rename| rename.new == new)
}

/// Returns the tables of renamed names as Markdown, by kind, for the reference page.
pub fn renames_page() -> String {
    type Section = (&'static str, fn(RenamedItem) -> bool);
    let sections: [Section; 9] = [
        ("Configuration keys, and the options and fields with their names", |renamed| {
            is_key(renamed)
        }),
        ("Fields of the API", |renamed| {
            matches!(renamed, RenamedItem::Field { .. }) && !is_key(renamed)
        }),
        ("Fields of `suimon top --json`", |renamed| {
            matches!(renamed, RenamedItem::CommandOutput { .. })
        }),
        ("Fields of events", |renamed| renamed == RenamedItem::EventField),
        ("Names of events", |renamed| renamed == RenamedItem::Event),
        ("Metrics", |renamed| matches!(renamed, RenamedItem::Metric { .. })),
        ("Paths of the API", |renamed| renamed == RenamedItem::ApiPath),
        ("Commands and options", |renamed| {
            matches!(renamed, RenamedItem::Command | RenamedItem::CommandOption)
        }),
        ("Environment variables", |renamed| renamed == RenamedItem::EnvironmentVariable),
    ];
    let mut text = String::new();
    for (title, is_in) in sections {
        text.push_str(&format!("## {title}\n\n"));
        text.push_str("| old name | new name | of | old name removed in |\n|---|---|---|---|\n");
        for rename in RENAMES.iter().filter(|rename| is_in(rename.item)) {
            let suffix = if COUNTERS.contains(&rename.new) { "_total" } else { "" };
            text.push_str(&format!(
                "| `{}{suffix}` | `{}{suffix}` | {} | {} |\n",
                rename.old,
                rename.new,
                rename.place(),
                rename.removed_in
            ));
        }
        text.push('\n');
    }
    text
}

/// Returns true for the key of a table of the host file.
fn is_key(renamed: RenamedItem) -> bool {
    let RenamedItem::Field { schema } = renamed else { return false };
    ResourceKind::ALL.iter().any(|kind| kind.schema_name() == schema)
}

/// Use of an old name in a host file or request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldNameUse {
    /// Resource or table that contains the key, such as `store/fast`; `None` if unknown.
    pub resource: Option<String>,
    /// Key with the old name, such as `vmq.max_workers`.
    pub field: String,
    /// Rename of the key.
    pub rename: &'static Rename,
    /// File that contains the key.
    pub file: Option<String>,
    /// Line in the file, counted from 1.
    pub line: Option<usize>,
}

impl fmt::Display for OldNameUse {
    /// Writes `host.toml:12: store/fast: capacity_iops: message`, omitting unknown parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if let Some(resource) = &self.resource {
            write!(f, "{resource}: ")?;
        }
        write!(f, "{}: {}", self.field, self.rename.warning())
    }
}
