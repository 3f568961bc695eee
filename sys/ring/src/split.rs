//! Split virtqueue from the device's side: takes and returns chains, and exchanges notifications
//! with the driver (virtio 1.3, section 2.7).
//!
//! With IN_ORDER a transmit batch is returned by one used entry with its last head (section
//! 2.7.14). Receive buffers are returned individually, because a buffer without an entry counts as
//! filled completely.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use suimon_frame::BATCH_FRAMES_MAX;
use suimon_ports::ArmResult;

use crate::cells::{DESCRIPTOR_BYTES, Descriptor, RingCells, USED_ENTRY_BYTES, USED_IDX_AT};
use crate::chain_head::ChainHead;
use crate::chain_walk::ChainWalk;
use crate::dirty_log::RingLog;
use crate::fault::RingFault;
use crate::inflight_split::{RecoveredHeads, SplitInflight};
use crate::memory::GuestMemory;
use crate::notification::{self, NotificationFields};
use crate::setup::{RingSetup, RingTracking};
use crate::virtqueue::{Access, PREFETCH_DISTANCE, QueueState, Virtqueue};

mod any_order;
mod outstanding_heads;

use outstanding_heads::OutstandingHeads;

/// Chains whose first descriptors were fetched before they are used.
struct FetchedSplitChains {
    heads: [ChainHead; BATCH_FRAMES_MAX],
    filled: usize,
    taken: usize,
}

/// State to which [`Virtqueue::rewind`] returns.
#[derive(Clone, Copy)]
pub(crate) struct RewindPoint {
    next_avail: u16,
    next_used: u16,
}

/// Split virtqueue. `next_used` differs from `published_used` until completed chains are published.
/// If `RECORDS` is true, it maintains the records of [`RingTracking`], and can return a batch by
/// one entry.
pub(crate) struct SplitQueue<const RECORDS: bool> {
    cells: RingCells,
    side: QueueState,
    ahead: FetchedSplitChains,
    /// Available index when it was last read from shared memory.
    avail_read: u16,
    next_avail: u16,
    next_used: u16,
    published_used: u16,
    /// Used index at the previous interrupt decision; `None` before the first.
    decided_used: Option<u16>,
    /// Event index that suppresses kicks; `None` while kicks are requested.
    parked: Option<u16>,
    log: Option<RingLog>,
    inflight: Option<SplitInflight>,
    replay: RecoveredHeads,
    /// Head of the chain that was completed last, for queues that return a batch by one entry.
    batch_head: u16,
    returns_batches: bool,
    outstanding: OutstandingHeads,
}

impl<const RECORDS: bool> SplitQueue<RECORDS> {
    pub(crate) fn new(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingTracking,
        access: Access,
    ) -> Result<Self, RingFault> {
        let cells = RingCells::locate(&memory, setup.queue, setup.size, setup.addresses)?;
        let used = cells.used_idx();
        let (mut base, mut replay, mut inflight) = (setup.base, RecoveredHeads::default(), None);
        if let Some(part) = &records.inflight {
            let (size, avail) = (cells.size(), cells.avail_idx());
            let (opened, recovery) = SplitInflight::open(part, setup.queue, size, used, avail)?;
            inflight = Some(if access == Access::ReadThenWrite {
                opened.with_recording_on_take()
            } else {
                opened
            });
            if let Some(recovery) = recovery {
                (base, replay) = (used, recovery);
            }
        }
        let mut queue = Self {
            cells,
            side: QueueState::new(memory, setup, access),
            ahead: FetchedSplitChains {
                heads: [ChainHead::default(); BATCH_FRAMES_MAX],
                filled: 0,
                taken: 0,
            },
            avail_read: base,
            next_avail: base,
            next_used: used,
            published_used: used,
            decided_used: None,
            parked: None,
            log: records.log,
            inflight,
            replay,
            batch_head: 0,
            returns_batches: setup.features.in_order() && access == Access::Read,
            outstanding: OutstandingHeads::new(setup, access)?,
        };
        queue.side.state.next_avail.store(base, Ordering::Release);
        queue.park();
        Ok(queue)
    }

    /// Reads and validates the available index.
    fn read_avail(&mut self) -> Result<(), RingFault> {
        self.side.check_memory()?;
        let avail = self.cells.avail_idx();
        let available = avail.wrapping_sub(self.next_avail);
        if available > self.size() {
            return Err(RingFault::AvailIndex {
                queue: self.side.queue,
                avail,
                next: self.next_avail,
                ahead: available,
                size: self.size(),
            });
        }
        self.avail_read = avail;
        Ok(())
    }

