//! Joins repeated events, so that whoever can cause events at will fills neither the log nor the
//! view of whoever reads it.
//!
//! Of the events of one group and subject, those beyond [`BURST`] within [`WINDOW`] are held. At the
//! end of the window the last of them is told, with the number of those that it stands for and the
//! time at which it happened. Kinds that tell opposite states (a link is up, it is down) are one
//! group, so that the last one told is the state that holds, at most one window late.
//!
//! At most [`KEYS_MAX`] subjects have a window of their own. Events of further subjects share one
//! window per group: the log stays bounded, but of their states only the last one is told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_contract::EventKind;

use super::Draft;

/// Events of one group and subject that are told as they come, within [`WINDOW`].
pub(crate) const BURST: u32 = 10;
pub(crate) const WINDOW: Duration = Duration::from_secs(10);
/// Groups and subjects with a window of their own at once. Those of further subjects are merged per
/// group.
const KEYS_MAX: usize = 10_000;

/// What events are joined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Those of the kind with this id.
    Kind(u32),
    /// Those that tell a state that has this name.
    State(&'static str),
}

/// How an event is joined with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// How many events like it it stands for.
    pub(crate) count: u64,
    pub(crate) group: Group,
    /// The field whose value is to be the same, beside group and subject.
    pub(crate) field: Option<&'static str>,
}

impl Repeat {
    /// How one event of a kind is joined.
    pub(crate) fn of(kind: EventKind) -> Self {
        let (group, field) = match kind {
            EventKind::NicConnected
            | EventKind::NicDisconnected
            | EventKind::NicDriverReady
            | EventKind::NicFailed
            | EventKind::NicRecovered
            | EventKind::UplinkLinkUp
            | EventKind::UplinkLinkDown
            | EventKind::UplinkFailed
            | EventKind::UplinkRecovered
            | EventKind::DiskConnected
            | EventKind::DiskDisconnected
            | EventKind::DiskDriverReady => (Group::State("link"), None),
            EventKind::TeamUp | EventKind::TeamDown => (Group::State("team"), None),
            EventKind::TeamMemberFailed | EventKind::TeamMemberUsable => {
                (Group::State("member"), Some("member"))
            }
            EventKind::LacpOutOfSync | EventKind::LacpInSync => {
                (Group::State("sync"), Some("member"))
            }
            EventKind::LacpLooped | EventKind::LacpLoopEnded => {
                (Group::State("loop"), Some("member"))
            }
            EventKind::DiskFull
            | EventKind::DiskHasSpace
            | EventKind::StoreNearlyFull
            | EventKind::StoreHasSpace
            | EventKind::VmPausedForSpace
            | EventKind::VmContinuedWithSpace => (Group::State("space"), None),
            EventKind::LacpPartnerChanged => (Group::Kind(kind.id()), Some("member")),
            _ => (Group::Kind(kind.id()), None),
        };
        Self { count: 1, group, field }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    windows: BTreeMap<Key, Window>,
    /// Counts events, so that those that are held are told in their order.
    seen: u64,
    /// Nothing is held any more.
    has_ended: bool,
}

/// Group, subject, and the value of the field that tells further. The subject is `None` for the
/// events of all subjects beyond [`KEYS_MAX`].
type Key = (Group, Option<String>, Option<String>);

#[derive(Debug)]
struct Window {
    ends: Instant,
    told: u32,
    held: Option<Held>,
}

/// The last event that was not told.
#[derive(Debug)]
struct Held {
    draft: Draft,
    /// How many events it stands for.
    count: u64,
    /// Its place among all events.
    place: u64,
    /// It stands for events of several subjects.
    is_mixed: bool,
}

impl Repeats {
    /// Takes an event; returns it if it is to be told now.
    pub(crate) fn take(&mut self, draft: Draft, repeat: Repeat, now: Instant) -> Option<Draft> {
        let Repeat { count, group, field } = repeat;
        let value = field.and_then(|field| draft.fields.get(field)).cloned();
        if self.has_ended {
            return Some(joined(draft, count, false));
        }
        let mut key = (group, Some(draft.subject.clone()), value);
        if !self.windows.contains_key(&key) && self.windows.len() >= KEYS_MAX {
            key = (group, None, None);
        }
        let is_mixed = key.1.is_none();
        self.seen += 1;
        let new = Window { ends: now + WINDOW, told: 0, held: None };
        let window = self.windows.entry(key).or_insert(new);
        if window.told < BURST && window.held.is_none() {
            window.told += 1;
            return Some(joined(draft, count, false));
        }
        let before = window.held.take().map_or(0, |held| held.count);
        let count = before.saturating_add(count);
        window.held = Some(Held { draft, count, place: self.seen, is_mixed });
        None
    }

    /// The events that are to be told because their window has ended.
    pub(crate) fn end_windows(&mut self, now: Instant) -> Vec<Draft> {
        let mut held = Vec::new();
        self.windows.retain(|_, window| {
            if now < window.ends {
                return true;
            }
            let Some(last) = window.held.take() else { return false };
            held.push(last);
            // Whoever goes on is told of once in each further window.
            (window.told, window.ends) = (BURST, window.ends + WINDOW);
            true
        });
        in_order(held)
    }

    /// All events that are held.
    pub(crate) fn take_held(&mut self) -> Vec<Draft> {
        in_order(self.windows.values_mut().filter_map(|window| window.held.take()).collect())
    }

    /// The same, and none is held from now on.
    pub(crate) fn end(&mut self) -> Vec<Draft> {
        self.has_ended = true;
        self.take_held()
    }
}

fn in_order(mut held: Vec<Held>) -> Vec<Draft> {
    held.sort_by_key(|held| held.place);
    held.into_iter().map(|held| joined(held.draft, held.count, held.is_mixed)).collect()
}

fn joined(mut draft: Draft, count: u64, is_mixed: bool) -> Draft {
    if count < 2 {
        return draft;
    }
    let of = if is_mixed { " of several objects" } else { "" };
    draft.text = format!("{} This is the last of {count} such events{of}.", draft.text);
    draft.with("events", count)
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
