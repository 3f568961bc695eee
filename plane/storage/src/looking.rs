//! Polling of a queue for a short time before waiting for its descriptor.
//!
//! A client with one request at a time submits the next one as soon as it has the completion. If
//! the worker sleeps meanwhile, waking it costs both sides more than the request, if the client
//! runs on another CPU. A poll without result costs its duration, and if the client needs the same
//! CPU, it delays the client as well. Polling is therefore tried less often after each failure.

use std::time::Duration;

use suimon_quantity::Time;

/// Duration of polling after the completions: about the cost of a wake-up on both sides.
const LOOK: Duration = Duration::from_micros(50);

/// Binary logarithm of the maximum number of waits between two attempts to poll.
const PASSES_LOG_MAX: u32 = 10;

/// History of the attempts to poll one queue.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// End of the current poll; `None` if there is none.
    until: Option<Time>,
    /// Consecutive polls without requests.
    misses: u32,
    /// Number of waits until polling is tried again.
    passes: u32,
}

impl BusyPoll {
    /// Records that the queue had requests.
    pub(crate) fn handle_found(&mut self) {
        if self.until.take().is_some() {
            self.misses = 0;
        }
    }

    /// Called when the queue is empty and all its requests have completed. Returns true if the
    /// queue is polled again.
    pub(crate) fn is_worth(&mut self, now: Time) -> bool {
        match self.until {
            Some(until) if now < until => return true,
            Some(_) => self.handle_end(),
            None if self.passes > 0 => self.passes -= 1,
            None => {
                self.until = Some(now + LOOK);
                return true;
            }
        }
        false
    }

    /// Records that polling ended without a request, and that the worker waits for the queue's
    /// descriptor.
    pub(crate) fn handle_end(&mut self) {
        if self.until.take().is_some() {
            self.passes = 1 << self.misses.min(PASSES_LOG_MAX);
            self.misses += 1;
        }
    }
}

#[cfg(test)]
#[path = "looking_tests.rs"]
mod tests;
