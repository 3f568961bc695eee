//! Contract between the daemon and its clients: the API's types, the host file, its validation, and
//! the plan that results from a change.
//!
//! Desired state ([`HostConfig`] and its parts) and observed state (`…Status`) are separate types.
//! Daemon and clients written in Rust share these types; for other languages the daemon serves the
//! OpenAPI document derived from them.
//!
//! This crate performs no I/O and does not examine the host. The daemon checks whether devices
//! exist.
//!
//! # The REST API
//!
//! HTTP/1.1 on a Unix socket, by default [`SOCKET_DEFAULT`]. Every unsuccessful response has an
//! [`ErrorBody`] and the status of its first error ([`ErrorCode::http_status`]). A mutation returns
//! 202 with the [`Operation`] that carries it out and the operation's address in `Location`; with
//! `?dry_run=true` it returns 200 with the [`Plan`] and changes nothing. A change that would
//! overcommit a store's capacity is rejected with [`ErrorCode::Overcommitted`] unless `?force=true`
//! is given.
//!
//! | endpoint | result or action |
//! |---|---|
//! | `GET /1.0` | [`HostStatus`] |
//! | `GET /1.0/openapi.json` | OpenAPI document |
//! | `GET /1.0/config` | [`HostConfig`]; with `?format=toml` the host file |
//! | `POST /1.0/apply` | [`ApplyRequest`]: changes the host to the described state |
//! | `GET`, `POST /1.0/switches` | list of [`SwitchStatus`]; adds a [`SwitchConfig`] |
//! | `GET /1.0/switches/{name}` | [`SwitchStatus`] |
//! | `PUT`, `PATCH`, `DELETE /1.0/switches/{name}` | replace; JSON merge patch (RFC 7386); delete |
//! | `GET /1.0/switches/{name}/addresses` | list of [`AddressStatus`] |
//! | `/1.0/uplinks`, `/1.0/teams`, `/1.0/nics` | the same verbs with [`UplinkConfig`], [`TeamConfig`] and [`NicConfig`] |
//! | `/1.0/stores`, `/1.0/qos-policies`, `/1.0/disks` | the same verbs with [`StoreConfig`], [`QosPolicyConfig`] and [`DiskConfig`]; `DELETE` of a disk with `?with_file=true` deletes its file too |
//! | `POST /1.0/disks/{name}/check`, `…/compact`, `…/merge` | checks the disk's file; releases unused space; merges the file into its parent |
//! | `POST /1.0/disks/{name}/convert`, `…/snapshot` | [`ConvertDiskRequest`], [`SnapshotDiskRequest`] |
//! | `POST /1.0/stores/{name}/measure` | [`MeasureStoreRequest`]: measures the capacity |
//! | `POST /1.0/stores/{name}/image-info`, `…/image-check`, `…/image-repair`, `…/image-relink` | [`ImageRequest`]: returns [`ImageInfo`], [`ImageCheck`] or [`ImageChanges`] |
//! | `/1.0/vms` | the same verbs with [`VmConfig`] |
//! | `POST /1.0/vms/{name}/start`, `…/kill`, `…/pause`, `…/resume`, `…/reset` | action on the VM |
//! | `POST /1.0/vms/{name}/stop` | [`StopVmRequest`]: requests the guest to shut down |
//! | `POST /1.0/vms/{name}/freeze`, `…/thaw` | [`FreezeVmRequest`]: the guest agent freezes and thaws file systems |
//! | `GET /1.0/vms/{name}/guest` | [`VmGuest`]: report of the guest agent |
//! | `GET /1.0/vms/{name}/console` | serial console: with `Upgrade: suimon-console` the raw bytes of both directions |
//! | `GET /1.0/vms/{name}/libvirt` | elements of a libvirt domain with the VM's NICs and disks |
//! | `/1.0/pfs` | the same verbs with [`PfConfig`] |
//! | `POST /1.0/vms/{name}/migrate` | [`MigrateVmRequest`]: live migration to another node; a dry run returns the [`Plan`] of that node |
//! | `POST /1.0/arrivals` | [`IncomingMigrationRequest`]: prepares the resources of a VM that
//! migrates to this node |
//! | `GET`, `DELETE /1.0/arrivals/{id}`, `POST …/activate` | [`IncomingMigration`]: its state;
//! abandons it; makes this node the VM's owner |
//! | `GET /1.0/arrivals/{id}/memory`, `…/disks/{disk}` | with `Upgrade: suimon-memory` QEMU's migration stream; with `Upgrade: suimon-nbd` NBD to the disk |
//! | `/1.0/nodes` | the same verbs with [`NodeConfig`]: other nodes, as destinations of VMs |
//! | `POST /1.0/nodes/{name}/drain`, `…/undrain` | [`DrainRequest`]: migrates the VMs of the node, which may be this one, and admits no new ones; a dry run returns the [`DrainPlan`]. Ends the drain |
//! | `GET /1.0/sriov`, `…/{adapter}` | all [`SriovAdapter`]s; one by its PCI address, device or [`PfConfig`] |
//! | `GET /1.0/qos/flows` | list of [`QosFlowStatus`] |
//! | `POST /1.0/qos/what-if` | [`WhatIfRequest`]: computes the reservations of proposals as a
//! [`WhatIfResponse`], without changes |
//! | `GET /1.0/vmq`, `…/{uplink}` | list of [`VmqStatus`] of the teams and uplinks that switches use; one of them |
//! | `GET`, `PUT`, `PATCH`, `DELETE /1.0/power` | [`PowerStatus`]; sets, changes or removes the [`PowerConfig`] |
//! | `GET`, `POST`, `PUT`, `PATCH`, `DELETE /1.0/cluster` | [`ClusterStatus`]; creates a cluster, joins one, changes the [`ClusterConfig`], leaves the cluster |
//! | `DELETE /1.0/cluster/members/{name}` | removes a permanently failed node |
//! | `GET /1.0/cluster/flows` | list of [`ClusterDisk`]: disks on shared stores in the reports of all nodes |
//! | `GET /1.0/nics/{name}/capture`, `…/uplinks/…` | stream of pcapng; `?snaplen=&max_frames=&max_bytes=`; `Suimon-Operation` contains the operation's id |
//! | `GET /1.0/queues` | list of [`QueueStatus`] |
//! | `POST /1.0/queues/{port}/{rx or tx}/{index}/move` | [`MoveQueueRequest`] |
//! | `GET /1.0/workers` | list of [`WorkerStatus`] |
//! | `GET /1.0/events` | list of [`Event`]; `?after=&limit=&severity=&subject=&id=` |
//! | `GET /1.0/events/follow` | stream with one [`Event`] per line; `?after=&severity=&subject=&id=` |
//! | `GET /1.0/operations`, `…/{id}` | [`Operation`]s |
//! | `GET /1.0/operations/{id}/wait` | the operation, after it ended; `?timeout_s=` |
//! | `GET /1.0/operations/{id}/follow` | stream with one [`Operation`] per line at every change |
//! | `DELETE /1.0/operations/{id}` | cancels the operation |
//! | `GET /1.0/top` | [`TopSnapshot`] |
//! | `POST /1.0/console/logins` | [`ConsoleLogin`] |
//! | `GET /1.0/lab` | [`LabStatus`]: plans, worker and requests |
//! | `GET`, `POST /1.0/lab/runs` | list of [`LabRun`]; requests a run with a [`LabRunRequest`] and returns the [`LabRequest`] |
//! | `GET /1.0/lab/runs/{id}`, `…/report` | [`LabRunDetails`]; the report as HTML |
//! | `DELETE /1.0/lab/requests/{id}` | withdraws a [`LabRequest`], or cancels its run |
//! | `GET /1.0/lab/compare` | [`LabComparison`] of two runs; `?a=&b=` |
//! | `GET /metrics` | Prometheus text format |
//!
//! # Invariants
//! - A configuration accepted by a parser of this crate refers to existing resources only, uses no
//!   name, device, socket or address twice, and has every value within its range.
//! - Keys are only added or renamed ([`RENAMES`]); error codes, event numbers and drop reasons keep their
//!   meaning.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

