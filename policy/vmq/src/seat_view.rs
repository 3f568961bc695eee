//! What processors look like to somebody who asks.

use suimon_quantity::ProcessorId;

use crate::{Load, Vmq};

/// A processor, as placement sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorView {
    /// Which.
    pub processor: ProcessorId,
    /// Whether it may be used.
    pub permitted: bool,
    /// Queues that it works off, or that are on their way to it.
    pub queues: u32,
    /// How busy it is, as if these queues had been there all the time.
    pub load: Load,
    /// How much of that is not these queues'.
    pub other_load: Load,
}

impl Vmq {
    /// All processors, ascending.
    pub fn processors(&self) -> Vec<ProcessorView> {
        let loads = self.loads();
        let views = self.seats.iter().map(|(id, seat)| {
            let here = self.queues.values().filter(|queue| queue.at == *id).count();
            ProcessorView {
                processor: *id,
                permitted: seat.rank.is_some(),
                queues: u32::try_from(here).unwrap_or(u32::MAX),
                load: loads.get(id).map_or(Load::ZERO, |load| load.mean()).min(Load::WHOLE),
                other_load: seat.other.mean(),
            }
        });
        views.collect()
    }
}
