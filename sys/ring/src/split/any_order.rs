//! Split virtqueue whose chains are returned in any order (virtio 1.3, section 2.7.8).

use crate::chain_head::ChainHead;
use crate::fault::RingFault;
use crate::split::SplitQueue;
use crate::virtqueue::{OutOfOrderVirtqueue, PREFETCH_DISTANCE, TakenChain};

impl<const RECORDS: bool> OutOfOrderVirtqueue for SplitQueue<RECORDS> {
    #[inline(always)]
    fn take(&mut self, head: ChainHead) -> Result<TakenChain, RingFault> {
        if !self.outstanding.mark_outstanding(head.index) {
            return Err(RingFault::HeadInUse { queue: self.side.queue, head: head.index });
        }
        if RECORDS {
            if let Some(inflight) = &mut self.inflight {
                inflight.record_taken(head.index);
            }
        }
        self.next_avail = self.next_avail.wrapping_add(1);
        self.ahead.taken += 1;
        self.prefetch_buffer(self.ahead.taken + PREFETCH_DISTANCE - 1);
        Ok(TakenChain { index: head.index, descriptor_count: 0, entries: None })
    }

    #[inline(always)]
    fn complete_taken(&mut self, chain: TakenChain, written: u32) {
        self.cells.write_used(self.next_used, chain.index, written);
        if RECORDS {
            if let Some(inflight) = &mut self.inflight {
                inflight.record_completed(chain.index);
            }
        }
        self.outstanding.complete(chain.index);
        self.next_used = self.next_used.wrapping_add(1);
    }

    fn is_logging(&self) -> bool {
        RECORDS && self.log.is_some()
    }

    fn records_in_flight(&self) -> bool {
        RECORDS && self.inflight.is_some()
    }
}
