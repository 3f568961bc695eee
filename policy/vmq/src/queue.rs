//! What is known of a queue.

use core::time::Duration;

use suimon_quantity::{ProcessorId, Time};

use crate::Why;
use crate::load::LastTwo;
use crate::marks::{FORGET, REST_MAX, REST_MIN};

/// A queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Where it is, or is on its way to.
    pub at: ProcessorId,
    /// Where it comes from, while it is on its way.
    pub coming_from: Option<ProcessorId>,
    /// Why it is there.
    pub why: Why,
    /// When it was decided that it be there.
    pub since: Time,
    /// Its share of a processor.
    pub load: LastTwo,
    /// Of the measurement that is being added up, in ns.
    pub busy_ns: u64,
    /// It may be shed once for which nothing is taken from the allowance: its way here
    /// was paid for twice, or it is where it was put first.
    pub is_way_back_paid: bool,
    /// A move was not carried out; it is not tried again before this.
    pub retry_at: Time,
    /// It was shed, and is not to be moved again before this.
    pub rest_until: Time,
    rest: Duration,
}

impl Queue {
    pub(crate) fn new(at: ProcessorId, why: Why, now: Time) -> Self {
        Self {
            at,
            coming_from: None,
            why,
            since: now,
            load: LastTwo::default(),
            busy_ns: 0,
            is_way_back_paid: true,
            retry_at: Time::ZERO,
            rest_until: Time::ZERO,
            rest: Duration::ZERO,
        }
    }

    /// It was shed: it stays where it comes to, longer each time.
    pub(crate) fn tire(&mut self, now: Time) {
        let is_forgotten = now.since(self.rest_until) > FORGET;
        let longer = if is_forgotten { REST_MIN } else { self.rest * 4 };
        self.rest = longer.clamp(REST_MIN, REST_MAX);
        self.rest_until = now + self.rest;
    }

    /// It was put where it is for another reason than that it had to be shed, and may be
    /// shed at once.
    pub(crate) fn forget(&mut self) {
        self.is_way_back_paid = true;
        self.rest_until = Time::ZERO;
        self.rest = Duration::ZERO;
    }

    /// Whether it may be moved because of load.
    pub(crate) fn may_move(&self, now: Time) -> bool {
        self.coming_from.is_none() && self.retry_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_grows_when_a_queue_is_shed_soon_again_and_only_then() {
        let mut now = Time::from_ns(1_000_000_000_000);
        let mut queue = Queue::new(ProcessorId(0), Why::Home, now);
        for rest_s in [1, 4, 16, 64, 256, 1024, 1800, 1800] {
            queue.tire(now);
            assert_eq!(queue.rest_until.since(now).as_secs(), rest_s);
            now = queue.rest_until + FORGET;
        }
        queue.tire(now + REST_MIN);
        assert_eq!(queue.rest_until.since(now), REST_MIN * 2);
    }
}
