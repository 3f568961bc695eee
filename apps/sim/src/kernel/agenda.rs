//! What is to happen, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use suimon_quantity::Time;

/// When an event is planned for, as the how manieth, and where it is kept.
type Planned = (Time, u64, usize);

/// The events of a run. Their order is that of their time and then of their planning, whatever
/// they are. They stay where they are while that is found: what is sorted is small, however many
/// there are.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    planned: BinaryHeap<Reverse<Planned>>,
    events: Vec<Option<E>>,
    /// Places among those where nothing is.
    free: Vec<usize>,
    now: Time,
    number: u64,
    happened: u64,
}

impl<E> Agenda<E> {
    /// Nothing is planned, and it is `now`.
    pub(crate) fn new(now: Time) -> Self {
        let (planned, events, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Self { planned, events, free, now, number: 0, happened: 0 }
    }

    /// What time it is.
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// How many events have happened.
    pub(crate) const fn happened(&self) -> u64 {
        self.happened
    }

    /// Plans an event; what is planned for the past happens now.
    pub(crate) fn plan(&mut self, at: Time, event: E) {
        self.number += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.planned.push(Reverse((at.max(self.now), self.number, place)));
    }

    /// Plans an event `ns` nanoseconds from now.
    pub(crate) fn plan_in(&mut self, ns: u64, event: E) {
        self.plan(Time::from_ns(self.now.as_ns().saturating_add(ns)), event);
    }

    /// The next event that happens before `until`; without one it is `until` afterwards.
    pub(crate) fn next(&mut self, until: Time) -> Option<E> {
        if self.planned.peek().is_none_or(|Reverse((at, ..))| *at >= until) {
            self.now = self.now.max(until);
            return None;
        }
        let Reverse((at, _, place)) = self.planned.pop()?;
        self.free.push(place);
        self.now = at;
        self.happened += 1;
        self.events[place].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_by_time_and_then_as_they_were_planned() {
        let mut agenda = Agenda::new(Time::from_ns(100));
        for (at, event) in [(300, 'd'), (200, 'b'), (50, 'a'), (200, 'c'), (900, 'x')] {
            agenda.plan(Time::from_ns(at), event);
        }
        let mut told = String::new();
        while let Some(event) = agenda.next(Time::from_ns(900)) {
            told.push(event);
            if event == 'b' {
                assert_eq!(agenda.now(), Time::from_ns(200));
                agenda.plan_in(0, 'e');
            }
        }
        assert_eq!(told, "abced", "who is planned at a time that is now comes last");
        assert_eq!((agenda.now(), agenda.happened()), (Time::from_ns(900), 5));
    }
}
