//! What can be asked of a VM that runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Seconds that a guest is given to turn itself off unless told otherwise.
pub const STOP_SECONDS_DEFAULT: u64 = 60;
/// And at most.
pub const STOP_SECONDS_MAX: u64 = 3600;

/// How a guest is asked to turn itself off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopBy {
    /// Through its agent if that is there and does so, else by its power button.
    #[default]
    Auto,
    /// By its power button (ACPI).
    PowerButton,
    /// Through its agent.
    Agent,
}

/// `POST /1.0/vms/{name}/stop`: the VM's guest is asked to turn itself off. The body may be
/// absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopVmRequest {
    /// Seconds that it is given, 1 to 3600.
    #[schema(minimum = 1, maximum = 3600)]
    pub seconds: u64,
    /// Whether it is ended then, as if its plug was pulled.
    pub force: bool,
    /// How it is asked.
    pub by: StopBy,
}

impl Default for StopVmRequest {
    fn default() -> Self {
        Self { seconds: STOP_SECONDS_DEFAULT, force: false, by: StopBy::Auto }
    }
}

/// Seconds for which a guest's file systems are frozen at most unless told otherwise.
pub const FREEZE_SECONDS_DEFAULT: u64 = 30;
/// And at most.
pub const FREEZE_SECONDS_MAX: u64 = 600;

/// `POST /1.0/vms/{name}/freeze`: the agent of the VM's guest writes what waits and holds writes to
/// its file systems, until `…/thaw`, or until the time is over. The body may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreezeVmRequest {
    /// Seconds after which they are thawed if nobody did, 1 to 600.
    #[schema(minimum = 1, maximum = 600)]
    pub seconds: u64,
}

impl Default for FreezeVmRequest {
    fn default() -> Self {
        Self { seconds: FREEZE_SECONDS_DEFAULT }
    }
}
