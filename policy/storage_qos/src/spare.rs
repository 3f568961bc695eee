//! Holding others back where a minimum is behind although its requests never wait here:
//! they are in the device too long, because others' requests are there as well.
//!
//! It is a second, lower bound of the device's depth, for requests that nobody is owed.
//! It falls while a minimum is behind and rises again when none is.

use core::time::Duration;

use suimon_quantity::Time;

/// How often it is judged, at the most; it takes two requests' time to see an effect.
const PERIOD: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub(crate) struct Spare {
    limit: u32,
    is_behind: bool,
    next: Time,
}

impl Spare {
    pub(crate) const fn new() -> Self {
        Self { limit: u32::MAX, is_behind: false, next: Time::ZERO }
    }

    #[inline]
    pub(crate) const fn has_room(&self, in_flight: u32) -> bool {
        in_flight < self.limit
    }

    /// Requests that nobody is owed and that may go.
    pub(crate) const fn room(&self, in_flight: u32) -> u32 {
        self.limit.saturating_sub(in_flight)
    }

    /// Whether nobody is served but who is owed, unless the device has nothing to do.
    pub(crate) const fn is_least(&self) -> bool {
        self.limit <= 1
    }

    /// A minimum is behind.
    pub(crate) const fn handle_behind(&mut self) {
        self.is_behind = true;
    }

    /// After each completion; `in_flight` are left in the device, which may have `depth`.
    #[inline]
    pub(crate) fn handle_complete(
        &mut self,
        now: Time,
        in_flight: u32,
        depth: u32,
        latency_ns: u64,
    ) {
        if (self.is_behind || self.limit != u32::MAX) && now >= self.next {
            self.judge(now, in_flight, depth, latency_ns);
        }
    }

    #[cold]
    fn judge(&mut self, now: Time, in_flight: u32, depth: u32, latency_ns: u64) {
        self.next = now + PERIOD.max(Duration::from_nanos(latency_ns.saturating_mul(2)));
        if self.is_behind {
            let limit = self.limit.min(depth).min(in_flight.saturating_add(1));
            self.limit = limit.saturating_sub((limit / 4).max(1)).max(1);
        } else {
            let limit = self.limit.saturating_add((self.limit / 8).max(1));
            self.limit = if limit >= depth { u32::MAX } else { limit };
        }
        self.is_behind = false;
    }
}
