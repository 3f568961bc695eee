//! Offloads of a port's egress queues, published by their owners for other workers.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use suimon_frame::Offloads;

/// Offloads that a port's egress queues accept, as last reported by an owner of one of them.
#[derive(Debug, Default)]
pub(crate) struct AcceptedOffloads(AtomicU8);

impl AcceptedOffloads {
    /// Sets the offloads. Called by the owner of an egress queue of the port.
    pub(crate) fn set(&self, offloads: Offloads) {
        let bits = offloads.to_bits();
        // The cache line is shared: it is only written on a change.
        if self.0.load(Relaxed) != bits {
            self.0.store(bits, Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Offloads {
        Offloads::from_bits(self.0.load(Relaxed))
    }
}
