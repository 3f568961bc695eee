//! Pauses between polls of a queue that probably has more requests.
//!
//! A client with many requests in flight processes completions while it submits requests. Polling
//! its queue after each request costs one poll per request, and client and worker contend for the
//! socket. While the client has completions to process, it does not need later ones yet, and one
//! poll after a pause returns many requests. A worker without other work sleeps during the pause,
//! and the client does not have to wake it.

use std::time::Duration;

use suimon_quantity::Time;

/// Minimum pause: a small multiple of the cost of sleeping and of a wake-up by timer.
const SHORTEST: Duration = Duration::from_micros(32);

/// Maximum pause. When a client changes its behaviour, one request may be delayed by this time.
const LONGEST: Duration = Duration::from_micros(128);

/// Increase of the pause length after a pause that did not delay the client.
const STEP: Duration = Duration::from_micros(8);

/// Minimum number of requests per poll after which a pause is considered. A client with fewer
/// requests in flight has soon processed all completions, so its state is not queried.
const REQUESTS_MIN: usize = 2;

/// Binary logarithm of the maximum number of polls between two attempts to pause.
const PASSES_LOG_MAX: u32 = 10;

/// Adaptation of the pauses between polls of one queue, by their effect on the queue's client.
#[derive(Debug)]
pub(crate) struct PollPause {
    /// Length of the next pause.
    length: Duration,
    /// True if a pause has ended and the queue was not polled since.
    is_over: bool,
    /// Number of consecutive pauses of the shortest length that delayed the client.
    misses: u32,
    /// Number of polls until a pause is attempted again.
    passes: u32,
}

impl Default for PollPause {
    fn default() -> Self {
        Self { length: SHORTEST, is_over: false, misses: 0, passes: 0 }
    }
}

impl PollPause {
    /// Accounts for a poll that returned `requests` requests. `has_read_all`: the queue is empty
    /// now. `has_completions` returns true if the client has unprocessed completions. Returns the
    /// end of the pause that begins now; `None` if the queue is polled without a pause.
    pub(crate) fn handle_requests_found(
        &mut self,
        now: Time,
        requests: usize,
        has_read_all: bool,
        has_completions: impl FnOnce() -> bool,
    ) -> Option<Time> {
        let was_paused = core::mem::take(&mut self.is_over);
        if requests < REQUESTS_MIN && !was_paused {
            return None;
        }
        let has_completions = has_completions();
        if was_paused {
            self.adjust(has_completions);
        }
        if !has_completions || !has_read_all {
            return None;
        }
        if self.passes > 0 {
            self.passes -= 1;
            return None;
        }
        self.is_over = true;
        Some(now + self.length)
    }

    /// Accounts for a poll without requests after a pause. The client has submitted nothing, so the
    /// pause has delayed no request.
    pub(crate) fn handle_empty_poll(&mut self) {
        self.is_over = false;
    }

    /// Adjusts the length of the next pause after a pause has ended: longer if the client still has
    /// unprocessed completions (`has_completions`), otherwise shorter.
    fn adjust(&mut self, has_completions: bool) {
        if has_completions {
            self.misses = 0;
            self.length = (self.length + STEP).min(LONGEST);
        } else if self.length > SHORTEST {
            self.length = (self.length / 2).max(SHORTEST);
        } else {
            self.passes = 1 << self.misses.min(PASSES_LOG_MAX);
            self.misses += 1;
        }
    }
}

#[cfg(test)]
#[path = "poll_pause_tests.rs"]
mod tests;
