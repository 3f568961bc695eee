//! Observed state of VMs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Name, VmAccelerator, VmConfig, VmMigration};

/// State of a VM.
///
/// ```text
/// stopped ──start──► starting ──► running ◄──resume──┐
///    ▲                  │            │ ──pause──► paused
///    │                  │            ├──stop──► stopping
///    └──────────────────┴────────────┴── ended, by itself or by `kill`
///
/// Migration: running ──► handed over ──► gone (source); arriving ──► running (destination).
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// The VM is not running.
    Stopped,
    /// The VM is starting.
    Starting,
    /// The VM is running.
    Running,
    /// The VM's CPUs are paused.
    Paused,
    /// The guest was requested to shut down.
    Stopping,
    /// The guest reported a panic, and its CPUs are stopped.
    Panicked,
    /// Presumably running, but not responding; `reason` has details.
    #[serde(rename = "lost")]
    NotResponding,
    /// Migrating from another node, not yet running on this one.
    #[serde(rename = "arriving")]
    IncomingMigration,
    /// Stopped: another node was requested to run the VM and has not confirmed yet.
    HandedOver,
}

/// Observed state of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmStatus {
    /// Desired state of the VM.
    pub config: VmConfig,
    /// Current state of the VM.
    pub state: VmState,
    /// Reason why the VM ended or does not respond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Settings that take effect at the VM's next start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "waits_for_start")]
    pub settings_pending_start: Vec<String>,
    /// Process id of QEMU. This and the following values are absent while the VM is not running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "process")]
    pub process_id: Option<u32>,
    /// User id of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "user")]
    pub user_id: Option<u32>,
    /// Seconds since the VM's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<u64>,
    /// Execution of instructions, `kvm` or `tcg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<VmAccelerator>,
    /// Current number of virtual CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u16>,
    /// NICs attached to the VM.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<Name>,
    /// Disks attached to the VM.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Name>,
    /// Version of the VM's QEMU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qemu_version: Option<String>,
    /// True if a guest agent is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "agent")]
    pub agent_connected: Option<bool>,
    /// Seconds until the guest's frozen file systems are thawed; 0 while thawing is attempted.
    /// Absent if they are not frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "frozen_s")]
    pub time_to_thaw_s: Option<u64>,
    /// Progress of a migration from or to this node; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<VmMigration>,
}

impl VmStatus {
    /// Returns the status of a VM that is not running.
    pub const fn stopped(config: VmConfig) -> Self {
        Self {
            config,
            state: VmState::Stopped,
            reason: None,
            settings_pending_start: Vec::new(),
            process_id: None,
            user_id: None,
            uptime_s: None,
            accelerator: None,
            cpus: None,
            nics: Vec::new(),
            disks: Vec::new(),
            qemu_version: None,
            agent_connected: None,
            time_to_thaw_s: None,
            migration: None,
        }
    }
}

impl core::fmt::Display for VmState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Panicked => "panicked",
            Self::NotResponding => "lost",
            Self::IncomingMigration => "arriving",
            Self::HandedOver => "handed over",
        })
    }
}
