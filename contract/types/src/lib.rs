//! The contract between the daemon and everybody else: the API's types, the host
//! file, its validation, and the plan a change amounts to.
//!
//! Desired state ([`HostConfig`] and its parts) and observed state (`…Status`)
//! are separate types. Both sides of the API use these very types, so there is
//! nothing to generate between them; for other languages the daemon serves the
//! OpenAPI document made from them.
//!
//! What it does not do: no I/O, no look at the host. Whether a device exists is
//! asked by the daemon.
//!
//! # The REST API
//!
//! HTTP/1.1 on a Unix socket, [`SOCKET_DEFAULT`] unless told otherwise. Every
//! answer that is not a success has an [`ErrorBody`] and the status of its first
//! error ([`ErrorCode::http_status`]). A mutation answers 202 with the
//! [`Operation`] it became and its address in `Location`; with `?dry_run=true` it
//! answers 200 with the [`Plan`] and changes nothing. A change by which a store would
//! promise more than it can keep is refused with [`ErrorCode::Overcommitted`]; with
//! `?force=true` it is not.
//!
//! | endpoint | gives or does |
//! |---|---|
//! | `GET /1.0` | [`HostStatus`] |
//! | `GET /1.0/openapi.json` | the OpenAPI document |
//! | `GET /1.0/config` | [`HostConfig`]; with `?format=toml` the host file |
//! | `POST /1.0/apply` | [`ApplyRequest`]: make the host be as described |
//! | `GET`, `POST /1.0/switches` | [`SwitchStatus`] of all; add a [`SwitchConfig`] |
//! | `GET /1.0/switches/{name}` | [`SwitchStatus`] |
//! | `PUT`, `PATCH`, `DELETE /1.0/switches/{name}` | replace; JSON merge patch (RFC 7386); delete |
//! | `GET /1.0/switches/{name}/addresses` | list of [`AddressStatus`] |
//! | `/1.0/uplinks`, `/1.0/teams`, `/1.0/nics` | the same verbs with [`UplinkConfig`], [`TeamConfig`] and [`NicConfig`] |
//! | `/1.0/stores`, `/1.0/qos-policies`, `/1.0/disks` | the same verbs with [`StoreConfig`], [`QosPolicyConfig`] and [`DiskConfig`]; `DELETE` of a disk with `?with_file=true` deletes its file too |
//! | `POST /1.0/disks/{name}/check`, `…/compact`, `…/merge` | look whether its file is sound; give back what it does not need; write it into its parent |
//! | `POST /1.0/disks/{name}/convert`, `…/snapshot` | [`ConvertDiskRequest`], [`SnapshotDiskRequest`] |
//! | `POST /1.0/stores/{name}/measure` | [`MeasureStoreRequest`]: find out what it can do |
//! | `/1.0/vms` | the same verbs with [`VmConfig`] |
//! | `POST /1.0/vms/{name}/start`, `…/kill`, `…/pause`, `…/resume`, `…/reset` | do so |
//! | `POST /1.0/vms/{name}/stop` | [`StopVmRequest`]: ask its guest to turn itself off |
//! | `POST /1.0/vms/{name}/freeze`, `…/thaw` | [`FreezeVmRequest`]: its guest's agent holds writes to file systems, and lets them go on |
//! | `GET /1.0/vms/{name}/guest` | [`VmGuest`]: what its guest's agent tells |
//! | `GET /1.0/vms/{name}/console` | its serial console: with `Upgrade: suimon-console` the bytes of both directions, as they are |
//! | `GET /1.0/vms/{name}/libvirt` | the elements of a libvirt domain that give a VM these NICs and disks |
//! | `/1.0/pfs` | the same verbs with [`PfConfig`] |
//! | `POST /1.0/vms/{name}/migrate` | [`MigrateVmRequest`]: it goes to another node while it runs; a dry run gives the [`Plan`] of that node |
//! | `POST /1.0/arrivals` | [`ArrivalRequest`]: make what a VM needs that comes from another node |
//! | `GET`, `DELETE /1.0/arrivals/{id}`, `POST …/activate` | [`Arrival`]: what becomes of it; it does not come; it is this node's |
//! | `GET /1.0/arrivals/{id}/memory`, `…/disks/{disk}` | with `Upgrade: suimon-memory` what QEMU sends of it; with `Upgrade: suimon-nbd` NBD, to the disk |
//! | `/1.0/nodes` | the same verbs with [`NodeConfig`]: other nodes, to which VMs can go |
//! | `POST /1.0/nodes/{name}/drain`, `…/undrain` | [`DrainRequest`]: no VM comes to the node, which may be this one, and its VMs go to others; a dry run gives the [`DrainPlan`]. Take that back |
//! | `GET /1.0/sriov`, `…/{adapter}` | [`SriovAdapter`]s: all that have SR-IOV; one by its PCI address, device or [`PfConfig`] |
//! | `GET /1.0/qos/flows` | list of [`QosFlowStatus`] |
//! | `POST /1.0/qos/what-if` | [`WhatIfRequest`]: what proposals would promise, as a [`WhatIfAnswer`]; nothing changes |
//! | `GET /1.0/vmq` | list of [`VmqStatus`] of the teams and uplinks that switches use |
//! | `GET`, `PUT`, `PATCH`, `DELETE /1.0/power` | [`PowerStatus`]; want a [`PowerConfig`], change it, want none |
//! | `GET`, `PUT`, `PATCH`, `DELETE /1.0/cluster` | [`ClusterStatus`]; be a node of a cluster as [`ClusterConfig`] says, change it, leave it |
//! | `GET /1.0/cluster/flows` | list of [`ClusterDisk`]: disks on shared stores of all nodes, as their reports name them |
//! | `GET /1.0/nics/{name}/capture`, `…/uplinks/…` | pcapng as it comes; `?snaplen=&max_frames=&max_bytes=`; the id of the operation that it is in `Suimon-Operation` |
//! | `GET /1.0/queues` | list of [`QueueStatus`] |
//! | `POST /1.0/queues/{port}/{rx or tx}/{index}/move` | [`MoveQueueRequest`] |
//! | `GET /1.0/processors` | list of [`ProcessorStatus`] |
//! | `GET /1.0/events` | list of [`Event`]; `?after=&limit=&severity=` |
//! | `GET /1.0/events/follow` | one [`Event`] per line as they happen; `?after=&severity=` |
//! | `GET /1.0/operations`, `…/{id}` | [`Operation`]s |
//! | `GET /1.0/operations/{id}/wait` | the operation when it has ended; `?timeout_s=` |
//! | `GET /1.0/operations/{id}/follow` | one [`Operation`] per line at every change |
//! | `DELETE /1.0/operations/{id}` | cancel it |
//! | `GET /1.0/top` | [`TopSnapshot`] |
//! | `POST /1.0/console/logins` | [`ConsoleLogin`] |
//! | `GET /1.0/lab` | [`LabStatus`]: plans, whether somebody runs them, and what was asked for |
//! | `GET`, `POST /1.0/lab/runs` | list of [`LabRun`]; ask for one with a [`LabRunRequest`], answered by the [`LabRequest`] it became |
//! | `GET /1.0/lab/runs/{id}`, `…/report` | [`LabRunDetails`]; the report as a page |
//! | `DELETE /1.0/lab/requests/{id}` | withdraw a [`LabRequest`], or end its run |
//! | `GET /1.0/lab/compare` | [`LabComparison`] of two runs; `?a=&b=` |
//! | `GET /metrics` | Prometheus text |
//!
//! # Invariants
//! - Whatever `parse` lets through refers only to what exists in it, holds no
//!   name, device, socket or address twice, and has every value in its range.
//! - Keys are only ever added; error codes, event numbers and drop reasons keep
//!   their meaning.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

