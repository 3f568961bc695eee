//! Joins repeated events, so that whoever can cause events at will fills neither the log nor the
//! view of whoever reads it.
//!
//! Of the events of one kind and subject, those beyond [`BURST`] within [`WINDOW`] are held. At the
//! end of the window the last of them is told, with the number of those that it stands for. The
//! events of one kind thus end with the one that is true, at most one window late.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Draft;

/// Events of one kind and subject that are told as they come, within [`WINDOW`].
pub(crate) const BURST: u32 = 10;
pub(crate) const WINDOW: Duration = Duration::from_secs(10);
/// Kinds and subjects that are watched at once; events of further ones are told as they come.
const KEYS_MAX: usize = 10_000;

/// What is known of an event that is joined with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// How many events like it it stands for.
    pub(crate) count: u64,
    /// The field whose value is to be the same, beside kind and subject.
    pub(crate) field: Option<&'static str>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Repeats(BTreeMap<Key, Window>);

/// Kind, subject, and the value of the field that tells further.
type Key = (u32, String, Option<String>);

#[derive(Debug)]
struct Window {
    ends: Instant,
    told: u32,
    /// The last event that was not told, and how many were not.
    held: Option<(Draft, u64)>,
}

impl Repeats {
    /// Takes an event; returns it if it is to be told now.
    pub(crate) fn take(&mut self, draft: Draft, repeat: Repeat, now: Instant) -> Option<Draft> {
        let Repeat { count, field } = repeat;
        let value = field.and_then(|field| draft.fields.get(field)).cloned();
        let key = (draft.kind.id(), draft.subject.clone(), value);
        if !self.0.contains_key(&key) && self.0.len() >= KEYS_MAX {
            return Some(joined(draft, count));
        }
        let new = Window { ends: now + WINDOW, told: 0, held: None };
        let window = self.0.entry(key).or_insert(new);
        if window.told < BURST && window.held.is_none() {
            window.told += 1;
            return Some(joined(draft, count));
        }
        let before = window.held.take().map_or(0, |(_, before)| before);
        window.held = Some((draft, before.saturating_add(count)));
        None
    }

    /// The events that are to be told because their window has ended; all that are held if `now`
    /// is `None`.
    pub(crate) fn end_windows(&mut self, now: Option<Instant>) -> Vec<Draft> {
        let mut drafts = Vec::new();
        self.0.retain(|_, window| {
            if now.is_some_and(|now| now < window.ends) {
                return true;
            }
            let Some((draft, count)) = window.held.take() else { return false };
            drafts.push(joined(draft, count));
            // Whoever goes on is told of once in each further window.
            (window.told, window.ends) = (BURST, window.ends + WINDOW);
            true
        });
        drafts
    }
}

fn joined(mut draft: Draft, count: u64) -> Draft {
    if count < 2 {
        return draft;
    }
    draft.text = format!("{} This is the last of {count} such events.", draft.text);
    draft.with("events", count)
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
