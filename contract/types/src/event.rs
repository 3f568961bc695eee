//! Events: past facts with stable numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Info,
    /// Somebody should know.
    Warning,
    /// Something does not work.
    Error,
}

impl Severity {
    /// The severity as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What happened. The numbers are part of the API: they are never given to
/// another meaning. 1xxx host, 2xxx switch, 3xxx NIC, 4xxx uplink and team, 5xxx
/// processor and queue, 6xxx store, disk and Storage QoS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Position in the log; counts up by one, survives restarts.
    pub sequence: u64,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub time_unix_ms: u64,
    /// What kind of event.
    pub id: u32,
    /// How much it matters.
    pub severity: Severity,
    /// Whom it is about, like `nic/web`.
    pub subject: String,
    /// For people.
    pub text: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}
