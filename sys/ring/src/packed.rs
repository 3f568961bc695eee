//! Packed virtqueue from the device's side: one descriptor ring in which the driver makes chains
//! available and the device returns them (virtio 1.3, section 2.8).
//!
//! Taking a chain does not modify the ring. A batch is returned as a whole: all its elements are
//! written, the first one last, because the driver reads that one first.
//!
//! With IN_ORDER a transmit batch is returned by one element with the id of its last buffer
//! (section 2.8.20). Receive buffers are returned individually, because a buffer without an element
//! counts as filled completely.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use suimon_frame::BATCH_FRAMES_MAX;
use suimon_ports::ArmResult;

use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::chain_head::ChainHead;
use crate::chain_walk::ChainWalk;
use crate::dirty_log::RingLog;
use crate::fault::RingFault;
use crate::inflight_packed::{PackedInflight, RecoveredChains, RecoveredPosition};
use crate::memory::GuestMemory;
use crate::packed_areas::{CompletedChain, PackedCells, is_available};
use crate::packed_arming::{self, UsedAdvance};
use crate::ring_position::RingPosition;
use crate::setup::{RingSetup, RingTracking};
use crate::virtqueue::{Access, PREFETCH_DISTANCE, QueueState, Virtqueue};

mod any_order;

/// Number of descriptors prefetched before a batch is fetched.
const PREFETCH_DESCRIPTORS: u16 = BATCH_FRAMES_MAX as u16;

/// Chains fetched from the ring before they are used.
struct FetchedPackedChains {
    heads: [ChainHead; BATCH_FRAMES_MAX],
    filled: usize,
    taken: usize,
}

/// State to which [`Virtqueue::rewind`] returns.
#[derive(Clone, Copy)]
pub(crate) struct RewindPoint {
    next: RingPosition,
    done: usize,
    replay: RecoveredPosition,
}

/// Packed virtqueue. If `RECORDS` is true, it maintains the records of [`RingTracking`].
pub(crate) struct PackedQueue<const RECORDS: bool> {
    cells: PackedCells,
    side: QueueState,
    ahead: FetchedPackedChains,
    /// Position of the next chain to take.
    next: RingPosition,
    /// Position at which the next chain is returned. The distance to `next` is the number of
    /// descriptors of chains that were taken and not completed.
    next_used: RingPosition,
    /// Chains that are completed and not returned; at most the ring's size.
    done: Vec<CompletedChain>,
    /// Number of descriptors of the chains in `done`.
    done_descriptors: u16,
    /// Number of descriptors of chains that were taken and not completed.
    open_descriptors: u16,
    was_published: bool,
    log: Option<RingLog>,
    /// Guest-physical address of the ring; `None` unless writes to the ring are logged.
    ring_addr: Option<u64>,
    inflight: Option<PackedInflight>,
    replay: RecoveredChains,
}

impl<const RECORDS: bool> PackedQueue<RECORDS> {
    pub(crate) fn new(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingTracking,
        access: Access,
    ) -> Result<Self, RingFault> {
        let cells = PackedCells::locate(&memory, setup.queue, setup.size, setup.addresses)?;
        let mut next = RingPosition::from_number(setup.base);
        if next.index >= cells.size() {
            let (queue, base, size) = (setup.queue, setup.base, cells.size());
            return Err(RingFault::PackedBase { queue, base, size });
        }
        check_order(setup, access)?;
        let (mut inflight, mut replay) = (None, RecoveredChains::default());
        if let Some(part) = &records.inflight {
            let (opened, recovery) = PackedInflight::open(part, setup.queue, &cells, next)?;
            inflight = Some(opened);
            if let Some(recovery) = recovery {
                (next, replay) = (recovery.position, recovery.replay);
            }
        }
        let logs_ring = records.log.as_ref().is_some_and(|log| log.used_addr.is_some());
        let ring_addr =
            if logs_ring { memory.guest_addr(setup.addresses.descriptors) } else { None };
        let mut queue = Self {
            done: Vec::with_capacity(usize::from(cells.size())),
            cells,
            side: QueueState::new(memory, setup, access),
            ahead: FetchedPackedChains {
                heads: [ChainHead::default(); BATCH_FRAMES_MAX],
                filled: 0,
                taken: 0,
            },
            next,
            next_used: next,
            done_descriptors: 0,
            open_descriptors: 0,
            was_published: false,
            log: records.log,
            ring_addr,
            inflight,
            replay,
        };
        queue.side.state.next_avail.store(next.number(), Ordering::Release);
        queue.park();
        Ok(queue)
    }

