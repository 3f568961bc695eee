//! Who notifies whom in a packed ring, and when (virtio 1.3, section 2.8.10).
//!
//! The game is that of [`crate::arming`]. Each side has a structure that says
//! whether it wants to be notified: always, never, or when a position is passed.
//! It is read and written as one word, so that nobody sees half of it.

use suimon_ports::Wakeup;

use crate::packed_cells::Place;

/// `desc_event_flags`: notify always.
const ENABLE: u16 = 0;
/// Notify never.
const DISABLE: u16 = 1;
/// Notify when the position `desc_event_off_wrap` is passed; with EVENT_IDX only.
const AT_POSITION: u16 = 2;
/// The bits of the flags that have a meaning.
const FLAGS: u16 = 3;

/// The memory that the two sides share to agree on notifications.
pub(crate) trait PackedNotifyCells {
    /// Whether the driver made the descriptor here available; what was written
    /// before that is visible.
    fn is_available(&self, place: Place) -> bool;
    /// Writes the device's structure: the position in the lower half, flags in
    /// the upper.
    fn store_device_event(&self, event: u32);
    /// Reads the driver's structure, in the same form.
    fn driver_event(&self) -> u32;
    /// Stores before become visible before loads after are done.
    fn full_barrier(&self);
}

/// The structure that says so.
fn event(position: u16, flags: u16) -> u32 {
    u32::from(position) | u32::from(flags) << 16
}

/// Asks for a kick once the descriptor at `next` is available.
/// [`Wakeup::Pending`] if it is already; then the request is taken back.
#[inline]
pub(crate) fn arm(cells: &impl PackedNotifyCells, event_idx: bool, next: Place) -> Wakeup {
    let flags = if event_idx { AT_POSITION } else { ENABLE };
    cells.store_device_event(event(next.number(), flags));
    cells.full_barrier();
    if cells.is_available(next) {
        park(cells);
        Wakeup::Pending
    } else {
        Wakeup::Armed
    }
}

/// Says that no kick is wanted.
#[inline]
pub(crate) fn park(cells: &impl PackedNotifyCells) {
    cells.store_device_event(event(0, DISABLE));
}

/// What was returned since the driver was last considered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returned {
    /// The next position to return a chain at.
    pub(crate) used: Place,
    /// Descriptors it moved on by, at most once around.
    pub(crate) descriptors: u16,
    /// It is the first time. Then the driver is interrupted, because an earlier
    /// device may have died before it did so.
    pub(crate) is_first: bool,
}

/// Whether the driver of a ring of `size` is to be interrupted, after chains were
/// returned.
#[inline]
pub(crate) fn wants_interrupt(
    cells: &impl PackedNotifyCells,
    event_idx: bool,
    size: u16,
    returned: Returned,
) -> bool {
    cells.full_barrier();
    let wanted = cells.driver_event();
    let flags = (wanted >> 16) as u16 & FLAGS;
    if flags == DISABLE {
        return false;
    }
    if flags != AT_POSITION || !event_idx || returned.is_first {
        return true;
    }
    let at = Place::from_number(wanted as u16);
    // Positions are compared on a line on which `used` stands at its index and
    // the lap before it lies below zero.
    let lap = if at.wrap == returned.used.wrap { 0 } else { size };
    let behind = returned.used.index.wrapping_sub(at.index.wrapping_sub(lap)).wrapping_sub(1);
    behind < returned.descriptors
}

#[cfg(test)]
#[path = "packed_arming_tests.rs"]
mod tests;
