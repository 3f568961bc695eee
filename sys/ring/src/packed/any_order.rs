//! Packed virtqueue whose chains are returned in any order (virtio 1.3, section 2.8.5).
//!
//! Returned elements overwrite, in the order in which descriptors were made available, descriptors
//! of chains that may still be in flight. Descriptors are therefore not read again after their
//! chain was taken.

use crate::chain_head::ChainHead;
use crate::fault::RingFault;
use crate::packed::PackedQueue;
use crate::packed_areas::CompletedChain;
use crate::virtqueue::{OutOfOrderVirtqueue, PREFETCH_DISTANCE, TakenChain};

impl<const RECORDS: bool> OutOfOrderVirtqueue for PackedQueue<RECORDS> {
    #[inline(always)]
    fn take(&mut self, head: ChainHead) -> Result<TakenChain, RingFault> {
        let mut entries = None;
        if RECORDS {
            entries = self.replay.take(head.descriptor_count);
            if let (None, Some(inflight)) = (entries, &mut self.inflight) {
                entries = inflight.record_chain(&self.cells, self.next, head.descriptor_count);
            }
        }
        self.open_descriptors = self.open_descriptors.saturating_add(head.descriptor_count);
        self.next = self.next.advanced_by(head.descriptor_count, self.cells.size());
        self.ahead.taken += 1;
        self.prefetch_buffer(self.ahead.taken + PREFETCH_DISTANCE - 1);
        Ok(TakenChain { index: head.index, descriptor_count: head.descriptor_count, entries })
    }

    #[inline(always)]
    fn complete_taken(&mut self, chain: TakenChain, written: u32) {
        let TakenChain { index, descriptor_count: descriptors, entries } = chain;
        self.done.push(CompletedChain {
            position: self.next_used,
            id: index,
            descriptor_count: descriptors,
            written_bytes: written,
            entries,
        });
        self.done_descriptors = self.done_descriptors.saturating_add(descriptors);
        self.open_descriptors = self.open_descriptors.saturating_sub(descriptors);
        self.next_used = self.next_used.advanced_by(descriptors, self.cells.size());
    }

    fn is_logging(&self) -> bool {
        RECORDS && self.log.is_some()
    }

    fn records_in_flight(&self) -> bool {
        RECORDS && self.inflight.is_some()
    }
}