    /// Returns the descriptor at `distance` descriptors from the next one to take.
    #[inline(always)]
    fn descriptor(&self, distance: u16) -> Descriptor {
        if RECORDS {
            if let Some(descriptor) = self.replay.descriptor(distance) {
                return descriptor;
            }
        }
        self.cells.descriptor(self.next.advanced_by(distance, self.cells.size()).index)
    }

    /// Returns the first descriptor of the chain at `distance` descriptors from the next one to
    /// take; `None` if it is not available.
    #[inline(always)]
    fn available(&self, distance: u16) -> Option<Descriptor> {
        if RECORDS {
            if let Some(descriptor) = self.replay.descriptor(distance) {
                return Some(descriptor);
            }
        }
        let position = self.next.advanced_by(distance, self.cells.size());
        let descriptor = self.cells.descriptor(position.index);
        is_available(descriptor.flags, position.wrap_counter).then_some(descriptor)
    }

    /// Fetches at most a batch of chains. A chain's id is in its last descriptor, and the position
    /// of the next chain is known only after that one is read.
    fn fetch(&mut self) -> Result<(), RingFault> {
        self.side.check_memory()?;
        self.ahead.filled = 0;
        self.ahead.taken = 0;
        // Cache lines that the driver is about to write are not prefetched.
        if self.available(0).is_none() {
            return Ok(());
        }
        self.cells.prefetch_descriptors(self.next.index, PREFETCH_DESCRIPTORS);
        // The number of descriptors is limited to those not held, so that a driver that makes a
        // descriptor available again before it was returned causes no endless iteration.
        let reserved = self.done_descriptors.saturating_add(self.open_descriptors);
        let available = self.cells.size() - reserved.min(self.cells.size());
        let mut distance = 0;
        while self.ahead.filled < BATCH_FRAMES_MAX && distance < available {
            let Some(first) = self.available(distance) else { break };
            let (mut last, mut descriptors) = (first, 1);
            while last.flags & Descriptor::NEXT != 0 {
                if descriptors == available - distance {
                    let (queue, max) = (self.side.queue, u32::from(self.cells.size()));
                    return Err(RingFault::ChainLength { queue, head: first.next, max });
                }
                last = self.descriptor(distance + descriptors);
                descriptors += 1;
            }
            distance += descriptors;
            if let Some(head) = self.ahead.heads.get_mut(self.ahead.filled) {
                *head = ChainHead { first, index: last.next, descriptor_count: descriptors };
                self.ahead.filled += 1;
            }
        }
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

    /// Writes the used elements of all completed chains, the first one last.
    fn write_elements(&self) {
        let Some((first, rest)) = self.done.split_first() else { return };
        if self.side.features.in_order() && self.side.access == Access::Read {
            let id = self.done.last().map_or(first.id, |element| element.id);
            self.cells.write_used(first.position, id, first.written_bytes, true);
        } else {
            for element in rest {
                self.cells.write_used(element.position, element.id, element.written_bytes, false);
            }
            self.cells.write_used(first.position, first.id, first.written_bytes, true);
        }
        if RECORDS {
            for element in &self.done {
                self.mark_ring_written(element.position);
            }
        }
    }

    fn mark_ring_written(&self, position: RingPosition) {
        if let (Some(log), Some(ring_addr)) = (&self.log, self.ring_addr) {
            let addr = ring_addr + (DESCRIPTOR_BYTES * usize::from(position.index)) as u64;
            log.mark_buffer(addr, DESCRIPTOR_BYTES);
        }
    }

    fn mark_event_written(&self) {
        if RECORDS {
            if let Some(log) = &self.log {
                log.mark_used(0, size_of::<u32>());
            }
        }
    }
}

impl<const RECORDS: bool> Virtqueue for PackedQueue<RECORDS> {
    type RewindPoint = RewindPoint;
    const NESTED_INDIRECT_IS_FAULT: bool = false;

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
        if self.ahead.filled == self.ahead.taken {
            self.fetch()?;
        }
        Ok(self.ahead.filled - self.ahead.taken)
    }

