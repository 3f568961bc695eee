//! Plans: what a change of desired state will do.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What happens to one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanAction {
    /// It is made.
    Create,
    /// It changes without an interruption of its traffic.
    ChangeLive,
    /// It is deleted and made anew: its traffic is interrupted.
    Replace,
    /// It is deleted.
    Delete,
}

/// One key that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// The key, like `vlan` or `offload.tx_checksum`.
    pub field: String,
    /// Its value before, as JSON; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub from: Option<serde_json::Value>,
    /// Its value after, as JSON; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub to: Option<serde_json::Value>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    /// What happens.
    pub action: PlanAction,
    /// To whom, like `nic/web`.
    pub resource: String,
    /// Which keys change; empty for create and delete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
}

/// The steps in the order in which they are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// The steps; empty if desired state already is as asked.
    pub steps: Vec<PlanStep>,
}

impl fmt::Display for PlanAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::ChangeLive => "change live",
            Self::Replace => "replace",
            Self::Delete => "delete",
        })
    }
}
