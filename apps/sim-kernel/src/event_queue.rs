//! Queue of future events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use suimon_quantity::Time;

/// Entry of the heap: time of an event, its sequence number, and its index in the event storage.
type Planned = (Time, u64, usize);

/// Events of a run, ordered by time and then by the order in which they were planned. A heap of
/// small entries is sorted, and the events stay at their index in the storage.
#[derive(Debug)]
pub struct EventQueue<E> {
    planned: BinaryHeap<Reverse<Planned>>,
    events: Vec<Option<E>>,
    /// Indexes of the event storage that are unused.
    free: Vec<usize>,
    now: Time,
    number: u64,
    processed: u64,
}

impl<E> EventQueue<E> {
    /// Returns an empty agenda at the time `now`.
    pub fn new(now: Time) -> Self {
        let (planned, events, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Self { planned, events, free, now, number: 0, processed: 0 }
    }

    /// Returns the current virtual time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of processed events.
    pub const fn processed_events(&self) -> u64 {
        self.processed
    }

    /// Plans an event. One planned for the past occurs immediately.
    pub fn schedule(&mut self, time: Time, event: E) {
        self.number += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[slot] = Some(event);
        self.planned.push(Reverse((time.max(self.now), self.number, slot)));
    }

    /// Plans an event `ns` nanoseconds from now.
    pub fn schedule_after_ns(&mut self, ns: u64, event: E) {
        self.schedule(Time::from_ns(self.now.as_ns().saturating_add(ns)), event);
    }

    /// Removes and returns the next event before `until`. If there is none, advances the time to
    /// `until` and returns `None`.
    pub fn next(&mut self, until: Time) -> Option<E> {
        if self.planned.peek().is_none_or(|Reverse((time, ..))| *time >= until) {
            self.now = self.now.max(until);
            return None;
        }
        let Reverse((time, _, slot)) = self.planned.pop()?;
        self.free.push(slot);
        self.now = time;
        self.processed += 1;
        self.events[slot].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_by_time_and_then_as_they_were_planned() {
        let mut agenda = EventQueue::new(Time::from_ns(100));
        for (time, event) in [(300, 'd'), (200, 'b'), (50, 'a'), (200, 'c'), (900, 'x')] {
            agenda.schedule(Time::from_ns(time), event);
        }
        let mut order = String::new();
        while let Some(event) = agenda.next(Time::from_ns(900)) {
            order.push(event);
            if event == 'b' {
                assert_eq!(agenda.now(), Time::from_ns(200));
                agenda.schedule_after_ns(0, 'e');
            }
        }
        assert_eq!(order, "abced", "who is planned at a time that is now comes last");
        assert_eq!((agenda.now(), agenda.processed_events()), (Time::from_ns(900), 5));
    }
}