    /// Fetches and prefetches further chains, if less than half a batch is fetched.
    #[inline]
    fn prefetch_ahead(&mut self) -> Result<(), RingFault> {
        if self.ahead.filled - self.ahead.taken >= BATCH_FRAMES_MAX / 2 {
            return Ok(());
        }
        self.fetch()
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
        let entries = if RECORDS { self.replay.take(head.descriptor_count) } else { None };
        self.done.push(CompletedChain {
            position: self.next,
            id: head.index,
            descriptor_count: head.descriptor_count,
            written_bytes: written,
            entries,
        });
        self.done_descriptors += head.descriptor_count;
        self.next = self.next.advanced_by(head.descriptor_count, self.cells.size());
        self.next_used = self.next;
        self.ahead.taken += 1;
        self.prefetch_buffer(self.ahead.taken + PREFETCH_DISTANCE - 1);
    }

    fn rewind_point(&self) -> RewindPoint {
        RewindPoint { next: self.next, done: self.done.len(), replay: self.replay.taken_position }
    }

    fn rewind(&mut self, mark: RewindPoint) {
        if self.done.len() != mark.done {
            self.done.truncate(mark.done);
            self.done_descriptors = self.done.iter().map(|element| element.descriptor_count).sum();
            self.next = mark.next;
            self.next_used = mark.next;
            self.replay.taken_position = mark.replay;
            self.ahead.filled = 0;
            self.ahead.taken = 0;
        }
    }

    fn publish(&mut self) {
        if self.done.is_empty() {
            return;
        }
        if RECORDS {
            if let Some(inflight) = &mut self.inflight {
                inflight.begin_used_batch(&self.cells, &mut self.done, self.next_used);
            }
        }
        self.write_elements();
        if RECORDS {
            if let Some(inflight) = &mut self.inflight {
                inflight.end_used_batch(&self.done, self.next_used);
            }
        }
        self.side.state.next_avail.store(self.next.number(), Ordering::Release);
        let returned = UsedAdvance {
            used_position: self.next_used,
            descriptor_count: self.done_descriptors,
            is_first: !self.was_published,
        };
        self.was_published = true;
        self.done.clear();
        self.done_descriptors = 0;
        let (event_idx, size) = (self.side.features.event_idx(), self.cells.size());
        if packed_arming::requires_interrupt(&self.cells, event_idx, size, returned) {
            self.side.call.signal();
        }
    }

    fn arm(&mut self) -> ArmResult {
        let is_waiting = self.ahead.filled != self.ahead.taken || !self.replay.is_done();
        if is_waiting || self.side.check().is_err() {
            return ArmResult::Pending;
        }
        let armed = packed_arming::arm(&self.cells, self.side.features.event_idx(), self.next);
        self.mark_event_written();
        armed
    }

    fn park(&mut self) {
        if self.side.check().is_ok() {
            packed_arming::park(&self.cells);
            self.mark_event_written();
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
        walk: &ChainWalk,
        descriptor: Descriptor,
    ) -> Result<Option<Descriptor>, RingFault> {
        if descriptor.flags & Descriptor::NEXT == 0 {
            return Ok(None);
        }
        let current = self.peek().map_or(0, |head| head.descriptor_count);
        let distance = walk.visited() + 1;
        // The driver may have lengthened the chain after its end was determined.
        if distance >= current {
            let (queue, max) = (self.side.queue, u32::from(current));
            return Err(RingFault::ChainLength { queue, head: walk.head(), max });
        }
        Ok(Some(self.descriptor(distance)))
    }

    /// Returns the next index; `None` at the end. An indirect table of a packed ring is a sequence
    /// (section 2.8.7).
    fn follow_indirect(_descriptor: Descriptor, index: u16, entries: u32) -> Option<u16> {
        let next = index.checked_add(1)?;
        (u32::from(next) < entries).then_some(next)
    }

    fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Descriptor {
        Descriptor::decode_packed(bytes)
    }
}

impl<const RECORDS: bool> Drop for PackedQueue<RECORDS> {
    fn drop(&mut self) {
        // Completed chains belong to the driver; an unpublished one would be processed again by the
        // next device.
        self.publish();
        self.side.state.next_avail.store(self.next.number(), Ordering::Release);
        if let Some(inflight) = &mut self.inflight {
            if self.replay.is_done() && self.open_descriptors == 0 {
                inflight.close();
            }
        }
    }
}

/// Rejects `VIRTIO_F_IN_ORDER` for a device that completes requests in any order.
///
/// # Errors
/// [`RingFault::InOrder`].
fn check_order(setup: &RingSetup, access: Access) -> Result<(), RingFault> {
    if access == Access::ReadThenWrite && setup.features.in_order() {
        return Err(RingFault::InOrder { queue: setup.queue });
    }
    Ok(())
}
