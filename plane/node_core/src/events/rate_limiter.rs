//! Rate limit of repeated events, so that a party that can cause events at will fills neither the
//! log nor its readers' views.
//!
//! Events of one group and subject beyond [`BURST`] within [`WINDOW`] are withheld. At the end of
//! the window the last one is emitted, with the number of events that it represents and its own
//! time. Kinds that report opposite states (link up, link down) form one group, so that the last
//! emitted event is the current state, delayed by at most one window.
//!
//! At most [`KEYS_MAX`] subjects have a window of their own. Events of further subjects share one
//! window per group: the log stays bounded, but only the last of their states is emitted. The same
//! applies if the windows need more than [`WINDOW_BYTES_MAX`]. Beyond that size, withheld events
//! are kept without fields and with a brief text.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::draft::{EventDraft, RateLimitGroup, RateLimitKey};

/// Events of one group and subject that are emitted immediately within [`WINDOW`].
pub(crate) const BURST: u32 = 10;
pub(crate) const WINDOW: Duration = Duration::from_secs(10);
/// Maximum number of groups and subjects with a window of their own. Events of further subjects are
/// merged per group.
const KEYS_MAX: usize = 10_000;
/// Size of all windows, with withheld events, beyond which further subjects are merged per group,
/// and further withheld events are abbreviated, in bytes.
const WINDOW_BYTES_MAX: usize = 16 << 20;

/// Rate limiter of the log.
#[derive(Debug, Default)]
pub(crate) struct EventRateLimiter {
    windows: BTreeMap<Key, Window>,
    /// Size of all keys and withheld events.
    bytes: usize,
    /// Number of events taken, by which withheld events are emitted in their order.
    taken: u64,
    /// True once withholding is disabled.
    has_ended: bool,
}

/// Key of a window: group, subject, and value of the field that separates events
/// ([`RateLimitKey::field`]). The subject is `None` in the windows shared by all subjects beyond
/// [`KEYS_MAX`].
type Key = (RateLimitGroup, Option<String>, Option<String>);

#[derive(Debug)]
struct Window {
    ends: Instant,
    emitted: u32,
    withheld: Option<WithheldEvent>,
}

/// Last withheld event of a window, merged with those that the window withheld before it.
#[derive(Debug)]
struct WithheldEvent {
    draft: EventDraft,
    /// Number of occurrences that the event represents, including earlier withheld ones.
    count: u64,
    /// Value of [`EventRateLimiter::taken`] when the event was withheld, by which withheld events
    /// are sorted.
    sequence: u64,
    /// True if the withheld events have different subjects.
    is_mixed: bool,
}

impl EventRateLimiter {
    /// Counts an event. Returns it if it is to be emitted now. Otherwise withholds it, replacing
    /// the window's withheld event, and returns `None`.
    pub(crate) fn admit(
        &mut self,
        draft: EventDraft,
        repeat: RateLimitKey,
        now: Instant,
    ) -> Option<EventDraft> {
        let RateLimitKey { count, group, field } = repeat;
        let value = field.and_then(|field| draft.fields.get(field)).cloned();
        if self.has_ended {
            return Some(merged(draft, count, false));
        }
        let mut key = (group, Some(draft.subject.clone()), value);
        let is_full = self.windows.len() >= KEYS_MAX
            || self.bytes.saturating_add(key_bytes(&key)) > WINDOW_BYTES_MAX;
        if is_full && !self.windows.contains_key(&key) {
            key = (group, None, None);
        }
        let is_mixed = key.1.is_none();
        self.taken += 1;
        let bytes_of_key = key_bytes(&key);
        let window = self.windows.entry(key).or_insert_with(|| {
            self.bytes += bytes_of_key;
            Window { ends: now + WINDOW, emitted: 0, withheld: None }
        });
        if window.emitted < BURST && window.withheld.is_none() {
            window.emitted += 1;
            return Some(merged(draft, count, false));
        }
        let before = window.withheld.take();
        self.bytes -= before.as_ref().map_or(0, |event| event.draft.bytes());
        let has_room = self.bytes.saturating_add(draft.bytes()) <= WINDOW_BYTES_MAX;
        let draft = if has_room { draft } else { draft.abbreviated() };
        self.bytes += draft.bytes();
        let count = before.map_or(0, |event| event.count).saturating_add(count);
        window.withheld = Some(WithheldEvent { draft, count, sequence: self.taken, is_mixed });
        None
    }

    /// Ends the windows that are due and returns their withheld events.
    pub(crate) fn end_windows(&mut self, now: Instant) -> Vec<EventDraft> {
        let (mut withheld, mut bytes) = (Vec::new(), 0);
        self.windows.retain(|key, window| {
            if now < window.ends {
                return true;
            }
            let Some(last) = window.withheld.take() else {
                bytes += key_bytes(key);
                return false;
            };
            bytes += last.draft.bytes();
            withheld.push(last);
            // While events continue, one is emitted per window.
            (window.emitted, window.ends) = (BURST, window.ends + WINDOW);
            true
        });
        self.bytes -= bytes;
        in_order(withheld)
    }

    /// Returns all withheld events. Their windows continue.
    pub(crate) fn take_withheld(&mut self) -> Vec<EventDraft> {
        let windows = self.windows.values_mut();
        let withheld: Vec<_> = windows.filter_map(|window| window.withheld.take()).collect();
        self.bytes -= withheld.iter().map(|event| event.draft.bytes()).sum::<usize>();
        in_order(withheld)
    }

    /// Returns all withheld events and disables withholding.
    pub(crate) fn disable(&mut self) -> Vec<EventDraft> {
        self.has_ended = true;
        self.take_withheld()
    }
}

/// Returns the size of subject and value of a key, in bytes.
fn key_bytes((_, subject, value): &Key) -> usize {
    [subject, value].into_iter().flatten().map(String::len).sum()
}

fn in_order(mut withheld: Vec<WithheldEvent>) -> Vec<EventDraft> {
    withheld.sort_by_key(|event| event.sequence);
    withheld.into_iter().map(|event| merged(event.draft, event.count, event.is_mixed)).collect()
}

fn merged(mut draft: EventDraft, count: u64, is_mixed: bool) -> EventDraft {
    if count < 2 {
        return draft;
    }
    let suffix = if is_mixed { " of several objects" } else { "" };
    draft.text = format!("{} This is the last of {count} such events{suffix}.", draft.text);
    draft.with("events", count)
}

#[cfg(test)]
#[path = "rate_limiter_tests.rs"]
mod tests;