/// Default path of the daemon's Unix socket.
pub const SOCKET_DEFAULT: &str = "/run/suimon/suimon.sock";
/// Environment variable with a different path of the socket.
pub const SOCKET_VARIABLE: &str = "SUIMON_SOCKET";

/// Default folder of lab runs.
pub const LAB_RESULTS_DEFAULT: &str = "/var/lib/suimon/lab";

mod byte_size;
mod change_fits;
mod claims;
mod cluster_config;
mod cluster_fits;
mod cluster_keys;
mod cluster_status;
mod commands;
mod condition;
mod config;
mod confinement;
mod console_login;
mod diff;
mod disk_config;
mod disk_fits;
mod disk_format;
mod disk_status;
mod document;
mod drain;
mod error;
mod event;
mod event_kinds;
mod examples;
mod finding;
mod form;
mod form_schema;
mod host_section;
mod image_report;
mod iov_fits;
mod iov_status;
mod json_body;
mod json_tree;
mod kernel_path_status;
mod key;
mod key_docs;
mod key_schema;
mod keys;
mod kind;
mod lab_run;
mod lab_status;
mod lacp_status;
mod libvirt;
mod migration;
mod name;
mod nbd_config;
mod nbd_fits;
mod nbd_status;
mod node_config;
mod node_fits;
mod node_status;
mod offload_status;
mod operation;
mod pf_config;
mod pf_fits;
mod pf_keys;
mod plan;
mod power_config;
mod power_fits;
mod power_keys;
mod power_status;
mod qos_config;
mod qos_fits;
mod qos_status;
mod quote;
mod references;
mod renamed_input;
mod renamed_output;
mod renamed_schema;
mod renames;
mod request;
mod shape;
mod socket_mode;
mod sriov_status;
mod status;
mod steering_status;
mod storage_keys;
mod store_capacity;
mod store_file;
mod strict;
mod team_config;
mod team_fits;
mod team_status;
#[cfg(test)]
mod test_configs;
#[cfg(test)]
mod test_disks;
mod toml_file;
mod toml_lines;
mod toml_writer;
mod top_disk;
mod trunk;
mod uplink_fits;
mod validate;
mod vm_config;
mod vm_devices;
mod vm_fits;
mod vm_guest;
mod vm_keys;
mod vm_request;
mod vm_status;
mod vmq_config;
mod vmq_fits;
mod vmq_status;
mod what_if;
mod worker_stages;
mod xdp_status;

