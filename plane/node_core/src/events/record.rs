//! Events as kept in memory by the log.

use std::ops::Range;
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
    /// Length of the subject in bytes.
    subject_len: usize,
    /// Subject and JSON, possibly with those of other records ([`Record::pack`]).
    buffer: Arc<[u8]>,
    /// Part of `buffer` that belongs to this record: the subject, followed by the JSON.
    range: Range<usize>,
}

impl Record {
    pub(super) fn new(event: &Event) -> Result<Self, StateStoreError> {
        Ok(Self::with_json(event, &encode(EVENTS, event)?))
    }

    /// Decodes an entry of the table `events`: `key` is the sequence in 20 digits, `value` the
    /// event as JSON.
    ///
    /// # Errors
    /// The value is not a valid event.
    pub(super) fn read(key: &str, value: &[u8]) -> Result<Self, StateStoreError> {
        Ok(Self::with_json(&decode(EVENTS, key, value)?, value))
    }

    fn with_json(event: &Event, json: &[u8]) -> Self {
        let Event { sequence, kind_number: id, severity, ref subject, .. } = *event;
        let buffer: Arc<[u8]> = [subject.as_bytes(), json].concat().into();
        let range = 0..buffer.len();
        Self { sequence, id, severity, subject_len: subject.len(), buffer, range }
    }

    /// Moves the contents of several records into one allocation, which is freed with the last of
    /// them.
    pub(super) fn pack(mut records: Vec<&mut Self>) {
        let mut contents = Vec::with_capacity(records.iter().map(|record| record.bytes()).sum());
        for record in &mut records {
            let start = contents.len();
            contents.extend_from_slice(record.contents());
            record.range = start..contents.len();
        }
        let buffer: Arc<[u8]> = contents.into();
        for record in records {
            record.buffer = Arc::clone(&buffer);
        }
    }

    fn contents(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }

    fn subject(&self) -> &str {
        let subject = self.contents().get(..self.subject_len).unwrap_or_default();
        std::str::from_utf8(subject).unwrap_or_default()
    }

    fn json(&self) -> &[u8] {
        self.contents().get(self.subject_len..).unwrap_or_default()
    }

    /// Returns the size of the contents in bytes: subject and JSON.
    pub(super) fn bytes(&self) -> usize {
        self.range.len()
    }

    /// Returns true if the contents of both records are in one allocation.
    #[cfg(test)]
    pub(super) fn is_packed_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the size of the event as JSON, in bytes.
    pub(super) fn json_bytes(&self) -> usize {
        self.json().len()
    }

    pub(super) fn matches(&self, filter: &EventFilter) -> bool {
        filter.matches_fields(self.id, self.severity, self.subject())
    }

    /// Returns the change that writes the record to the state store.
    pub(super) fn change(&self) -> StoreChange {
        (EVENTS, event_key(self.sequence), Some(self.json().to_vec()))
    }

    /// Decodes the event. Returns `None` only after logging a decoding error, which cannot occur:
    /// the JSON was encoded from an event, or was decoded before.
    pub(super) fn event(&self) -> Option<Event> {
        decode(EVENTS, &event_key(self.sequence), self.json())
            .inspect_err(|error| tracing::error!(%error, "cannot read a saved event"))
            .ok()
    }
}
