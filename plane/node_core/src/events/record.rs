//! Events as kept in memory by the log.

use std::sync::Arc;

use suimon_contract::{Event, EventFilter, Severity};
use suimon_ports::StateStoreError;

use crate::state::{EVENTS, StoreChange, decode, encode, event_key};

/// Event as JSON, as in the state store, with the fields that filters compare.
///
/// An [`Event`] needs several times the memory, most of it for its map of fields.
#[derive(Clone, Debug)]
pub(super) struct Record {
    sequence: u64,
    id: u32,
    severity: Severity,
    subject: Box<str>,
    json: Arc<[u8]>,
}

impl Record {
    pub(super) fn new(event: &Event) -> Result<Self, StateStoreError> {
        Ok(Self::with_json(event, encode(EVENTS, event)?.into()))
    }

    /// Decodes an entry of the table `events`: `key` is the sequence in 20 digits, `value` the
    /// event as JSON.
    ///
    /// # Errors
    /// The value is not a valid event.
    pub(super) fn read(key: &str, value: &[u8]) -> Result<Self, StateStoreError> {
        Ok(Self::with_json(&decode(EVENTS, key, value)?, value.into()))
    }

    fn with_json(event: &Event, json: Arc<[u8]>) -> Self {
        let Event { sequence, kind_number: id, severity, ref subject, .. } = *event;
        Self { sequence, id, severity, subject: subject.as_str().into(), json }
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the size of the event as JSON, in bytes.
    pub(super) fn json_bytes(&self) -> usize {
        self.json.len()
    }

    pub(super) fn matches(&self, filter: &EventFilter) -> bool {
        filter.matches_fields(self.id, self.severity, &self.subject)
    }

    /// Returns the change that writes the record to the state store.
    pub(super) fn change(&self) -> StoreChange {
        (EVENTS, event_key(self.sequence), Some(self.json.to_vec()))
    }

    /// Decodes the event. Returns `None` only after logging a decoding error, which cannot occur:
    /// the JSON was encoded from an event, or was decoded before.
    pub(super) fn event(&self) -> Option<Event> {
        decode(EVENTS, &event_key(self.sequence), &self.json)
            .inspect_err(|error| tracing::error!(%error, "cannot read a saved event"))
            .ok()
    }
}
