//! Heads of chains that were taken and may be returned in any order.

use crate::fault::RingFault;
use crate::setup::RingSetup;
use crate::virtqueue::Access;

/// Heads that were taken and not returned, for rings that return them in any order. A driver may
/// not make a head available again before it was returned, which bounds the number of heads by the
/// ring's size.
pub(super) struct OutstandingHeads {
    is_outstanding: Vec<bool>,
    /// Heads of chains that are completed, whose used entries the driver cannot see yet.
    completed: Vec<u16>,
    /// Number of heads whose chains are not completed.
    open: usize,
}

impl OutstandingHeads {
    /// Allocates the state for a ring's heads. It is empty, without memory, unless the ring returns
    /// chains in any order.
    pub(super) fn new(setup: &RingSetup, access: Access) -> Result<Self, RingFault> {
        let size = if access == Access::ReadThenWrite { setup.size as usize } else { 0 };
        if size > 0 && setup.features.in_order() {
            return Err(RingFault::InOrder { queue: setup.queue });
        }
        let completed = Vec::with_capacity(size);
        Ok(Self { is_outstanding: vec![false; size], completed, open: 0 })
    }

    /// Returns true if the chains of all heads are completed.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Removes completed heads, because their used entries were published: the driver may make them
    /// available again.
    #[inline]
    pub(super) fn release_returned(&mut self) {
        for head in self.completed.drain(..) {
            if let Some(is_held) = self.is_outstanding.get_mut(usize::from(head)) {
                *is_held = false;
            }
        }
    }

    /// Adds a head. Returns false if it was taken already and not returned.
    pub(super) fn mark_outstanding(&mut self, head: u16) -> bool {
        match self.is_outstanding.get_mut(usize::from(head)) {
            Some(is_held) if !*is_held => {
                *is_held = true;
                self.open += 1;
                true
            }
            _ => false,
        }
    }

    pub(super) fn complete(&mut self, head: u16) {
        self.completed.push(head);
        self.open = self.open.saturating_sub(1);
    }
}
