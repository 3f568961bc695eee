//! Whether a queue is looked at for a moment before it is waited for.
//!
//! A client that asks one thing at a time asks the next as soon as it has its answer. A
//! processor that sleeps meanwhile has to be woken, and the client pays for that: on another
//! CPU it costs both of them more than the request does. To look for nothing costs as much
//! as the look lasts, and where the client needs this very CPU it costs him, too. So looks
//! that were in vain are made ever more seldom.

use std::time::Duration;

use suimon_quantity::Time;

/// How long a queue is looked at after its answers: about what a wake-up costs both sides.
const LOOK: Duration = Duration::from_micros(50);

/// A queue is looked at at least once in two to the power of this.
const PASSES_LOG_MAX: u32 = 10;

/// What a queue's looks have brought.
#[derive(Debug, Default)]
pub(crate) struct Looking {
    /// When the present look ends; `None` if there is none.
    until: Option<Time>,
    /// Looks in a row that brought nothing.
    misses: u32,
    /// How often it is waited for before it is looked at again.
    passes: u32,
}

impl Looking {
    /// The queue has brought something.
    pub(crate) fn handle_found(&mut self) {
        if self.until.take().is_some() {
            self.misses = 0;
        }
    }

    /// The queue has brought nothing, and all it asked was answered. Whether it is looked
    /// at again.
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

    /// The queue is waited for.
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