pub use byte_size::{ByteSize, ByteSizeError, ByteSizeText};
pub use change_fits::validate_change;
pub use cluster_config::{ClusterConfig, ClusterTls};
pub use cluster_status::{
    ClusterAggressor, ClusterCap, ClusterDisk, ClusterHeartbeat, ClusterMember, ClusterShare,
    ClusterStatus, ClusterStore,
};
pub use commands::command_of;
pub use condition::{Condition, Health};
pub use config::{
    ApiConfig, ConsoleConfig, HostConfig, LabConfig, NicBackend, NicConfig, OffloadConfig,
    SwitchConfig, SwitchKind, UplinkConfig, UplinkDriver,
};
pub use confinement::{ConfinementLayer, ConfinementMode, ConfinementStatus};
pub use console_login::ConsoleLogin;
pub use disk_config::{DiskConfig, DiskController, DiskOnFull, DiskVhostUser, StoreConfig};
pub use disk_fits::STORE_DISKS_MAX;
pub use disk_format::{DiskFormat, DiskKind};
pub use disk_status::{
    DiskCounters, DiskFullStatus, DiskNbdClient, DiskNbdStatus, DiskNbdTransport,
    DiskRequestCounters, DiskStatus, DiskVhostUserStatus, StorageState, StoreStatus,
};
pub use drain::{DrainPlan, DrainRequest, DrainStatus, DrainedVm};
pub use error::{ApiError, ErrorBody, ErrorCode};
pub use event::{Event, EventFilter, Severity};
pub use event_kinds::EventKind;
pub use examples::example_of;
pub use form::Form;
pub use host_section::HostSection;
pub use image_report::{
    ImageChange, ImageChanges, ImageCheck, ImageFinding, ImageInfo, ImageParent, ImageRequest,
    ImageSeverity, ImageVerdict,
};
pub use iov_status::{IovPath, IovStatus};
pub use json_body::{
    JSON_BYTES_MAX, Resource, applies_a_file, check_patch, file_of_apply, locate_errors_of_apply,
    old_names_of, old_names_of_apply, parse_apply, parse_cluster, parse_power, parse_request,
    parse_request_noting, parse_resource, patch_cluster, patch_power, patch_resource,
};
pub use kernel_path_status::KernelPathStatus;
pub use key::{Effect, Key};
pub use key_docs::{default_text, docs_of};
pub use key_schema::{Components, describe_keys, patch_name};
pub use kind::Kind;
pub use lab_run::{
    LabAgreement, LabCompared, LabComparison, LabEstimate, LabFigure, LabFinding, LabRunDetails,
    LabSimulatedFigure,
};
pub use lab_status::{
    LabPlan, LabPlanScale, LabProgress, LabRequest, LabRequestState, LabRun, LabRunRequest,
    LabRunState, LabScale, LabStatus, LabWords, LabWorker,
};
pub use lacp_status::{LacpCounters, LacpMemberStatus, LacpPortStatus};
pub use libvirt::libvirt_elements;
pub use migration::{
    DOWNTIME_MS_DEFAULT, DOWNTIME_MS_MAX, DiskHandedOver, IncomingMigration,
    IncomingMigrationRequest, IncomingMigrationState, IncomingPort, MIGRATION_PROTOCOL,
    MigrateVmRequest, MigrationPhase, StoreToken, VmMigration,
};
pub use name::{Name, NameError};
pub use nbd_config::DiskNbd;
pub use nbd_status::{NbdPeerStatus, NbdStatus};
pub use node_config::NodeConfig;
pub use node_status::NodeStatus;
pub use offload_status::{
    DeviceFeatureStatus, DeviceFeaturesStatus, OffloadPerformer, OffloadStatus,
};
pub use operation::{Operation, OperationState};
pub use pf_config::{PfConfig, VfConfig, VfLinkState};
pub use plan::{FieldChange, Plan, PlanAction, PlanStep};
pub use power_config::{EnergyPreference, PowerConfig, PowerPlanName};
pub use power_status::{
    PowerChangedStatus, PowerCpuStatus, PowerDataPlaneStatus, PowerEffect, PowerEnergyStatus,
    PowerSettingStatus, PowerStatus, PowerZoneStatus, TopPower,
};
pub use qos_config::{DiskQos, QosPolicyConfig, QosPolicyKind};
pub use qos_status::{
    QosDelivery, QosFlowStatus, QosLimitingFactor, QosPolicyPart, QosPolicyStatus, QosTimeShare,
    StoreReservations, WhatIfResponse,
};
pub use renamed_output::{from_json, to_json, to_json_pretty, to_stored};
pub use renamed_schema::describe_renames;
pub use renames::{
    OldName, RENAMES, Rename, Renamed, old_key, renamed_fields, renamed_key, renames_page,
};
pub use request::{
    ApplyRequest, ConvertDiskRequest, MEASURE_SECONDS_DEFAULT, MEASURE_SECONDS_MAX,
    MeasureStoreRequest, MoveQueueRequest, SnapshotDiskRequest,
};
pub use socket_mode::SocketMode;
pub use sriov_status::{PfStatus, SriovAdapter, SriovSupport, VfStatus};
pub use status::{
    AddressStatus, DropCounter, HostStatus, NicStatus, PortCounters, QueueStatus, StateStoreStatus,
    SwitchStatus, TopPort, TopSnapshot, TopTeam, UplinkStatus, WorkerStatus,
};
pub use steering_status::{SteeredNic, SteeringMode, SteeringStatus};
pub use store_capacity::{
    CapacitySource, MeasureWord, StoreCapacity, StoreEstimate, StoreMeasurement, StorePattern,
    StorePatternFigure,
};
pub use store_file::{StoreFile, StoreFileError};
/// Count with its noun in singular or plural, for consistent texts of the daemon and its clients.
pub use suimon_quantity::CountedNoun;
pub use team_config::{
    LacpSettings, LacpTimer, TEAM_MEMBERS_MAX, TeamAlgorithm, TeamConfig, TeamMode,
};
pub use team_status::{LacpPartnerStatus, TeamMemberState, TeamMemberStatus, TeamStatus};
pub use toml_file::{TOML_BYTES_MAX, locate_errors, old_names_of_file, parse_toml};
pub use toml_writer::{default_of, to_toml};
pub use top_disk::TopDisk;
pub use trunk::{TrunkVlans, VlanRange, VlanRangeText};
pub use validate::validate;
pub use vm_config::{VM_DEVICES_MAX, VM_FOLDER_DEFAULT, VmAccelerator, VmConfig, VmFirmware};
pub use vm_guest::{VmGuest, VmGuestInterface};
pub use vm_request::{
    FREEZE_SECONDS_DEFAULT, FREEZE_SECONDS_MAX, FreezeVmRequest, STOP_SECONDS_DEFAULT,
    STOP_SECONDS_MAX, StopBy, StopVmRequest,
};
pub use vm_status::{VmState, VmStatus};
pub use vmq_config::{VmqConfig, VmqMode};
pub use vmq_status::{VmqQueueStatus, VmqStatus, VmqWorkerStatus};
pub use what_if::{DiskProposal, QosPolicyProposal, QosProposal, StoreProposal, WhatIfRequest};
pub use worker_stages::WorkerStages;
pub use xdp_status::{XdpHook, XdpStatus};
