//! Control-plane state of one port.

use std::ops::{Add, Sub};
use std::sync::Arc;

use suimon_quantity::{Direction, PortId};

use crate::counters::QueueCounters;
use crate::published::SharedPortState;
use crate::view::PortCountersView;

/// Control-plane state of a port that is published or has queues.
pub(crate) struct PortRecord {
    pub shared: Arc<SharedPortState>,
    /// Frames and bytes of queues that were detached since the port was created.
    pub detached_traffic: TrafficCounters,
}

/// Frames and bytes in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrafficCounters {
    rx: [u64; 2],
    tx: [u64; 2],
}

impl TrafficCounters {
    /// Returns the frames and bytes of one queue, as received or transmitted according to
    /// `direction`.
    pub(crate) fn from_queue(direction: Direction, queue: &QueueCounters) -> Self {
        let counts = [queue.frames.value(), queue.bytes.value()];
        match direction {
            Direction::Ingress => Self { rx: counts, tx: [0; 2] },
            Direction::Egress => Self { rx: [0; 2], tx: counts },
        }
    }

    fn with(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        let [rx, tx] = [(self.rx, other.rx), (self.tx, other.tx)]
            .map(|(a, b)| [join(a[0], b[0]), join(a[1], b[1])]);
        Self { rx, tx }
    }
}

impl Add for TrafficCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::wrapping_add)
    }
}

impl Sub for TrafficCounters {
    type Output = Self;

    /// Subtracts each counter; zero where the counter of `other` is larger, because counters have
    /// restarted meanwhile.
    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

impl PortRecord {
    pub(crate) fn new(port: PortId) -> Self {
        Self {
            shared: Arc::new(SharedPortState::new(port)),
            detached_traffic: TrafficCounters::default(),
        }
    }

    /// Adds the frames and bytes of a queue that was detached.
    pub(crate) fn add_detached_traffic(&mut self, direction: Direction, queue: &QueueCounters) {
        self.detached_traffic =
            self.detached_traffic + TrafficCounters::from_queue(direction, queue);
    }

    /// Returns the port's counters, with `counters` as its frames and bytes.
    pub(crate) fn counters_with_traffic(&self, counters: TrafficCounters) -> PortCountersView {
        let tally = &self.shared.counters;
        PortCountersView {
            rx_frames: counters.rx[0],
            rx_bytes: counters.rx[1],
            tx_frames: counters.tx[0],
            tx_bytes: counters.tx[1],
            rx_dropped: tally.rx_dropped(),
            tx_dropped: tally.tx_dropped(),
            flooded: tally.flooded.value(),
            software_segmented: tally.software_segmented.value(),
            software_checksummed: tally.software_checksummed.value(),
            software_coalesced_segments: tally.coalesced_segments.value(),
            software_coalesced_frames: tally.coalesced_frames.value(),
        }
    }
}
