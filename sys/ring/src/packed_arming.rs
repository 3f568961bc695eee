//! Notification suppression of packed virtqueues (virtio 1.3, section 2.8.10).
//!
//! The protocol is that of [`crate::notification`]. Each side has an event suppression structure
//! that requests notification always, never, or when a position is passed. The structure is read
//! and written as one word, so that no partial value is read.

use suimon_ports::ArmResult;

use crate::ring_position::RingPosition;

/// Value of `desc_event_flags`: notify always.
const ENABLE: u16 = 0;
/// Value of `desc_event_flags`: never notify.
const DISABLE: u16 = 1;
/// Value of `desc_event_flags`: notify when the position `desc_event_off_wrap` is passed; only with
/// EVENT_IDX.
const AT_POSITION: u16 = 2;
/// Mask of the defined bits of the flags.
const FLAGS: u16 = 3;

/// Shared memory fields by which device and driver suppress and request notifications.
pub(crate) trait PackedNotificationFields {
    /// Returns true if the driver has made the descriptor at `position` available. The driver's
    /// earlier writes are then visible.
    fn is_available(&self, position: RingPosition) -> bool;
    /// Writes the device's event suppression structure: position in the lower half, flags in the
    /// upper half.
    fn store_device_event(&self, event: u32);
    /// Reads the driver's event suppression structure, in the same format.
    fn driver_event(&self) -> u32;
    /// Executes a full memory barrier: earlier stores are visible before later loads are executed.
    fn full_barrier(&self);
}

/// Encodes an event suppression structure.
fn event(position: u16, flags: u16) -> u32 {
    u32::from(position) | u32::from(flags) << 16
}

/// Requests a kick when the descriptor at `next` becomes available. Returns [`ArmResult::Pending`]
/// and withdraws the request if the descriptor is available already.
#[inline]
pub(crate) fn arm(
    cells: &impl PackedNotificationFields,
    event_idx: bool,
    next: RingPosition,
) -> ArmResult {
    let flags = if event_idx { AT_POSITION } else { ENABLE };
    cells.store_device_event(event(next.number(), flags));
    cells.full_barrier();
    if cells.is_available(next) {
        park(cells);
        ArmResult::Pending
    } else {
        ArmResult::Armed
    }
}

/// Suppresses kicks.
#[inline]
pub(crate) fn park(cells: &impl PackedNotificationFields) {
    cells.store_device_event(event(0, DISABLE));
}

/// Advance of the used position since the previous interrupt decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedAdvance {
    /// Used position: that at which the next chain will be returned.
    pub(crate) used_position: RingPosition,
    /// Number of descriptors by which the position advanced; at most the ring's size.
    pub(crate) descriptor_count: u16,
    /// True for the first batch of a ring. The driver is then interrupted, because an earlier
    /// device may have died before it interrupted the driver.
    pub(crate) is_first: bool,
}

/// Returns true if the driver of a ring of `size` entries must be interrupted, after chains were
/// returned.
#[inline]
pub(crate) fn requires_interrupt(
    cells: &impl PackedNotificationFields,
    event_idx: bool,
    size: u16,
    returned: UsedAdvance,
) -> bool {
    cells.full_barrier();
    let event = cells.driver_event();
    let flags = (event >> 16) as u16 & FLAGS;
    if flags == DISABLE {
        return false;
    }
    if flags != AT_POSITION || !event_idx || returned.is_first {
        return true;
    }
    let position = RingPosition::from_number(event as u16);
    // Positions are compared on a line: `used` is at its index, and the preceding lap is below
    // zero.
    let lap = if position.wrap_counter == returned.used_position.wrap_counter { 0 } else { size };
    let distance =
        returned.used_position.index.wrapping_sub(position.index.wrapping_sub(lap)).wrapping_sub(1);
    distance < returned.descriptor_count
}

#[cfg(test)]
#[path = "packed_arming_tests.rs"]
mod tests;
