//! Condition of a resource.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Health of a resource with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Condition {
    /// Health of the resource.
    pub health: Health,
    /// Reason why the health is not `up`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Agreement of desired and observed state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As desired and able to carry traffic.
    Up,
    /// As desired, but the other side is absent: no VM, no carrier.
    Down,
    /// Not as desired; `reason` states the cause, and the daemon retries.
    Failed,
}
