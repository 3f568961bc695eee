//! Who notifies whom, and when (virtio 1.3, sections 2.7.7 and 2.7.10).
//!
//! Both sides play the same game: publish an index, then look whether the other
//! wants to hear of it; or say that one wants to hear, then look at the index
//! once more. Between the store and the load each needs a full barrier, or both
//! can miss each other and sleep. The protocol is written against
//! [`NotifyCells`], so that the very code below runs in an exhaustive test of all
//! interleavings on a machine with store buffers.

use suimon_ports::Wakeup;

/// The memory that the two sides share to agree on notifications.
pub(crate) trait NotifyCells {
    /// The driver's available index; what was published before it is visible.
    fn avail_idx(&self) -> u16;
    /// Asks for a kick when the entry with this index is made available.
    fn store_avail_event(&self, index: u16);
    /// Says without EVENT_IDX whether kicks are wanted.
    fn store_kicks_wanted(&self, wanted: bool);
    /// The used index at whose passing the driver wants an interrupt.
    fn used_event(&self) -> u16;
    /// Whether the driver wants interrupts, said without EVENT_IDX.
    fn interrupts_wanted(&self) -> bool;
    /// Stores before become visible before loads after are done.
    fn full_barrier(&self);
}

/// How far behind the next entry a parked event index lies: half the index
/// space, so that it is neither passed soon nor was passed just now.
const PARKED_AHEAD: u16 = 0x8000;
/// A parked index is moved on before the driver comes this near.
const PARKED_NEAR: u16 = 0x4000;

/// Asks for a kick once entry `next` is available. [`Wakeup::Pending`] if it is
/// already; then the request is taken back.
#[inline]
pub(crate) fn arm(cells: &impl NotifyCells, event_idx: bool, next: u16) -> Wakeup {
    if event_idx {
        cells.store_avail_event(next);
    } else {
        cells.store_kicks_wanted(true);
    }
    cells.full_barrier();
    if cells.avail_idx() == next {
        Wakeup::Armed
    } else {
        let _ = park(cells, event_idx, next);
        Wakeup::Pending
    }
}

/// Says that no kick is wanted. Returns the event index that now stands, for
/// [`is_park_stale`].
#[inline]
pub(crate) fn park(cells: &impl NotifyCells, event_idx: bool, next: u16) -> u16 {
    let parked = next.wrapping_add(PARKED_AHEAD);
    if event_idx {
        cells.store_avail_event(parked);
    } else {
        cells.store_kicks_wanted(false);
    }
    parked
}

/// Whether the driver has come near a parked event index.
#[inline]
pub(crate) fn is_park_stale(parked: u16, next: u16) -> bool {
    parked.wrapping_sub(next) < PARKED_NEAR
}

/// Whether the driver is to be interrupted, after the used index was published.
/// `before` is the used index when it was last asked, `None` if never: then it is
/// interrupted, because an earlier device may have died before it did so.
#[inline]
pub(crate) fn wants_interrupt(
    cells: &impl NotifyCells,
    event_idx: bool,
    before: Option<u16>,
    published: u16,
) -> bool {
    cells.full_barrier();
    if !event_idx {
        return cells.interrupts_wanted();
    }
    before.is_none_or(|before| passes(cells.used_event(), published, before))
}

/// `vring_need_event`: whether going from `before` to `published` passes `event`.
#[inline]
fn passes(event: u16, published: u16, before: u16) -> bool {
    published.wrapping_sub(event).wrapping_sub(1) < published.wrapping_sub(before)
}

#[cfg(test)]
#[path = "arming_tests.rs"]
mod tests;
