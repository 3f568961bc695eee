//! Position of a split ring, read from the used index in shared memory.

use std::sync::Arc;

use crate::cells::RingCells;
use crate::fault::RingFault;
use crate::memory::GuestMemory;
use crate::setup::RingSetup;

/// Returns the used index of the split ring that `setup` describes (virtio 1.3, section 2.7.8). For
/// a device that returns buffers in order, and returns all buffers that it took before it stops, it
/// is also the index of the next available entry to take. After the death of a back-end no
/// front-end has a better value: QEMU reads the used index itself, other front-ends pass the
/// position at which the ring started.
///
/// # Errors
/// The ring's size or areas are invalid.
pub fn used_position(memory: &Arc<GuestMemory>, setup: &RingSetup) -> Result<u16, RingFault> {
    RingCells::locate(memory, setup.queue, setup.size, setup.addresses)
        .map(|cells| cells.used_idx())
}
