//! Events: occurrences with stable numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RENAMES, RenamedItem};

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Expected state change, no action needed.
    Info,
    /// Degraded, but traffic or service continues.
    Warning,
    /// Failure: a resource does not work, and action is required.
    Error,
}

impl Severity {
    /// Returns the severity as serialized by the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Event in the log. Numbers of kinds are part of the API and never change their meaning: 1xxx
/// host, 2xxx switch, 3xxx NIC, 4xxx uplink and team, 5xxx worker and queue, 6xxx store, disk and
/// Storage QoS, 7xxx VM, 8xxx power, 9xxx SR-IOV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Position in the log. Increases by one per event and continues across restarts of the daemon;
    /// after a crash, up to 10 000 numbers are skipped.
    pub sequence: u64,
    /// Time of the event in milliseconds since 1970-01-01 UTC.
    pub time_unix_ms: u64,
    /// Number of the event's kind.
    #[serde(rename = "id")]
    pub kind_number: u32,
    /// Severity of the event's kind.
    pub severity: Severity,
    /// Object concerned, such as `nic/web`.
    pub subject: String,
    /// Description of the occurrence in English.
    pub text: String,
    /// Machine-readable values of the description.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl Event {
    /// Adds the new names of renamed fields. The old names remain.
    #[must_use]
    pub fn with_new_names(mut self) -> Self {
        for rename in RENAMES.iter().filter(|rename| rename.item == RenamedItem::EventField) {
            if let Some(value) = self.fields.get(rename.old).cloned() {
                self.fields.entry(rename.new.to_owned()).or_insert(value);
            }
        }
        self
    }
}

/// Filter of events by severity, subject and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// Lowest severity of selected events.
    pub severity_min: Severity,
    /// Subject selected, such as `disk/web`, or kind of subject, such as `disk`; `None` selects
    /// every subject.
    pub subject: Option<String>,
    /// Kind selected by its number, such as 6108; `None` selects every kind.
    pub kind_number: Option<u32>,
}

impl Default for EventFilter {
    /// Selects all events.
    fn default() -> Self {
        Self { severity_min: Severity::Info, subject: None, kind_number: None }
    }
}

impl EventFilter {
    /// Returns true if the filter selects the event.
    #[must_use]
    pub fn matches(&self, event: &Event) -> bool {
        self.matches_fields(event.kind_number, event.severity, &event.subject)
    }

    /// Returns true if the filter selects an event with this kind, severity and subject.
    #[must_use]
    pub fn matches_fields(&self, id: u32, severity: Severity, subject: &str) -> bool {
        let is_below = |prefix: &String| {
            let rest = subject.strip_prefix(prefix.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        severity >= self.severity_min
            && self.kind_number.is_none_or(|filter_id| id == filter_id)
            && self.subject.as_ref().is_none_or(is_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_renamed_fields_under_both_names() {
        for rename in RENAMES.iter().filter(|rename| rename.item == RenamedItem::EventField) {
            let event = Event {
                sequence: 1,
                time_unix_ms: 0,
                kind_number: 6207,
                severity: Severity::Warning,
                subject: "store/a".to_owned(),
                text: String::new(),
                fields: BTreeMap::from([(rename.old.to_owned(), "7".to_owned())]),
            };
            let fields = event.with_new_names().fields;
            assert_eq!((&*fields[rename.old], &*fields[rename.new]), ("7", "7"));
        }
    }

    #[test]
    fn events_differ_by_severity_subject_and_id() {
        let event = Event {
            sequence: 1,
            time_unix_ms: 0,
            kind_number: 6108,
            severity: Severity::Warning,
            subject: "disk/web".to_owned(),
            text: String::new(),
            fields: BTreeMap::new(),
        };
        let filter = |subject: &str| EventFilter {
            subject: Some(subject.to_owned()),
            ..EventFilter::default()
        };
        assert!(EventFilter::default().matches(&event));
        assert!(filter("disk").matches(&event) && filter("disk/web").matches(&event));
        for other in ["disk/we", "dis", "nic/web", "disk/web/x"] {
            assert!(!filter(other).matches(&event), "{other}");
        }
        let severity = Severity::Error;
        assert!(!EventFilter { severity_min: severity, ..EventFilter::default() }.matches(&event));
        assert!(EventFilter { kind_number: Some(6108), ..filter("disk") }.matches(&event));
        assert!(!EventFilter { kind_number: Some(6109), ..filter("disk") }.matches(&event));
    }
}
