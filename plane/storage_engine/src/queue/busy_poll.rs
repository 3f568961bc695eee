//! Polling of an empty queue for a short time before waiting for its descriptor.
//!
//! A client with one request at a time submits the next request as soon as it receives the
//! completion. If the worker sleeps meanwhile and the client runs on another CPU, the wake-up costs
//! both sides more than the request. A poll without requests costs its duration, and also delays a
//! client that needs the same CPU. Polling is therefore attempted less often after each poll
//! without requests.

use std::time::Duration;

use suimon_quantity::Time;

/// Duration of polling after the completions: about the cost of a wake-up for both sides.
const BUSY_POLL: Duration = Duration::from_micros(50);

/// Binary logarithm of the maximum number of waits between two attempts to poll.
const PASSES_LOG_MAX: u32 = 10;

/// State of one queue that decides whether it is polled for a short time before the worker waits
/// for its descriptor.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// End of the current polling period; `None` if the queue is not in one.
    until: Option<Time>,
    /// Number of consecutive polling periods without requests.
    misses: u32,
    /// Number of waits until polling is attempted again.
    passes: u32,
}

impl BusyPoll {
    /// Records that the queue had requests.
    pub(crate) fn handle_requests_found(&mut self) {
        if self.until.take().is_some() {
            self.misses = 0;
        }
    }

    /// Returns true if the queue is to be polled further, and false if the worker is to wait for
    /// its descriptor. Called when the queue is empty and all its requests have completed.
    pub(crate) fn should_poll(&mut self, now: Time) -> bool {
        match self.until {
            Some(until) if now < until => return true,
            Some(_) => self.handle_poll_period_end(),
            None if self.passes > 0 => self.passes -= 1,
            None => {
                self.until = Some(now + BUSY_POLL);
                return true;
            }
        }
        false
    }

    /// Records that a polling period ended without a request and that the worker now waits for the
    /// queue's descriptor.
    pub(crate) fn handle_poll_period_end(&mut self) {
        if self.until.take().is_some() {
            self.passes = 1 << self.misses.min(PASSES_LOG_MAX);
            self.misses += 1;
        }
    }
}

#[cfg(test)]
#[path = "busy_poll_tests.rs"]
mod tests;
