//! Detection of node clocks that are slower than the leader's.
//!
//! A lease is a time span on the node's clock, and the leader waits for the same span on its own.
//! This is safe while the node's clock is slower by at most [`Parameters::drift_ppm`]. Two grants
//! of one leader prove a larger drift: the report that the first one answers was made before the
//! first grant, and the second grant was given before it is received. So the time between making
//! the report and receiving the second grant is at least the time between the grants. Network delay
//! can hide a slow clock while the delay grows, but never indicates one falsely.

use core::time::Duration;

use suimon_quantity::Time;

use crate::{Parameters, Term};

/// Time after which the reference grant is replaced by a later one, and for which a detected slow
/// clock is distrusted.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Anchor {
    term: Term,
    /// Time on this node's clock at which the report answered by the grant was made.
    reported_at: Time,
    /// Time on the leader's clock at which the grant was given.
    granted_at: Time,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockCheck {
    anchor: Option<Anchor>,
    /// Time until which no lease may be used, because the clock of this node was slower than
    /// permitted.
    slow_until: Option<Time>,
}

impl ClockCheck {
    /// Processes a grant received at `now`: its term, the time on the leader's clock at which it
    /// was given, and the time on this node's clock at which the answered report was made. Returns
    /// true if the lease may be used, false while the clock of this node is distrusted.
    pub(crate) fn check_grant(
        &mut self,
        terms: &Parameters,
        now: Time,
        (term, granted_at): (Term, Time),
        reported_at: Time,
    ) -> bool {
        let next = Anchor { term, reported_at, granted_at };
        let anchor = match self.anchor {
            Some(anchor) if anchor.term == term => anchor,
            _ => *self.anchor.insert(next),
        };
        let elapsed = now.since(anchor.reported_at);
        let is_slow = terms.min_elapsed(granted_at.since(anchor.granted_at)) > elapsed;
        if is_slow {
            self.slow_until = Some(now + WINDOW);
        }
        if is_slow || elapsed > WINDOW {
            self.anchor = Some(next);
        }
        match self.slow_until {
            Some(deadline) if now < deadline => false,
            _ => {
                self.slow_until = None;
                true
            }
        }
    }
}
