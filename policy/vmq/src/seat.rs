//! What is known of a processor.

use suimon_quantity::Time;

use crate::Processor;
use crate::load::LastTwo;
use crate::marks::COOL;

/// A processor of the host, whether it may be used or not.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub processor: Processor,
    /// Its place in the order of use; `None` if it may not be used.
    pub rank: Option<usize>,
    /// How busy it is, with whatever.
    pub busy: LastTwo,
    /// How busy it is with anything but these queues.
    pub other: LastTwo,
    /// Of the measurement that is being added up, in ns.
    pub busy_ns: u64,
    /// A queue came or went in this measurement, so that what the others cost cannot be
    /// told from it.
    pub is_disturbed: bool,
    /// Since when it could have been emptied all the time.
    pub packable_since: Option<Time>,
    /// When it was last hot.
    pub hot_at: Time,
    /// It is hot, and had not been for long before.
    pub is_newly_hot: bool,
    /// A queue came here to get more, and got less: here it is not shared alike.
    pub disappoints: bool,
}

impl Seat {
    pub(crate) fn new(processor: Processor, now: Time) -> Self {
        Self {
            processor,
            rank: None,
            busy: LastTwo::default(),
            other: LastTwo::default(),
            busy_ns: 0,
            is_disturbed: false,
            packable_since: None,
            hot_at: now,
            is_newly_hot: false,
            disappoints: false,
        }
    }

    /// Whether it is hot was measured.
    pub(crate) fn note_heat(&mut self, is_hot: bool, now: Time) {
        if !is_hot {
            self.is_newly_hot = false;
            return;
        }
        self.is_newly_hot |= now.since(self.hot_at) >= COOL;
        self.hot_at = now;
    }
}
