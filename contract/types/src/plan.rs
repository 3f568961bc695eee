//! Plans: what a change of desired state will do.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ByteSize;

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
    #[schema(value_type = Option<Value>)]
    pub from: Option<serde_json::Value>,
    /// Its value after, as JSON; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
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
    /// What the user should know about it, such as that it waits for the next
    /// start of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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

impl PlanAction {
    /// `+`, `~`, `±`, `-`: the mark at the head of a step.
    pub const fn mark(self) -> char {
        match self {
            Self::Create => '+',
            Self::ChangeLive => '~',
            Self::Replace => '±',
            Self::Delete => '-',
        }
    }
}

impl fmt::Display for FieldChange {
    /// `vlan 10 → 20`, with `none` for an absent value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Units stand last in the names of keys.
        let is_size = self.field.ends_with("_bytes") || self.field.ends_with("_bytes_per_s");
        let shown = |value| Shown { value, is_size };
        write!(f, "{} {} → {}", self.field, shown(self.from.as_ref()), shown(self.to.as_ref()))
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

impl fmt::Display for PlanStep {
    /// `~ nic/web change live: vlan 10 → 20, isolated false → true`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.action.mark(), self.resource, self.action)?;
        for (index, change) in self.changes.iter().enumerate() {
            write!(f, "{} {change}", if index == 0 { ":" } else { "," })?;
        }
        match &self.note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}
