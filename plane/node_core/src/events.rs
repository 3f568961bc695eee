//! Event log: bounded, durable, with sequence numbers that continue after a restart.
//!
//! Readers have no queues. A reader keeps the last sequence that it has seen and continues from
//! there. Events that were dropped from the log meanwhile are counted and reported as lost.
//!
//! Events that the store refuses are published and kept in memory. A crash loses them, but readers
//! may have seen their sequences, which must not be assigned to other events. Sequences are
//! therefore reserved in the store, in blocks of [`EVENTS_MAX`], before they are published. A
//! process that follows a crash continues behind the reserved block: sequences then have a gap, of
//! at most [`EVENTS_MAX`]. The end of the daemon releases the rest of the block.

use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{Event, EventFilter, Severity};
use suimon_ports::{StateStore, StateStoreError};

use crate::state::{
    EVENTS, ReportedFailure, StoreChange, event_key, load_reserved_events, save_reserved_events,
    scan_all,
};
use crate::{NodeListener, UnixClock};

mod draft;
mod rate_limiter;
mod recent;
mod record;

pub use draft::EventDraft;
use rate_limiter::EventRateLimiter;
pub use recent::EVENTS_MAX;
use recent::RecentEvents;
use record::Record;

/// Section of the log, as returned to a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    /// Number of events that the reader has missed: dropped from the log before this section was
    /// read, or refused by the store before a crash. An upper bound if sequences have a gap.
    pub missed_count: u64,
    /// Events of the section, ascending by sequence.
    pub events: Vec<Event>,
    /// Last sequence examined, including events that the filter excluded. The next read continues
    /// after it.
    pub last_examined: u64,
}

/// Event log in memory, backed by the state store.
pub struct EventLog {
    store: Arc<dyn StateStore>,
    clock: UnixClock,
    listener: Arc<dyn NodeListener>,
    /// Held during writes to the store, so that sequences are written in order.
    writer: Mutex<Writer>,
    /// Not held during writes to the store.
    repeats: Mutex<EventRateLimiter>,
    recent: Mutex<RecentEvents>,
    grown: Condvar,
    /// Sequences that an earlier process may have assigned to events which the store does not
    /// contain; empty after an orderly end.
    gap: RangeInclusive<u64>,
}

struct Writer {
    next: u64,
    /// Highest sequence that is reserved in the store. No higher one is published.
    reserved: u64,
    /// Sequence of the first event that the store did not accept. The next commit contains those of
    /// [`EventLog::recent`] from there on.
    first_unsaved: Option<u64>,
    /// Sequences of events that the store contains and memory does not. The next commit deletes
    /// them.
    dropped: Vec<u64>,
    /// Failure of the last commit that wrote events.
    failure: ReportedFailure,
}

impl Writer {
    /// Returns the end of the block to be reserved before sequence `last` is published; `None` if
    /// at least half a block remains.
    fn reservation(&self, last: u64) -> Option<u64> {
        let is_short = self.reserved.saturating_sub(last) < EVENTS_MAX as u64 / 2;
        is_short.then(|| last.saturating_add(EVENTS_MAX as u64))
    }
}

impl EventLog {
    /// Reads the log from the store.
    ///
    /// # Errors
    /// The store cannot be read or contains an invalid event.
    pub fn open(
        store: Arc<dyn StateStore>,
        clock: UnixClock,
        listener: Arc<dyn NodeListener>,
    ) -> Result<Self, StateStoreError> {
        let (mut recent, mut dropped) = (RecentEvents::default(), Vec::new());
        scan_all(store.as_ref(), EVENTS, &mut |key, value| {
            dropped.extend(recent.extend([Record::read(key, value)?]));
            Ok(())
        })?;
        let last = recent.records().back().map_or(0, Record::sequence);
        let reserved = load_reserved_events(store.as_ref())?.max(last);
        let (next, failure) = (reserved.saturating_add(1), ReportedFailure::default());
        let mut writer = Writer { next, reserved, first_unsaved: None, dropped, failure };
        if let Some(reserved) = writer.reservation(reserved) {
            store.commit(&[save_reserved_events(reserved)])?;
            writer.reserved = reserved;
        }
        Ok(Self {
            store,
            clock,
            listener,
            writer: Mutex::new(writer),
            repeats: Mutex::default(),
            recent: Mutex::new(recent),
            grown: Condvar::new(),
            gap: last.saturating_add(1)..=reserved,
        })
    }

