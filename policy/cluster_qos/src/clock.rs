//! Whether this node's clock goes as fast as the leader's.
//!
//! A lease is a span on the node's clock, and the leader waits for as long on its own. That
//! is safe as long as the node's clock is not slower by more than [`Terms::drift_ppm`]. Two
//! grants of one leader prove it if it is: the report that the first answers was made before the
//! first was given, and the second was given before it is heard. So between the making and the
//! hearing at least as much has passed as between the two givings. A network that delays
//! can hide that for as long as the delay grows, never make it up.

use core::time::Duration;

use suimon_quantity::Time;

use crate::{Term, Terms};

/// So long after the first of two grants another becomes the first.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Anchor {
    term: Term,
    /// When the report was made that the grant answers, on this node's clock.
    made: Time,
    /// When the grant was given, on the leader's.
    given: Time,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockCheck {
    anchor: Option<Anchor>,
    /// The clock is too slow; it must be right for a while before it is trusted again.
    slow_until: Option<Time>,
}

impl ClockCheck {
    /// A grant was heard. Whether its lease may be used.
    pub(crate) fn hear(
        &mut self,
        terms: &Terms,
        now: Time,
        (term, given): (Term, Time),
        made: Time,
    ) -> bool {
        let next = Anchor { term, made, given };
        let anchor = match self.anchor {
            Some(anchor) if anchor.term == term => anchor,
            _ => *self.anchor.insert(next),
        };
        let elapsed = now.since(anchor.made);
        let is_slow = terms.at_least(given.since(anchor.given)) > elapsed;
        if is_slow {
            self.slow_until = Some(now + WINDOW);
        }
        if is_slow || elapsed > WINDOW {
            self.anchor = Some(next);
        }
        match self.slow_until {
            Some(until) if now < until => false,
            _ => {
                self.slow_until = None;
                true
            }
        }
    }
}