/// Where the daemon listens unless told otherwise.
pub const SOCKET_DEFAULT: &str = "/run/suimon/suimon.sock";
/// Environment variable that names another socket.
pub const SOCKET_VARIABLE: &str = "SUIMON_SOCKET";

/// Where runs of the lab are unless told otherwise.
pub const LAB_RESULTS_DEFAULT: &str = "/var/lib/suimon/lab";

mod byte_size;
mod change_fits;
mod claims;
mod cluster_config;
mod cluster_fits;
mod cluster_keys;
mod cluster_status;
mod commands;
mod config;
mod confinement;
mod console_login;
mod diff;
mod disk_config;
mod disk_fits;
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
mod image_report;
mod iov_fits;
mod iov_status;
mod json_body;
mod json_tree;
mod kernel_path_status;
mod key_meaning;
mod key_schema;
mod keys;
mod lab_run;
mod lab_status;
mod lacp_status;
mod libvirt;
mod migration;
mod name;
mod nbd_config;
mod nbd_fits;
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
mod processor_stages;
mod qos_config;
mod qos_fits;
mod qos_status;
mod references;
mod request;
mod shape;
mod sriov_status;
mod status;
mod steering_status;
mod storage_keys;
mod store_capability;
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
mod vm_fits;
mod vm_guest;
mod vm_keys;
mod vm_request;
mod vm_status;
mod vmq_config;
mod vmq_fits;
mod vmq_status;
mod what_if;
mod xdp_status;

