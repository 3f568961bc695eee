//! Contract between the daemon and its clients: the types of the REST API.
//!
//! Desired state ([`HostConfig`] and its parts) and observed state (`…Status`) are separate types.
//! Daemon and clients written in Rust share these types; for other languages the daemon serves the
//! OpenAPI document derived from them.
//!
//! This crate defines observed state, events, operations and requests. It re-exports
//! `suimon-config` (desired state and its keys) and `suimon-host-file` (host files, validation,
//! plans), so that users of the contract depend on one crate.
//!
//! This crate performs no I/O.
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
//! - Fields are only added or renamed ([`RENAMES`]); event numbers and drop reasons keep their
//!   meaning.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

/// Default path of the daemon's Unix socket.
pub const SOCKET_DEFAULT: &str = "/run/suimon/suimon.sock";
/// Environment variable that replaces the default path of the socket.
pub const SOCKET_VARIABLE: &str = "SUIMON_SOCKET";

mod cluster_status;
mod commands;
mod condition;
mod confinement;
mod console_login;
mod disk_status;
mod drain;
mod event;
mod event_kinds;
mod image_report;
mod iov_status;
mod kernel_path_status;
mod lab_run;
mod lab_status;
mod lacp_status;
mod libvirt;
mod migration;
mod nbd_status;
mod node_status;
mod observed;
mod offload_status;
mod operation;
mod power_status;
mod qos_status;
#[cfg(test)]
mod renames_tests;
mod request;
mod sriov_status;
mod status;
mod steering_status;
mod store_measurement;
mod team_status;
mod top_disk;
mod vm_guest;
mod vm_request;
mod vm_status;
mod vmq_status;
mod what_if;
mod worker_stages;
mod xdp_status;

pub use cluster_status::{
    ClusterCap, ClusterDisk, ClusterHeartbeat, ClusterMember, ClusterShare, ClusterStatus,
    DiskOverGuarantee, SharedStoreStatus,
};
pub use commands::command_of;
pub use condition::{Condition, Health};
pub use confinement::{ConfinementMode, ConfinementStatus, ThreadConfinement};
pub use console_login::ConsoleLogin;
pub use disk_status::{
    DiskCounters, DiskFullStatus, DiskNbdClient, DiskNbdStatus, DiskNbdTransport,
    DiskRequestCounters, DiskStatus, DiskVhostUserStatus, StorageState, StoreStatus,
};
pub use drain::{DrainPlan, DrainRequest, DrainStatus, VmDrainPlan};
pub use event::{Event, EventFilter, Severity};
pub use event_kinds::EventKind;
pub use image_report::{
    ImageChange, ImageChanges, ImageCheck, ImageFinding, ImageInfo, ImageParent, ImageRequest,
    ImageSeverity, ImageVerdict,
};
pub use iov_status::{IovPath, IovStatus};
pub use kernel_path_status::KernelPathStatus;
pub use lab_run::{
    LabAgreement, LabComparison, LabEstimate, LabFigure, LabFinding, LabMeasureComparison,
    LabRunDetails, LabSimulatedFigure,
};
pub use lab_status::{
    LabPlan, LabPlanScale, LabProgress, LabRequest, LabRequestState, LabRun, LabRunRequest,
    LabRunState, LabScale, LabStatus, LabText, LabWorker,
};
pub use lacp_status::{LacpCounters, LacpMemberStatus, LacpPortStatus};
pub use libvirt::libvirt_elements;
pub use migration::{
    CopiedDisk, DOWNTIME_MS_DEFAULT, DOWNTIME_MS_MAX, DevicePciPort, HandedOverDisk,
    IncomingMigration, IncomingMigrationRequest, IncomingMigrationState, MIGRATION_PROTOCOL,
    MigrateVmRequest, MigrationHeader, MigrationPhase, SourceSwitch, StoreToken, VmMigration,
};
pub use nbd_status::{NbdPeerStatus, NbdStatus};
pub use node_status::NodeStatus;
pub use observed::Observed;
pub use offload_status::{
    DeviceFeatureStatus, DeviceFeaturesStatus, OffloadPerformer, OffloadStatus,
};
pub use operation::{Operation, OperationState};
pub use power_status::{
    ChangedPowerSetting, PowerCpuStatus, PowerDataPlaneStatus, PowerEffect, PowerEnergyStatus,
    PowerSettingStatus, PowerStatus, PowerZoneStatus, TopPower,
};
pub use qos_status::{
    QosDelivery, QosFlowStatus, QosLimitingFactor, QosPolicyShare, QosPolicyStatus, QosTimeShare,
    StoreReservations, WhatIfResponse,
};
pub use request::{
    ConvertDiskRequest, MEASURE_SECONDS_DEFAULT, MEASURE_SECONDS_MAX, MeasureStoreRequest,
    MoveQueueRequest, SnapshotDiskRequest,
};
pub use sriov_status::{PfStatus, SriovAdapter, SriovSupport, VfStatus};
pub use status::{
    AddressStatus, DropCounter, HostStatus, NicStatus, PortCounters, QueueStatus, StateStoreStatus,
    SwitchStatus, TopPort, TopSnapshot, TopTeam, UplinkStatus, WorkerStatus,
};
pub use steering_status::{SteeredNic, SteeringMode, SteeringStatus};
pub use store_measurement::{
    CapacitySource, StoreCapacityEstimate, StoreMeasurement, StorePattern, StorePatternResult,
};
pub use suimon_config::*;
pub use suimon_host_file::*;
/// Count with its noun in singular or plural, for consistent texts of the daemon and its clients.
pub use suimon_quantity::CountedNoun;
pub use team_status::{LacpPartnerStatus, TeamMemberState, TeamMemberStatus, TeamStatus};
pub use top_disk::TopDisk;
pub use vm_guest::{VmGuest, VmGuestInterface};
pub use vm_request::{
    FREEZE_SECONDS_DEFAULT, FREEZE_SECONDS_MAX, FreezeVmRequest, STOP_SECONDS_DEFAULT,
    STOP_SECONDS_MAX, StopMethod, StopVmRequest,
};
pub use vm_status::{VmState, VmStatus};
pub use vmq_status::{VmqQueueStatus, VmqStatus, VmqWorkerStatus};
pub use what_if::{DiskProposal, QosPolicyProposal, QosProposal, StoreProposal, WhatIfRequest};
pub use worker_stages::WorkerStages;
pub use xdp_status::{XdpHook, XdpStatus};
