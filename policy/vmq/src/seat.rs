//! What is known of a processor.

use suimon_quantity::Time;

use crate::Processor;
use crate::load::LastTwo;

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
}

impl Seat {
    pub(crate) fn new(processor: Processor) -> Self {
        Self {
            processor,
            rank: None,
            busy: LastTwo::default(),
            other: LastTwo::default(),
            busy_ns: 0,
            is_disturbed: false,
            packable_since: None,
        }
    }
}
