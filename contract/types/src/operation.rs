//! Operations: changes that take their time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Plan};

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperationState {
    /// Not finished.
    Running,
    /// Done.
    Succeeded,
    /// Not done; everything is as before.
    Failed,
    /// Stopped on request; everything is as before.
    Cancelled,
}

/// A change under way. Every change of desired state is one.
///
/// ```text
/// running ──► succeeded
///    ├──────► failed
///    └──────► cancelled
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operation {
    /// Unique while the daemon runs.
    pub id: u64,
    /// `apply`, `nic add`, `queue move`, `nic capture`, `disk convert`, …
    pub kind: String,
    /// Whom it is about, like `nic/web`, or `host`.
    pub subject: String,
    /// Where it stands.
    pub state: OperationState,
    /// Steps done.
    pub steps_done: usize,
    /// Steps in all.
    pub steps: usize,
    /// The step under way, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What it changes, if it changes desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// What it found, for people, a line each: what a check of a disk has to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub report: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ms: Option<u64>,
}
