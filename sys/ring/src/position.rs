//! Where a split ring stands by what its driver was told.

use std::sync::Arc;

use crate::cells::RingCells;
use crate::fault::RingFault;
use crate::memory::GuestMemory;
use crate::setup::RingSetup;

/// The used index of the split ring that `setup` describes (virtio 1.3, section
/// 2.7.8). For a device that
/// returns buffers in order, and all that it took before it stops, it is also the
/// next available entry to take. After a back-end died no front-end knows better:
/// QEMU reads it here itself, others name the place where the ring began.
///
/// # Errors
/// The ring's size or areas are no good.
pub fn used_position(memory: &Arc<GuestMemory>, setup: &RingSetup) -> Result<u16, RingFault> {
    RingCells::locate(memory, setup.queue, setup.size, setup.addresses)
        .map(|cells| cells.used_idx())
}
