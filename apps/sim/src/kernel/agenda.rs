//! What is to happen, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use suimon_quantity::Time;

/// An event that is planned. Its order is that of its time and then of its planning, whatever
/// the event is.
#[derive(Debug)]
struct Planned<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<E> Eq for Planned<E> {}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Planned<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The events of a run.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    planned: BinaryHeap<Reverse<Planned<E>>>,
    now: Time,
    number: u64,
    happened: u64,
}

impl<E> Agenda<E> {
    /// Nothing is planned, and it is `now`.
    pub(crate) fn new(now: Time) -> Self {
        Self { planned: BinaryHeap::new(), now, number: 0, happened: 0 }
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
        let at = at.max(self.now);
        self.planned.push(Reverse(Planned { at, number: self.number, event }));
    }

    /// Plans an event `ns` nanoseconds from now.
    pub(crate) fn plan_in(&mut self, ns: u64, event: E) {
        self.plan(Time::from_ns(self.now.as_ns().saturating_add(ns)), event);
    }

    /// The next event that happens before `until`; without one it is `until` afterwards.
    pub(crate) fn next(&mut self, until: Time) -> Option<E> {
        if self.planned.peek().is_none_or(|first| first.0.at >= until) {
            self.now = self.now.max(until);
            return None;
        }
        let Reverse(first) = self.planned.pop()?;
        self.now = first.at;
        self.happened += 1;
        Some(first.event)
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