    /// Returns the head at `index` of the available ring, or the recovered head that replaces it.
    #[inline(always)]
    fn available_head(&self, index: u16) -> u16 {
        if RECORDS {
            if let Some(head) = self.replay.head(index) {
                return head;
            }
        }
        self.cells.avail_entry(index)
    }

    /// Fetches the first descriptors of `count` chains. Prefetches all cache lines before it reads
    /// the first one, so that the misses overlap.
    fn fetch(&mut self, count: usize) -> Result<(), RingFault> {
        self.ahead.filled = 0;
        self.ahead.taken = 0;
        let size = self.size();
        for number in 0..count.min(BATCH_FRAMES_MAX) {
            let index = self.available_head(self.next_avail.wrapping_add(number as u16));
            if index >= size {
                return Err(RingFault::DescriptorIndex {
                    queue: self.side.queue,
                    field: "available ring",
                    index,
                    size: u32::from(size),
                });
            }
            if let Some(head) = self.ahead.heads.get_mut(number) {
                head.index = index;
            }
            self.cells.prefetch_descriptor(index);
        }
        self.cells.prefetch_used(self.next_used, count);
        for head in self.ahead.heads.iter_mut().take(count) {
            head.first = self.cells.descriptor(head.index);
        }
        self.ahead.filled = count;
        for index in 0..PREFETCH_DISTANCE {
            self.prefetch_buffer(index);
        }
        Ok(())
    }

    /// Prefetches the buffer of the fetched chain with this index.
    #[inline(always)]
    fn prefetch_buffer(&self, index: usize) {
        if index < self.ahead.filled {
            if let Some(head) = self.ahead.heads.get(index) {
                self.side.prefetch_buffer(head);
            }
        }
    }

    /// Returns true if some completed chains are not published.
    fn has_unpublished(&self) -> bool {
        self.next_used != self.published_used
    }

    /// Records completed chains in the in-flight region before they are published.
    fn begin_used_batch(&mut self) {
        if self.returns_batches {
            self.cells.write_used(self.published_used, self.batch_head, 0);
        }
        if let Some(inflight) = &mut self.inflight {
            inflight.begin_used_batch();
        }
    }

    /// Records the publication of completed chains: marks the used ring in the dirty page log, and
    /// clears the chains in the in-flight region.
    fn end_used_batch(&mut self) {
        if let Some(log) = &self.log {
            let count = self.next_used.wrapping_sub(self.published_used);
            for distance in 0..count {
                let offset = self.cells.used_entry_at(self.published_used.wrapping_add(distance));
                log.mark_used(offset, USED_ENTRY_BYTES);
            }
            log.mark_used(USED_IDX_AT, size_of::<u16>());
        }
        if let Some(inflight) = &mut self.inflight {
            inflight.end_used_batch(self.next_used);
        }
        self.replay.advance(self.next_avail);
    }

    /// Marks the field that requests or suppresses kicks as written in the dirty page log.
    fn mark_kicks_written(&self) {
        if RECORDS {
            if let Some(log) = &self.log {
                let event_idx = self.side.features.event_idx();
                let offset = if event_idx { self.cells.avail_event_at() } else { 0 };
                log.mark_used(offset, size_of::<u16>());
            }
        }
    }
}

impl<const RECORDS: bool> Virtqueue for SplitQueue<RECORDS> {
    type RewindPoint = RewindPoint;
    const NESTED_INDIRECT_IS_FAULT: bool = true;

    #[inline(always)]
    fn queue_state(&self) -> &QueueState {
        &self.side
    }

    #[inline(always)]
    fn queue_state_mut(&mut self) -> &mut QueueState {
        &mut self.side
    }

    #[inline(always)]
    fn size(&self) -> u16 {
        self.cells.size()
    }

    #[inline]
    fn fetch(&mut self) -> Result<usize, RingFault> {
        let current = self.ahead.filled - self.ahead.taken;
        if current > 0 {
            return Ok(current);
        }
        if self.avail_read == self.next_avail {
            self.read_avail()?;
        }
        let waiting = self.avail_read.wrapping_sub(self.next_avail);
        let count = usize::from(waiting).min(BATCH_FRAMES_MAX);
        self.fetch(count)?;
        Ok(count)
    }

    /// Fetches and prefetches further chains, if less than half a batch is fetched.
    #[inline]
    fn prefetch_ahead(&mut self) -> Result<(), RingFault> {
        if self.ahead.filled - self.ahead.taken >= BATCH_FRAMES_MAX / 2 {
            return Ok(());
        }
        let mut waiting = usize::from(self.avail_read.wrapping_sub(self.next_avail));
        if waiting < BATCH_FRAMES_MAX && self.side.access == Access::Write {
            self.read_avail()?;
            waiting = usize::from(self.avail_read.wrapping_sub(self.next_avail));
        }
        self.fetch(waiting.min(BATCH_FRAMES_MAX))
    }