    /// Releases the sequences that are reserved and not used. Called at the end of the daemon,
    /// after its last event. Has no effect while the store refuses events.
    pub fn release_unused_sequences(&self) {
        let mut writer = lock(&self.writer);
        let last = writer.next.saturating_sub(1);
        if writer.first_unsaved.is_some() || writer.reserved == last {
            return;
        }
        match self.store.commit(&[save_reserved_events(last)]) {
            Ok(()) => writer.reserved = last,
            Err(error) => tracing::debug!(%error, "the sequences of events will have a gap"),
        }
    }

    /// Appends events and applies `changes` in one durable commit.
    ///
    /// # Errors
    /// The store rejected the commit: neither the events nor the changes were written.
    pub fn commit(
        &self,
        drafts: Vec<EventDraft>,
        changes: Vec<StoreChange>,
    ) -> Result<(), StateStoreError> {
        // Earlier occurrences precede the change in the log.
        self.append_withheld();
        let mut writer = lock(&self.writer);
        let events = self.number(writer.next, drafts);
        let records = events.iter().map(Record::new).collect::<Result<Vec<_>, _>>()?;
        self.save(&mut writer, &records, changes)?;
        self.publish(&mut writer, &events, records);
        Ok(())
    }

    /// Appends events of past occurrences. Events that the store does not accept stay in memory and
    /// are written with the next commit.
    pub fn append(&self, drafts: Vec<EventDraft>) {
        let now = Instant::now();
        let mut repeats = lock(&self.repeats);
        let mut reported = repeats.end_windows(now);
        for draft in drafts {
            let mut draft = draft.into_shortened();
            reported.extend(match draft.rate_limit.take() {
                Some(repeat) => {
                    draft.time_unix_ms = Some((self.clock)());
                    repeats.admit(draft, repeat, now)
                }
                None => Some(draft),
            });
        }
        drop(repeats);
        self.append_now(reported);
    }

    /// Appends the merged events that are held back. Later events are held back again.
    fn append_withheld(&self) {
        let withheld = lock(&self.repeats).take_withheld();
        self.append_now(withheld);
    }

    /// Appends the merged events that are held back and disables merging. Called at the end of the
    /// daemon.
    pub fn flush_withheld(&self) {
        let withheld = lock(&self.repeats).disable();
        self.append_now(withheld);
    }

    fn append_now(&self, drafts: Vec<EventDraft>) {
        if drafts.is_empty() {
            return;
        }
        let mut writer = lock(&self.writer);
        let mut events = self.number(writer.next, drafts);
        let mut records: Vec<_> = match events.iter().map(Record::new).collect() {
            Ok(records) => records,
            Err(error) => return tracing::error!(%error, "cannot save events"),
        };
        if let Err(error) = self.save(&mut writer, &records, Vec::new()) {
            if writer.failure.record_failure(&error) {
                tracing::error!(%error, "events are kept only in memory until they can be saved");
            }
            let reserved = events.partition_point(|event| event.sequence <= writer.reserved);
            let excess = events.split_off(reserved);
            if !excess.is_empty() {
                tracing::error!(
                    events = excess.len(),
                    "too many unsaved events; these are only in this log"
                );
                excess.iter().for_each(trace);
            }
            records.truncate(reserved);
            writer.first_unsaved = writer.first_unsaved.or(records.first().map(Record::sequence));
            writer.dropped.extend(lock(&self.recent).surplus(&records));
        }
        self.publish(&mut writer, &events, records);
    }

    /// Tries to write events that are in memory only. Those that the store refuses stay there.
    pub fn write_unsaved(&self) {
        let mut writer = lock(&self.writer);
        if writer.first_unsaved.is_some() {
            // The state of the store is reported by others.
            let _ = self.save(&mut writer, &[], Vec::new());
        }
    }

    fn number(&self, next: u64, drafts: Vec<EventDraft>) -> Vec<Event> {
        let now_unix_ms = (self.clock)();
        drafts
            .into_iter()
            .map(EventDraft::into_shortened)
            .zip(next..)
            .map(|(draft, sequence)| Event {
                sequence,
                time_unix_ms: draft.time_unix_ms.unwrap_or(now_unix_ms),
                kind_number: draft.kind.id(),
                severity: draft.kind.severity(),
                subject: draft.subject,
                text: draft.text,
                fields: draft.fields,
            })
            .collect()
    }

