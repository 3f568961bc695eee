//! Observed state of VMs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Name, VmAccelerator, VmConfig, VmMigration};

/// What a VM does.
///
/// ```text
/// stopped ──start──► starting ──► running ◄──resume──┐
///    ▲                  │            │ ──pause──► paused
///    │                  │            ├──stop──► stopping
///    └──────────────────┴────────────┴── ended, by itself or by `kill`
///
/// Where a VM goes to another node: running ──► handed over ──► gone; there: arriving ──► running.
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// It does not run.
    Stopped,
    /// It is being started.
    Starting,
    /// Its CPUs run.
    Running,
    /// Its CPUs stand still.
    Paused,
    /// Its guest was asked to turn itself off.
    Stopping,
    /// Its guest has told of its panic and stands still.
    Panicked,
    /// It runs, as far as is known, and does not answer; `reason` says more.
    Lost,
    /// It comes from another node, and does not run here yet.
    Arriving,
    /// It stands still: another node was told to run it, and has not answered.
    HandedOver,
}

/// A VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmStatus {
    /// As desired.
    pub config: VmConfig,
    /// What it does.
    pub state: VmState,
    /// Why it does not run any more, or does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What of its configuration holds from its next start on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for_start: Vec<String>,
    /// Its process; absent while it does not run, like all that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The user that its process runs as, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// Seconds since it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<u64>,
    /// What runs its instructions, `kvm` or `tcg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<VmAccelerator>,
    /// Virtual CPUs that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u16>,
    /// NICs that are plugged in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<Name>,
    /// Disks that are plugged in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Name>,
    /// QEMU's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qemu_version: Option<String>,
    /// Whether an agent in the guest is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<bool>,
    /// Seconds until the guest's file systems, which are frozen, are thawed; 0 if that is being
    /// tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_s: Option<u64>,
    /// How far it is on its way from this node or to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<VmMigration>,
}

impl VmStatus {
    /// A VM that does not run.
    pub const fn stopped(config: VmConfig) -> Self {
        Self {
            config,
            state: VmState::Stopped,
            reason: None,
            waits_for_start: Vec::new(),
            process: None,
            user: None,
            uptime_s: None,
            accelerator: None,
            cpus: None,
            nics: Vec::new(),
            disks: Vec::new(),
            qemu_version: None,
            agent: None,
            frozen_s: None,
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
            Self::Lost => "lost",
            Self::Arriving => "arriving",
            Self::HandedOver => "handed over",
        })
    }
}
