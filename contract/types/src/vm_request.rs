//! Requests for actions on a running VM.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Default time for a guest to shut down, in seconds.
pub const STOP_SECONDS_DEFAULT: u64 = 60;
/// Longest time for a guest to shut down, in seconds.
pub const STOP_SECONDS_MAX: u64 = 3600;

/// Method of requesting a guest to shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(rename = "StopBy")]
#[schema(as = StopBy)]
pub enum StopMethod {
    /// Guest agent if it is available and supports it, else the power button.
    #[default]
    Auto,
    /// Power button event of ACPI.
    PowerButton,
    /// Shutdown command of the guest agent.
    Agent,
}

/// Body of `POST /1.0/vms/{name}/stop`: requests the VM's guest to shut down. The body may be
/// absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopVmRequest {
    /// Time for the guest to shut down in seconds, 1 to 3600.
    #[schema(minimum = 1, maximum = 3600)]
    #[serde(rename = "seconds")]
    pub timeout_s: u64,
    /// True to end the VM after that time, like a power loss.
    pub force: bool,
    /// Method of the request: `auto`, `power-button` or `agent`.
    #[serde(rename = "by")]
    pub method: StopMethod,
}

impl Default for StopVmRequest {
    fn default() -> Self {
        Self { timeout_s: STOP_SECONDS_DEFAULT, force: false, method: StopMethod::Auto }
    }
}

/// Default time after which frozen file systems are thawed, in seconds.
pub const FREEZE_SECONDS_DEFAULT: u64 = 30;
/// Longest time after which frozen file systems are thawed, in seconds.
pub const FREEZE_SECONDS_MAX: u64 = 600;

/// Body of `POST /1.0/vms/{name}/freeze`: the guest agent flushes and freezes the guest's file
/// systems until `…/thaw` or until the time expires. The body may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreezeVmRequest {
    /// Time in seconds after which the file systems are thawed automatically, 1 to 600.
    #[schema(minimum = 1, maximum = 600)]
    #[serde(rename = "seconds")]
    pub thaw_after_s: u64,
}

impl Default for FreezeVmRequest {
    fn default() -> Self {
        Self { thaw_after_s: FREEZE_SECONDS_DEFAULT }
    }
}