    fn save(
        &self,
        writer: &mut Writer,
        records: &[Record],
        mut changes: Vec<StoreChange>,
    ) -> Result<(), StateStoreError> {
        let recent = lock(&self.recent);
        if let Some(first) = writer.first_unsaved {
            changes.extend(recent.after(first.saturating_sub(1)).map(Record::change));
        }
        changes.extend(records.iter().map(Record::change));
        let dropped = writer.dropped.iter().copied().chain(recent.surplus(records));
        changes.extend(dropped.map(|sequence| (EVENTS, event_key(sequence), None)));
        drop(recent);
        let last = records.last().map_or(writer.next.saturating_sub(1), Record::sequence);
        let reservation = writer.reservation(last);
        changes.extend(reservation.map(save_reserved_events));
        self.store.commit(&changes)?;
        writer.first_unsaved = None;
        writer.dropped.clear();
        writer.failure.record_success();
        writer.reserved = reservation.unwrap_or(writer.reserved);
        Ok(())
    }

    /// Adds records to the log in memory and wakes readers.
    fn publish(&self, writer: &mut Writer, events: &[Event], records: Vec<Record>) {
        let Some(last) = events.last().map(|event| event.sequence) else { return };
        writer.next = last.saturating_add(1);
        events.iter().for_each(trace);
        let mut recent = lock(&self.recent);
        recent.extend(records);
        drop(recent);
        self.grown.notify_all();
        self.listener.handle_events(last);
    }

    /// Returns up to `limit` events after sequence `after` that match `filter`.
    pub fn page(&self, after: u64, limit: usize, filter: &EventFilter) -> EventPage {
        let records = records(&lock(&self.recent), after, limit, filter);
        self.section(records, after)
    }

    fn section(&self, mut records: Records, after: u64) -> EventPage {
        // The reader has seen an event that the store does not contain, and possibly not the last.
        if self.gap.contains(&after) {
            records.lost = records.lost.max(self.gap.end() - after);
        }
        records.page()
    }

    /// Returns the last `limit` events that match `filter`.
    pub fn tail(&self, limit: usize, filter: &EventFilter) -> EventPage {
        let recent = lock(&self.recent);
        let mut records: Vec<Record> = recent
            .records()
            .iter()
            .rev()
            .filter(|record| record.matches(filter))
            .take(limit)
            .cloned()
            .collect();
        records.reverse();
        let last_sequence = recent.records().back().map_or(0, Record::sequence);
        drop(recent);
        Records { lost: 0, records, seen: last_sequence }.page()
    }

    /// Like [`EventLog::page`], but blocks up to `timeout` until a matching event exists.
    pub fn wait(
        &self,
        after: u64,
        limit: usize,
        filter: &EventFilter,
        timeout: Duration,
    ) -> EventPage {
        let recent = lock(&self.recent);
        let (recent, _) = self
            .grown
            .wait_timeout_while(recent, timeout, |recent| {
                !recent.after(after).any(|record| record.matches(filter))
            })
            .unwrap_or_else(PoisonError::into_inner);
        let records = records(&recent, after, limit, filter);
        drop(recent);
        self.section(records, after)
    }
}

/// Section of the log with encoded events. Decoding happens after the log is unlocked.
struct Records {
    lost: u64,
    records: Vec<Record>,
    seen: u64,
}

impl Records {
    fn page(self) -> EventPage {
        let events = self.records.iter().filter_map(Record::event).collect();
        EventPage { missed_count: self.lost, events, last_examined: self.seen }
    }
}

fn records(recent: &RecentEvents, after: u64, limit: usize, filter: &EventFilter) -> Records {
    let lost = recent
        .records()
        .front()
        .map_or(0, |first| first.sequence().saturating_sub(after.saturating_add(1)));
    let mut page = Records { lost, records: Vec::new(), seen: after };
    for record in recent.after(after) {
        if page.records.len() >= limit {
            break;
        }
        page.seen = record.sequence();
        if record.matches(filter) {
            page.records.push(record.clone());
        }
    }
    page
}

fn trace(event: &Event) {
    let Event { kind_number: id, subject, text, .. } = event;
    match event.severity {
        Severity::Info => tracing::info!(id, %subject, "{text}"),
        Severity::Warning => tracing::warn!(id, %subject, "{text}"),
        Severity::Error => tracing::error!(id, %subject, "{text}"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
