//! What the control plane keeps of one port.

use std::sync::Arc;

use suimon_quantity::{Direction, PortId};

use crate::published::PortShared;
use crate::tally::QueueTally;
use crate::view::PortCountersView;

/// One port that is published or has queues.
pub(crate) struct PortRecord {
    pub shared: Arc<PortShared>,
    /// What queues carried that are gone.
    departed: Carried,
}

/// Frames and bytes in both directions.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    rx: [u64; 2],
    tx: [u64; 2],
}

impl Carried {
    fn add(&mut self, direction: Direction, queue: &QueueTally) {
        let carried = match direction {
            Direction::Ingress => &mut self.rx,
            Direction::Egress => &mut self.tx,
        };
        carried[0] += queue.frames.value();
        carried[1] += queue.bytes.value();
    }
}

impl PortRecord {
    pub(crate) fn new(port: PortId) -> Self {
        Self { shared: Arc::new(PortShared::new(port)), departed: Carried::default() }
    }

    /// A queue of the port is gone; what it carried still counts.
    pub(crate) fn retire(&mut self, direction: Direction, queue: &QueueTally) {
        self.departed.add(direction, queue);
    }

    /// The port's counters, with those of its present `queues`.
    pub(crate) fn counters<'a>(
        &self,
        queues: impl Iterator<Item = (Direction, &'a QueueTally)>,
    ) -> PortCountersView {
        let mut carried = self.departed;
        queues.for_each(|(direction, queue)| carried.add(direction, queue));
        let tally = &self.shared.tally;
        PortCountersView {
            rx_frames: carried.rx[0],
            rx_bytes: carried.rx[1],
            tx_frames: carried.tx[0],
            tx_bytes: carried.tx[1],
            rx_dropped: tally.dropped_rx(),
            tx_dropped: tally.dropped_tx(),
            flooded: tally.flooded.value(),
            software_segmented: tally.software_segmented.value(),
            software_checksummed: tally.software_checksummed.value(),
            software_coalesced_segments: tally.coalesced_segments.value(),
            software_coalesced_units: tally.coalesced_units.value(),
        }
    }
}
