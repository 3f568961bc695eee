//! Notification suppression of split virtqueues (virtio 1.3, sections 2.7.7 and 2.7.10).
//!
//! Device and driver use the same protocol. The publisher stores an index, then reads whether the
//! peer requests a notification. The peer requests a notification, then reads the index once more.
//! Each side needs a full barrier between its store and its load; otherwise both can miss the
//! other's store and sleep for ever. The protocol is written against [`NotificationFields`], so
//! that the tests run this code through all interleavings on a machine with store buffers.

use suimon_ports::ArmResult;

/// Shared memory fields by which device and driver suppress and request notifications.
pub(crate) trait NotificationFields {
    /// Returns the driver's available index. Entries published before the index are visible.
    fn avail_idx(&self) -> u16;
    /// Requests a kick when the entry with this index is made available (EVENT_IDX).
    fn store_avail_event(&self, index: u16);
    /// Requests or suppresses kicks without EVENT_IDX, by `VRING_USED_F_NO_NOTIFY`.
    fn set_kicks_enabled(&self, enabled: bool);
    /// Returns the used index at whose passing the driver requests an interrupt (EVENT_IDX).
    fn used_event(&self) -> u16;
    /// Returns true if the driver requests interrupts, without EVENT_IDX.
    fn interrupts_enabled(&self) -> bool;
    /// Executes a full memory barrier: earlier stores are visible before later loads are executed.
    fn full_barrier(&self);
}

/// Distance from the next entry to an event index that suppresses kicks (parked): half the index
/// space, so that the driver neither passes it soon nor has just passed it.
const PARKED_DISTANCE: u16 = 0x8000;
/// Distance from the next entry to a parked event index below which the index is moved.
const REPARK_DISTANCE: u16 = 0x4000;

/// Requests a kick when entry `next` becomes available. Returns [`ArmResult::Pending`] and
/// withdraws the request if the entry is available already.
#[inline]
pub(crate) fn arm(cells: &impl NotificationFields, event_idx: bool, next: u16) -> ArmResult {
    if event_idx {
        cells.store_avail_event(next);
    } else {
        cells.set_kicks_enabled(true);
    }
    cells.full_barrier();
    if cells.avail_idx() == next {
        ArmResult::Armed
    } else {
        let _ = park(cells, event_idx, next);
        ArmResult::Pending
    }
}

/// Suppresses kicks. Returns the event index that was stored, which [`requires_repark`] checks
/// later.
#[inline]
pub(crate) fn park(cells: &impl NotificationFields, event_idx: bool, next: u16) -> u16 {
    let parked = next.wrapping_add(PARKED_DISTANCE);
    if event_idx {
        cells.store_avail_event(parked);
    } else {
        cells.set_kicks_enabled(false);
    }
    parked
}

/// Returns true if the driver will soon pass the parked event index `parked`, so that it must be
/// moved.
#[inline]
pub(crate) fn requires_repark(parked: u16, next: u16) -> bool {
    parked.wrapping_sub(next) < REPARK_DISTANCE
}

/// Returns true if the driver must be interrupted, after the used index `published` was published.
/// `before` is the used index at the previous decision; `None` if there was none. With EVENT_IDX
/// the result is true then, because an earlier device may have died before it interrupted the
/// driver.
#[inline]
pub(crate) fn requires_interrupt(
    cells: &impl NotificationFields,
    event_idx: bool,
    before: Option<u16>,
    published: u16,
) -> bool {
    cells.full_barrier();
    if !event_idx {
        return cells.interrupts_enabled();
    }
    before.is_none_or(|before| passes(cells.used_event(), published, before))
}

/// Returns true if an index that moves from `before` to `published` passes `event`
/// (`vring_need_event`).
#[inline]
fn passes(event: u16, published: u16, before: u16) -> bool {
    published.wrapping_sub(event).wrapping_sub(1) < published.wrapping_sub(before)
}

#[cfg(test)]
#[path = "notification_tests.rs"]
mod tests;
