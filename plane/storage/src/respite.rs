//! When a queue is left alone for a moment although it is known to have more.
//!
//! A client with many requests under way has answers to take while it asks for more. To look
//! at its queue as soon as it has asked one thing costs a look for each, and client and
//! processor get in each other's way at the socket. As long as the client has answers at
//! hand it does not miss the next ones, and many requests come with one look. A processor
//! with nothing else to do sleeps meanwhile, and the client wakes nobody.

use std::time::Duration;

use suimon_quantity::Time;

/// The shortest respite: some times what it costs to sleep and be woken by a timer.
const SHORTEST: Duration = Duration::from_micros(32);

/// The longest one. So late may a request be taken, once, of a client that changes its ways.
const LONGEST: Duration = Duration::from_micros(128);

/// By so much it becomes longer when the client did not miss anything.
const STEP: Duration = Duration::from_micros(8);

/// Turns that bring fewer requests are of clients with few under way, which soon have
/// taken all their answers. They are not asked whether they have.
const REQUESTS_MIN: usize = 2;

/// A respite is tried at least once in two to the power of this.
const PASSES_LOG_MAX: u32 = 10;

/// What a queue's respites have cost its client.
#[derive(Debug)]
pub(crate) struct Respite {
    /// How long the next one is.
    length: Duration,
    /// Whether one has ended, and nothing was seen of the client since.
    is_over: bool,
    /// The shortest ones in a row that were too long.
    misses: u32,
    /// Turns that may begin one before one is tried again.
    passes: u32,
}

impl Default for Respite {
    fn default() -> Self {
        Self { length: SHORTEST, is_over: false, misses: 0, passes: 0 }
    }
}

impl Respite {
    /// A look has brought so many requests, and `is_all` that was there.
    /// `has_answers` tells whether the client still has answers to take. Until when the
    /// queue is left alone; `None` if it is looked at on.
    pub(crate) fn handle_found(
        &mut self,
        now: Time,
        requests: usize,
        is_all: bool,
        has_answers: impl FnOnce() -> bool,
    ) -> Option<Time> {
        let was_left_alone = core::mem::take(&mut self.is_over);
        if requests < REQUESTS_MIN && !was_left_alone {
            return None;
        }
        let has_answers = has_answers();
        if was_left_alone {
            self.judge(has_answers);
        }
        if !has_answers || !is_all {
            return None;
        }
        if self.passes > 0 {
            self.passes -= 1;
            return None;
        }
        self.is_over = true;
        Some(now + self.length)
    }

    /// A look has brought nothing: the client is not waiting for anything.
    pub(crate) fn handle_nothing(&mut self) {
        self.is_over = false;
    }

    /// What became of the last one.
    fn judge(&mut self, has_answers: bool) {
        if has_answers {
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
#[path = "respite_tests.rs"]
mod tests;