pub use byte_size::{ByteSize, ByteSizeError, ByteSizeText};
pub use change_fits::validate_change;
pub use cluster_config::{ClusterConfig, ClusterTls};
pub use cluster_status::{
    ClusterAggressor, ClusterBeat, ClusterCap, ClusterDisk, ClusterMember, ClusterShare,
    ClusterStatus, ClusterStore,
};
pub use commands::command_of;
pub use config::{
    ApiConfig, ConsoleConfig, HostConfig, HostSection, LabConfig, NicBackend, NicConfig,
    OffloadConfig, SocketMode, SwitchConfig, SwitchKind, UplinkConfig, UplinkDriver,
};
pub use confinement::{ConfinementLayer, ConfinementMode, ConfinementStatus};
pub use console_login::ConsoleLogin;
pub use disk_config::{
    DiskConfig, DiskController, DiskFormat, DiskKind, DiskOnFull, DiskVhostUser, StoreConfig,
};
pub use disk_fits::STORE_DISKS_MAX;
pub use disk_status::{
    DiskCounters, DiskFullStatus, DiskNbdClient, DiskNbdStatus, DiskRequestCounters, DiskStatus,
    DiskVhostUserStatus, NbdWay, StorageState, StoreStatus,
};
pub use drain::{DrainPlan, DrainRequest, DrainStatus, DrainedVm};
pub use error::{ApiError, ErrorBody, ErrorCode};
pub use event::{Event, EventFilter, Severity};
pub use event_kinds::EventKind;
pub use examples::example_of;
pub use form::Form;
pub use image_report::{
    ImageChange, ImageChanges, ImageCheck, ImageFinding, ImageInfo, ImageParent, ImageRequest,
    ImageSeverity, ImageVerdict,
};
pub use iov_status::{IovPath, IovStatus};
pub use json_body::{
    JSON_BYTES_MAX, Resource, applies_a_file, check_patch, locate_errors_of_apply, parse_apply,
    parse_cluster, parse_power, parse_request, parse_resource, patch_cluster, patch_power,
    patch_resource,
};
pub use kernel_path_status::KernelPathStatus;
pub use key_meaning::{default_text, meaning_of};
pub use key_schema::{Components, describe_keys, patch_name};
pub use keys::{Effect, Key, Kind};
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
    Arrival, ArrivalRequest, ArrivalState, ArrivingPort, DOWNTIME_MS_DEFAULT, DOWNTIME_MS_MAX,
    DiskHandedOver, MIGRATION_PROTOCOL, MigrateVmRequest, MigrationPhase, StoreToken, VmMigration,
};
pub use name::{Name, NameError};
pub use nbd_config::DiskNbd;
pub use node_config::NodeConfig;
pub use node_status::NodeStatus;
pub use offload_status::{DeviceFeatureStatus, DeviceFeaturesStatus, OffloadDoer, OffloadStatus};
pub use operation::{Operation, OperationState};
pub use pf_config::{PfConfig, VfConfig, VfLinkState};
pub use plan::{FieldChange, Plan, PlanAction, PlanStep};
pub use power_config::{EnergyPreference, PowerConfig, PowerPlanName};
pub use power_status::{
    PowerChangedStatus, PowerCpuStatus, PowerDataPlaneStatus, PowerEffect, PowerEnergyStatus,
    PowerSettingStatus, PowerStatus, PowerZoneStatus, TopPower,
};
pub use processor_stages::ProcessorStages;
pub use qos_config::{DiskQos, QosPolicyConfig, QosPolicyKind};
pub use qos_status::{
    QosDelivery, QosFlowStatus, QosLimitingFactor, QosPolicyPart, QosPolicyStatus, QosTimeShare,
    StorePromises, WhatIfAnswer,
};
pub use request::{
    ApplyRequest, ConvertDiskRequest, MEASURE_SECONDS_DEFAULT, MEASURE_SECONDS_MAX,
    MeasureStoreRequest, MoveQueueRequest, SnapshotDiskRequest,
};
pub use sriov_status::{PfStatus, SriovAdapter, SriovSupport, VfStatus};
pub use status::{
    AddressStatus, Condition, DropCounter, Health, HostStatus, NicStatus, PortCounters,
    ProcessorStatus, QueueStatus, SwitchStatus, TopPort, TopSnapshot, TopTeam, UplinkStatus,
};
pub use steering_status::{SteeredNic, SteeringMode, SteeringStatus};
pub use store_capability::{
    CapabilitySource, MeasureWord, StoreCapability, StoreEstimate, StoreMeasurement, StorePattern,
    StorePatternFigure,
};
pub use store_file::{StoreFile, StoreFileError};
/// Texts of the daemon and of its clients count things alike.
pub use suimon_quantity::Count;
pub use team_config::{
    LacpSettings, LacpTimer, TEAM_MEMBERS_MAX, TeamAlgorithm, TeamConfig, TeamMode,
};
pub use team_status::{LacpPartnerStatus, TeamMemberState, TeamMemberStatus, TeamStatus};
pub use toml_file::{TOML_BYTES_MAX, locate_errors, parse_toml};
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
pub use vmq_status::{VmqProcessorStatus, VmqQueueStatus, VmqStatus};
pub use what_if::{DiskProposal, QosPolicyProposal, QosProposal, StoreProposal, WhatIfRequest};
pub use xdp_status::{XdpHook, XdpStatus};