    #[inline(always)]
    fn peek(&self) -> Option<ChainHead> {
        if self.ahead.taken == self.ahead.filled {
            return None;
        }
        self.ahead.heads.get(self.ahead.taken).copied()
    }

    #[inline(always)]
    fn complete(&mut self, head: ChainHead, written: u32) {
        if RECORDS && self.returns_batches {
            self.batch_head = head.index;
        } else {
            self.cells.write_used(self.next_used, head.index, written);
        }
        if RECORDS {
            if let Some(inflight) = &mut self.inflight {
                inflight.record_completed(head.index);
            }
        }
        self.next_used = self.next_used.wrapping_add(1);
        self.next_avail = self.next_avail.wrapping_add(1);
        self.ahead.taken += 1;
        self.prefetch_buffer(self.ahead.taken + PREFETCH_DISTANCE - 1);
    }

    fn rewind_point(&self) -> RewindPoint {
        RewindPoint { next_avail: self.next_avail, next_used: self.next_used }
    }

    fn rewind(&mut self, mark: RewindPoint) {
        if self.next_avail != mark.next_avail {
            if let Some(inflight) = &mut self.inflight {
                let forgotten = usize::from(self.next_avail.wrapping_sub(mark.next_avail));
                inflight.truncate_completed(inflight.completed_count().saturating_sub(forgotten));
            }
            self.next_avail = mark.next_avail;
            self.next_used = mark.next_used;
            self.ahead.filled = 0;
            self.ahead.taken = 0;
        }
    }

    fn publish(&mut self) {
        if !self.has_unpublished() {
            return;
        }
        if RECORDS {
            self.begin_used_batch();
        }
        self.cells.publish_used(self.next_used);
        if RECORDS {
            self.end_used_batch();
        }
        self.published_used = self.next_used;
        self.outstanding.release_returned();
        self.side.state.next_avail.store(self.next_avail, Ordering::Release);
        if let Some(parked) = self.parked {
            if notification::requires_repark(parked, self.next_avail) {
                self.park();
            }
        }
        let event_idx = self.side.features.event_idx();
        let before = self.decided_used.replace(self.next_used);
        let is_emptied = || self.cells.avail_idx() == self.next_avail;
        if notification::requires_interrupt(&self.cells, event_idx, before, self.next_used)
            || (self.side.features.notify_on_empty() && is_emptied())
        {
            self.side.call.signal();
        }
    }

    fn arm(&mut self) -> ArmResult {
        if self.side.check().is_err() || self.ahead.filled != self.ahead.taken {
            return ArmResult::Pending;
        }
        let event_idx = self.side.features.event_idx();
        let armed = notification::arm(&self.cells, event_idx, self.next_avail);
        self.mark_kicks_written();
        if armed == ArmResult::Armed {
            self.parked = None;
        }
        armed
    }

    fn park(&mut self) {
        if self.side.check().is_ok() {
            let event_idx = self.side.features.event_idx();
            self.parked = Some(notification::park(&self.cells, event_idx, self.next_avail));
            self.mark_kicks_written();
        }
    }

    #[inline(always)]
    fn mark_written(&self, addr: u64, bytes: usize) {
        if RECORDS {
            if let Some(log) = &self.log {
                log.mark_buffer(addr, bytes);
            }
        }
    }

    fn follow_direct(
        &mut self,
        _walk: &ChainWalk,
        descriptor: Descriptor,
    ) -> Result<Option<Descriptor>, RingFault> {
        if descriptor.flags & Descriptor::NEXT == 0 {
            return Ok(None);
        }
        let (index, size) = (descriptor.next, self.size());
        if index >= size {
            let (queue, field, size) = (self.side.queue, "`next`", u32::from(size));
            return Err(RingFault::DescriptorIndex { queue, field, index, size });
        }
        Ok(Some(self.cells.descriptor(index)))
    }

    fn follow_indirect(descriptor: Descriptor, _index: u16, _entries: u32) -> Option<u16> {
        (descriptor.flags & Descriptor::NEXT != 0).then_some(descriptor.next)
    }

    fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Descriptor {
        Descriptor::decode(bytes)
    }
}

impl<const RECORDS: bool> Drop for SplitQueue<RECORDS> {
    fn drop(&mut self) {
        // Completed chains belong to the driver; an unpublished one would be processed again by the
        // next device.
        self.publish();
        self.side.state.next_avail.store(self.next_avail, Ordering::Release);
        if let Some(inflight) = &mut self.inflight {
            if self.replay.is_done() && self.outstanding.is_empty() {
                inflight.close();
            }
        }
    }
}
