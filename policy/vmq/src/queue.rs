//! What is known of a queue.

use suimon_quantity::{ProcessorId, Time};

use crate::Why;
use crate::load::LastTwo;
use crate::marks::MEASURED_MIN;

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
    /// How often it was measured where it is.
    pub measured: u32,
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
            measured: MEASURED_MIN,
        }
    }

    /// Whether its load where it is is known.
    pub(crate) const fn is_known(&self) -> bool {
        self.measured >= MEASURED_MIN
    }

    /// Whether it may be moved because of load.
    pub(crate) fn may_move(&self, now: Time) -> bool {
        self.coming_from.is_none() && self.retry_at <= now
    }
}
