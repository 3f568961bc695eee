//! Split virtqueue whose chains are returned in any order (virtio 1.3, section 2.7.8).

use crate::fault::RingFault;
use crate::setup::RingSetup;
use crate::split::SplitQueue;
use crate::virtqueue::{Access, AnyOrder, Head, PREFETCH_DISTANCE, Taken};

/// Heads taken and not yet returned, for rings that return them in any order. A driver may not make
/// a head available again before it was returned, which bounds the number of held heads by the
/// ring's size.
pub(super) struct HeldHeads {
    is_held: Vec<bool>,
    /// Heads completed and not yet visible to the driver.
    completed: Vec<u16>,
    /// Number of heads not completed.
    open: usize,
}

impl HeldHeads {
    /// Allocates the state for a ring's heads, if the ring returns them in any order.
    pub(super) fn new(setup: &RingSetup, access: Access) -> Result<Self, RingFault> {
        let size = if access == Access::ReadThenWrite { setup.size as usize } else { 0 };
        if size > 0 && setup.features.in_order() {
            return Err(RingFault::InOrder { queue: setup.queue });
        }
        let completed = Vec::with_capacity(size);
        Ok(Self { is_held: vec![false; size], completed, open: 0 })
    }

    /// True if every head was completed.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Releases completed heads after they were returned: the driver may make them available again.
    #[inline]
    pub(super) fn release_returned(&mut self) {
        for head in self.completed.drain(..) {
            if let Some(is_held) = self.is_held.get_mut(usize::from(head)) {
                *is_held = false;
            }
        }
    }

    /// Marks a head as held. Returns `false` if it is already held.
    fn hold(&mut self, head: u16) -> bool {
        match self.is_held.get_mut(usize::from(head)) {
            Some(is_held) if !*is_held => {
                *is_held = true;
                self.open += 1;
                true
            }
            _ => false,
        }
    }

    fn complete(&mut self, head: u16) {
        self.completed.push(head);
        self.open = self.open.saturating_sub(1);
    }
}

impl<const RECORDS: bool> AnyOrder for SplitQueue<RECORDS> {
    #[inline(always)]
    fn take(&mut self, head: Head) -> Result<Taken, RingFault> {
        if !self.held.hold(head.index) {
            return Err(RingFault::Outstanding { queue: self.side.queue, head: head.index });
        }
        if RECORDS {
            if let Some(inflight) = &mut self.inflight {
                inflight.note_taken(head.index);
            }
        }
        self.next_avail = self.next_avail.wrapping_add(1);
        self.ahead.taken += 1;
        self.prefetch_buffer(self.ahead.taken + PREFETCH_DISTANCE - 1);
        Ok(Taken { index: head.index, descriptors: 0, entries: None })
    }

    #[inline(always)]
    fn give_back(&mut self, taken: Taken, written: u32) {
        self.cells.write_used(self.next_used, taken.index, written);
        if RECORDS {
            if let Some(inflight) = &mut self.inflight {
                inflight.note_completed(taken.index);
            }
        }
        self.held.complete(taken.index);
        self.next_used = self.next_used.wrapping_add(1);
    }

    fn is_logging(&self) -> bool {
        RECORDS && self.log.is_some()
    }

    fn has_record(&self) -> bool {
        RECORDS && self.inflight.is_some()
    }
}
