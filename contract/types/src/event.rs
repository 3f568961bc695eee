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

/// Which events of the log are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// Only those that matter at least so much.
    pub severity: Severity,
    /// Only those about this subject, like `disk/web`, or about all of a kind, like `disk`.
    pub subject: Option<String>,
    /// Only those of this kind, like 6108.
    pub id: Option<u32>,
}

impl Default for EventFilter {
    /// All events.
    fn default() -> Self {
        Self { severity: Severity::Info, subject: None, id: None }
    }
}

impl EventFilter {
    /// Returns true if the filter selects the event.
    #[must_use]
    pub fn matches(&self, event: &Event) -> bool {
        self.matches_parts(event.id, event.severity, &event.subject)
    }

    /// Returns true if the filter selects an event with this kind, severity and subject.
    #[must_use]
    pub fn matches_parts(&self, id: u32, severity: Severity, subject: &str) -> bool {
        let is_below = |wanted: &String| {
            let rest = subject.strip_prefix(wanted.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        severity >= self.severity
            && self.id.is_none_or(|wanted| id == wanted)
            && self.subject.as_ref().is_none_or(is_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart_by_severity_subject_and_id() {
        let event = Event {
            sequence: 1,
            time_unix_ms: 0,
            id: 6108,
            severity: Severity::Warning,
            subject: "disk/web".to_owned(),
            text: String::new(),
            fields: BTreeMap::new(),
        };
        let about = |subject: &str| EventFilter {
            subject: Some(subject.to_owned()),
            ..EventFilter::default()
        };
        assert!(EventFilter::default().matches(&event));
        assert!(about("disk").matches(&event) && about("disk/web").matches(&event));
        for other in ["disk/we", "dis", "nic/web", "disk/web/x"] {
            assert!(!about(other).matches(&event), "{other}");
        }
        let severity = Severity::Error;
        assert!(!EventFilter { severity, ..EventFilter::default() }.matches(&event));
        assert!(EventFilter { id: Some(6108), ..about("disk") }.matches(&event));
        assert!(!EventFilter { id: Some(6109), ..about("disk") }.matches(&event));
    }
}
