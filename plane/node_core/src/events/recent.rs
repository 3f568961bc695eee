//! Events in memory, bounded in number and in bytes.

use std::collections::VecDeque;

use super::record::Record;

/// Maximum number of events in the log. Older events are dropped.
pub const EVENTS_MAX: usize = 10_000;

/// Maximum size of the events in the log as JSON, in bytes. Older events are dropped. It bounds the
/// memory if texts are long: [`EVENTS_MAX`] usual events need about 2 MiB.
pub(super) const EVENT_BYTES_MAX: usize = 32 << 20;

/// Latest events, ascending by sequence.
#[derive(Debug, Default)]
pub(super) struct RecentEvents {
    records: VecDeque<Record>,
    /// Size of all records as JSON.
    bytes: usize,
}

impl RecentEvents {
    pub(super) fn records(&self) -> &VecDeque<Record> {
        &self.records
    }

    /// Adds records, and drops the oldest ones beyond the bounds. Returns the sequences of the
    /// dropped records.
    pub(super) fn extend(&mut self, records: impl IntoIterator<Item = Record>) -> Vec<u64> {
        let mut dropped = Vec::new();
        for record in records {
            self.bytes += record.json_bytes();
            self.records.push_back(record);
            while self.records.len() > EVENTS_MAX || self.bytes > EVENT_BYTES_MAX {
                let Some(first) = self.records.pop_front() else { break };
                self.bytes -= first.json_bytes();
                dropped.push(first.sequence());
            }
        }
        dropped
    }

    /// Returns the sequences of the records that [`RecentEvents::extend`] would drop.
    pub(super) fn surplus(&self, records: &[Record]) -> Vec<u64> {
        let mut count = self.records.len() + records.len();
        let mut bytes = self.bytes + records.iter().map(Record::json_bytes).sum::<usize>();
        let mut dropped = Vec::new();
        for record in self.records.iter().chain(records) {
            if count <= EVENTS_MAX && bytes <= EVENT_BYTES_MAX {
                break;
            }
            (count, bytes) = (count - 1, bytes - record.json_bytes());
            dropped.push(record.sequence());
        }
        dropped
    }
}
