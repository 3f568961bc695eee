//! Rate limit of repeated events, so that a party that can cause events at will fills neither the
//! log nor its readers' views.
//!
//! Events of one group and subject beyond [`BURST`] within [`WINDOW`] are withheld. At the end of
//! the window the last one is emitted, with the number of events that it represents and its own
//! time. Kinds that report opposite states (link up, link down) form one group, so that the last
//! emitted event is the current state, delayed by at most one window.
//!
//! At most [`KEYS_MAX`] subjects have a window of their own. Events of further subjects share one
//! window per group: the log stays bounded, but only the last of their states is emitted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::draft::{EventDraft, Group, Repeat};

/// Events of one group and subject that are emitted immediately within [`WINDOW`].
pub(crate) const BURST: u32 = 10;
pub(crate) const WINDOW: Duration = Duration::from_secs(10);
/// Maximum number of groups and subjects with a window of their own. Events of further subjects are
/// merged per group.
const KEYS_MAX: usize = 10_000;

/// Rate limiter of the log.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    windows: BTreeMap<Key, Window>,
    /// Number of events taken, by which withheld events are emitted in their order.
    taken: u64,
    /// True once withholding is disabled.
    has_ended: bool,
}

/// Key of a window: group, subject, and value of the field that separates events
/// ([`Repeat::field`]). The subject is `None` in the windows shared by all subjects beyond
/// [`KEYS_MAX`].
type Key = (Group, Option<String>, Option<String>);

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
    /// Value of [`Repeats::taken`] when the event was withheld, by which withheld events are
    /// sorted.
    sequence: u64,
    /// True if the withheld events have different subjects.
    is_mixed: bool,
}

impl Repeats {
    /// Counts an event. Returns it if it is to be emitted now. Otherwise withholds it, replacing
    /// the window's withheld event, and returns `None`.
    pub(crate) fn take(
        &mut self,
        draft: EventDraft,
        repeat: Repeat,
        now: Instant,
    ) -> Option<EventDraft> {
        let Repeat { count, group, field } = repeat;
        let value = field.and_then(|field| draft.fields.get(field)).cloned();
        if self.has_ended {
            return Some(merged(draft, count, false));
        }
        let mut key = (group, Some(draft.subject.clone()), value);
        if !self.windows.contains_key(&key) && self.windows.len() >= KEYS_MAX {
            key = (group, None, None);
        }
        let is_mixed = key.1.is_none();
        self.taken += 1;
        let new = Window { ends: now + WINDOW, emitted: 0, withheld: None };
        let window = self.windows.entry(key).or_insert(new);
        if window.emitted < BURST && window.withheld.is_none() {
            window.emitted += 1;
            return Some(merged(draft, count, false));
        }
        let before = window.withheld.take().map_or(0, |event| event.count);
        let count = before.saturating_add(count);
        window.withheld = Some(WithheldEvent { draft, count, sequence: self.taken, is_mixed });
        None
    }

    /// Ends the windows that are due and returns their withheld events.
    pub(crate) fn end_windows(&mut self, now: Instant) -> Vec<EventDraft> {
        let mut withheld = Vec::new();
        self.windows.retain(|_, window| {
            if now < window.ends {
                return true;
            }
            let Some(last) = window.withheld.take() else { return false };
            withheld.push(last);
            // While events continue, one is emitted per window.
            (window.emitted, window.ends) = (BURST, window.ends + WINDOW);
            true
        });
        in_order(withheld)
    }

    /// Returns all withheld events. Their windows continue.
    pub(crate) fn take_withheld(&mut self) -> Vec<EventDraft> {
        in_order(self.windows.values_mut().filter_map(|window| window.withheld.take()).collect())
    }

    /// Returns all withheld events and disables withholding.
    pub(crate) fn end(&mut self) -> Vec<EventDraft> {
        self.has_ended = true;
        self.take_withheld()
    }
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
#[path = "repeats_tests.rs"]
mod tests;
