//! Events in memory, bounded in number and in bytes.

use std::collections::VecDeque;

use super::record::Record;

/// Maximum number of events in the log. Older events are dropped.
pub const EVENTS_MAX: usize = 10_000;

/// Maximum size of the events in the log as JSON, in bytes. Older events are dropped. It bounds the
/// memory if texts are long: [`EVENTS_MAX`] usual events need about 2 MiB.
pub(super) const EVENT_BYTES_MAX: usize = 32 << 20;

/// Maximum size of the contents of records that are packed into one allocation, in bytes: with the
/// two counters of the allocation, 32 KiB.
///
/// Allocations of single events would be spread over the pages of the allocator, and each of them
/// would keep a page in use as long as the log keeps the event.
const PACK_BYTES: usize = (32 << 10) - 2 * size_of::<usize>();

/// Latest events, ascending by sequence.
#[derive(Debug, Default)]
pub(super) struct RecentEvents {
    records: VecDeque<Record>,
    /// Size of all records as JSON.
    bytes: usize,
    /// Number of the last records, which are not packed yet.
    unpacked: usize,
    /// Size of their contents, in bytes.
    unpacked_bytes: usize,
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
            if self.unpacked_bytes + record.bytes() > PACK_BYTES {
                self.pack();
            }
            self.bytes += record.json_bytes();
            self.unpacked += 1;
            self.unpacked_bytes += record.bytes();
            self.records.push_back(record);
            while self.records.len() > EVENTS_MAX || self.bytes > EVENT_BYTES_MAX {
                let Some(first) = self.records.pop_front() else { break };
                self.bytes -= first.json_bytes();
                if self.unpacked > self.records.len() {
                    self.unpacked -= 1;
                    self.unpacked_bytes -= first.bytes();
                }
                dropped.push(first.sequence());
            }
        }
        dropped
    }

    fn pack(&mut self) {
        if self.unpacked > 1 {
            let first = self.records.len() - self.unpacked;
            Record::pack(self.records.range_mut(first..).collect());
        }
        (self.unpacked, self.unpacked_bytes) = (0, 0);
    }

    /// Returns the records after sequence `after`.
    pub(super) fn after(&self, after: u64) -> impl Iterator<Item = &Record> {
        self.records.range(self.records.partition_point(|record| record.sequence() <= after)..)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use suimon_contract::{Event, Severity};

    use super::*;

    fn record(sequence: u64, text_bytes: usize) -> Record {
        let event = Event {
            sequence,
            time_unix_ms: 0,
            kind_number: 1001,
            severity: Severity::Info,
            subject: format!("nic/{sequence}"),
            text: "x".repeat(text_bytes),
            fields: BTreeMap::new(),
        };
        Record::new(&event).unwrap()
    }

    fn allocations(recent: &RecentEvents) -> usize {
        let records = recent.records();
        let borders = records.iter().zip(records.iter().skip(1));
        1 + borders.filter(|(record, next)| !record.is_packed_with(next)).count()
    }

    #[test]
    fn usual_events_share_allocations_and_keep_their_contents() {
        let mut recent = RecentEvents::default();
        recent.extend((1..=3 * EVENTS_MAX as u64).map(|sequence| record(sequence, 100)));
        let allocations = allocations(&recent);
        // About 150 events in each allocation; up to 150 are not packed yet.
        assert!(allocations < 300, "{allocations} allocations");
        for (record, sequence) in recent.records().iter().zip(2 * EVENTS_MAX as u64 + 1..) {
            let event = record.event().unwrap();
            assert_eq!((event.sequence, event.subject), (sequence, format!("nic/{sequence}")));
        }
    }

    #[test]
    fn a_dropped_event_keeps_at_most_one_allocation_in_memory() {
        let mut recent = RecentEvents::default();
        for sequence in 1..=600 {
            let text_bytes = if sequence % 3 == 0 { 200 << 10 } else { 100 };
            recent.extend([record(sequence, text_bytes)]);
            let is_shared = |nth: usize| {
                let (record, next) = (&recent.records()[nth], &recent.records()[nth + 1]);
                record.is_packed_with(next) && record.bytes().max(next.bytes()) > PACK_BYTES
            };
            assert!(!(0..recent.records().len() - 1).any(is_shared));
        }
        assert!(recent.bytes <= EVENT_BYTES_MAX && recent.records().len() < 600);
    }
}
