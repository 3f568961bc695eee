//! Operations: changes carried out asynchronously.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Plan};

/// State of an asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperationState {
    /// The operation is in progress.
    Running,
    /// The operation was completed.
    Succeeded,
    /// Failed; the previous state is restored.
    Failed,
    /// Cancelled on request; the previous state is restored.
    Cancelled,
}

/// Asynchronous operation. Every change of desired state is one.
///
/// ```text
/// running ──► succeeded
///    ├──────► failed
///    └──────► cancelled
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operation {
    /// Id, unique while the daemon runs.
    pub id: u64,
    /// Kind, such as `apply`, `nic add`, `queue move`, `nic capture` or `disk convert`.
    pub kind: String,
    /// Object concerned, such as `nic/web` or `host`.
    pub subject: String,
    /// Current state of the operation.
    pub state: OperationState,
    /// Number of steps completed so far.
    pub steps_done: usize,
    /// Number of steps of the whole operation.
    #[serde(rename = "steps")]
    pub steps_total: usize,
    /// Description of the current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "step")]
    pub current_step: Option<String>,
    /// Plan of the change; absent if the operation does not change desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Human-readable findings, one per line, such as those of a disk check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub report: Vec<String>,
    /// Warnings about the request, such as the use of an old name; only in the response to the
    /// request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Error of a failed operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// True if `plan` and `report` were removed and the message of `error` was shortened, because
    /// the details of operations that ended later need the memory.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub details_dropped: bool,
    /// Start time in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// End time in milliseconds since 1970-01-01 UTC; absent while running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ms: Option<u64>,
}
