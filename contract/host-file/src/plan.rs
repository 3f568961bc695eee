//! Plans: the steps of a change of desired state.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ByteSize;

/// Action of a step on its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanAction {
    /// The resource does not exist and is created.
    Create,
    /// The resource changes without an interruption of its traffic.
    ChangeLive,
    /// The resource is deleted and created again: its traffic is interrupted.
    Replace,
    /// The resource exists and is deleted.
    Delete,
}

/// Change of one key of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Key, such as `vlan` or `offload.tx_checksum`.
    pub field: String,
    /// Previous value as JSON; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    #[serde(rename = "from")]
    pub old_value: Option<serde_json::Value>,
    /// New value as JSON; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    #[serde(rename = "to")]
    pub new_value: Option<serde_json::Value>,
}

/// Step of a plan: one action on one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    /// Action on the resource.
    pub action: PlanAction,
    /// Resource, such as `nic/web`.
    pub resource: String,
    /// Changed keys; empty for create and delete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// Notice for the user, for example that the change takes effect at the next start of the
    /// daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Steps of a change, in order of execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Steps; empty if the desired state does not change.
    pub steps: Vec<PlanStep>,
    /// Warnings about the request, such as the use of an old name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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

impl PlanAction {
    /// Returns the symbol of the action: `+`, `~`, `±` or `-`.
    pub const fn symbol(self) -> char {
        match self {
            Self::Create => '+',
            Self::ChangeLive => '~',
            Self::Replace => '±',
            Self::Delete => '-',
        }
    }
}

impl fmt::Display for FieldChange {
    /// Writes `vlan 10 → 20`, with `none` for an absent value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names of keys end with their unit.
        let is_size = self.field.ends_with("_bytes") || self.field.ends_with("_bytes_per_s");
        let display = |value| Shown { value, is_size };
        write!(
            f,
            "{} {} → {}",
            self.field,
            display(self.old_value.as_ref()),
            display(self.new_value.as_ref())
        )
    }
}

struct Shown<'a> {
    value: Option<&'a serde_json::Value>,
    is_size: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.value.and_then(serde_json::Value::as_u64).filter(|_| self.is_size);
        if let Some(bytes) = size {
            return write!(f, "{}", ByteSize::new(bytes));
        }
        match self.value {
            None => f.write_str("none"),
            Some(serde_json::Value::String(text)) => f.write_str(text),
            Some(value) => write!(f, "{value}"),
        }
    }
}

/// Note of a step that has no effect on the running daemon.
pub(crate) const NEXT_START: &str = "takes effect at the next start of the daemon";

impl PlanStep {
    /// Returns true if no change of the step takes effect before the next start of the daemon.
    fn is_deferred(&self) -> bool {
        self.note.as_deref() == Some(NEXT_START)
    }
}

impl fmt::Display for PlanStep {
    /// Writes `~ nic/web change live: vlan 10 → 20, isolated false → true`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.action.symbol(), self.resource)?;
        if self.is_deferred() && self.action == PlanAction::ChangeLive {
            f.write_str("change")?;
        } else {
            write!(f, "{}", self.action)?;
        }
        for (index, change) in self.changes.iter().enumerate() {
            write!(f, "{} {change}", if index == 0 { ":" } else { "," })?;
        }
        match &self.note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}
