//! Interface of both forms of virtqueue, split and packed, for network and request rings, and the
//! state that they have in common.

use core::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use suimon_ports::ArmResult;

use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::chain_head::ChainHead;
use crate::chain_walk::ChainWalk;
use crate::fault::RingFault;
use crate::features::RingFeatures;
use crate::inflight_layout::ChainEntries;
use crate::interrupt_line::InterruptLine;
use crate::memory::GuestMemory;
use crate::memory_view::MemoryView;
use crate::setup::RingSetup;

/// Number of buffers by which prefetching precedes use: sufficient to hide the latency of another
/// CPU's cache, and within the number of outstanding misses of a CPU.
pub(crate) const PREFETCH_DISTANCE: usize = 8;

/// Virtqueue from the device's side: chains are taken in the driver's order and returned in the
/// same order, or with [`OutOfOrderVirtqueue`] in any order.
///
/// [`Virtqueue::fetch`] fetches chains, [`Virtqueue::peek`] returns the next,
/// [`Virtqueue::complete`] takes and completes it, and [`Virtqueue::publish`] returns all completed
/// chains. Errors are final: the caller passes them to [`QueueState::fail`].
pub(crate) trait Virtqueue: Send {
    /// State to which [`Virtqueue::rewind`] returns.
    type RewindPoint: Copy;

    /// True if the `INDIRECT` flag in a descriptor of an indirect table is a fault. In packed rings
    /// the flag is ignored there.
    const NESTED_INDIRECT_IS_FAULT: bool;

    fn queue_state(&self) -> &QueueState;
    fn queue_state_mut(&mut self) -> &mut QueueState;

    /// Returns the number of entries of the queue.
    fn size(&self) -> u16;

    /// Fetches at most a batch of chains if none is fetched, and prefetches their buffers. Returns
    /// the number of fetched chains.
    fn fetch(&mut self) -> Result<usize, RingFault>;

    /// Fetches the next chains before they are needed, so that the cache misses overlap with other
    /// work.
    fn prefetch_ahead(&mut self) -> Result<(), RingFault>;

    /// Returns the next fetched chain without taking it; `None` if none is fetched.
    fn peek(&self) -> Option<ChainHead>;

    /// Takes and completes the chain that [`Virtqueue::peek`] returns. `written` is the number of
    /// bytes that the device has written to it.
    fn complete(&mut self, head: ChainHead, written: u32);

    fn rewind_point(&self) -> Self::RewindPoint;

    /// Reverts the completion of every chain since `mark` was returned. None of these chains may be
    /// published.
    fn rewind(&mut self, mark: Self::RewindPoint);

    /// Publishes completed chains, and interrupts the driver if it requests that.
    fn publish(&mut self);

    /// Requests a kick when the next chain becomes available. Returns [`ArmResult::Pending`] if it
    /// is available already.
    fn arm(&mut self) -> ArmResult;

    /// Suppresses kicks.
    fn park(&mut self);

    /// Records in the dirty page log that the device has written `bytes` bytes of a buffer at this
    /// guest-physical address.
    fn mark_written(&self, addr: u64, bytes: usize);

    /// Returns the descriptor that follows `descriptor` in the ring's own table; `None` if it is
    /// the last one of the chain.
    fn follow_direct(
        &mut self,
        walk: &ChainWalk,
        descriptor: Descriptor,
    ) -> Result<Option<Descriptor>, RingFault>;

    /// Returns the index of the entry that follows the entry `index` of an indirect table;
    /// `descriptor` is this entry's content, and `entries` the number of entries. Returns `None` if
    /// it is the last one.
    fn follow_indirect(descriptor: Descriptor, index: u16, entries: u32) -> Option<u16>;

    /// Decodes a descriptor of an indirect table.
    fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Descriptor;

    #[inline(always)]
    fn view(&mut self) -> &mut MemoryView {
        &mut self.queue_state_mut().view
    }

    /// Returns the fault of a buffer that is not in guest memory.
    #[cold]
    fn out_of_memory_fault(&self, head: u16, address: u64, bytes: usize) -> RingFault {
        let queue = self.queue_state().queue;
        RingFault::BufferAddress { queue, head, address, bytes: bytes as u64 }
    }
}

/// Virtqueue whose chains may be returned in any order, at any time after they were taken.
///
/// [`OutOfOrderVirtqueue::take`] replaces [`Virtqueue::complete`]; later
/// [`OutOfOrderVirtqueue::complete_taken`] completes the chain. [`Virtqueue::rewind`] is not used
/// with such queues.
pub(crate) trait OutOfOrderVirtqueue: Virtqueue {
    /// Takes the chain returned by [`Virtqueue::peek`]. Its descriptors are not read again.
    fn take(&mut self, head: ChainHead) -> Result<TakenChain, RingFault>;

    /// Completes a chain that was taken. `written` is the number of bytes that the device has
    /// written to it.
    fn complete_taken(&mut self, chain: TakenChain, written: u32);

    /// Returns true if writes to buffers are recorded in a dirty page log.
    fn is_logging(&self) -> bool;

    /// Returns true if chains that were taken are recorded in the in-flight region.
    fn records_in_flight(&self) -> bool;
}

/// Chain that was taken and not completed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenChain {
    /// Index of the head, or in a packed ring the buffer id.
    pub(crate) index: u16,
    /// Number of the chain's descriptors in the ring. Set in packed rings only.
    pub(crate) descriptor_count: u16,
    /// Entries of the chain in a packed ring's part of the in-flight region; `None` if it is not
    /// recorded.
    pub(crate) entries: Option<ChainEntries>,
}

/// Direction in which the device accesses the buffers of a ring's chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Device-readable buffers followed by device-writable buffers in each chain.
    ReadThenWrite,
}

/// Position and fault of a ring. Written by the ring at the end of each batch and when it is
/// dropped; readable by other threads at any time, also after that.
#[derive(Debug)]
pub struct RingState {
    pub(crate) next_avail: AtomicU16,
    is_packed: bool,
    fault: OnceLock<RingFault>,
}

impl RingState {
    fn new(setup: &RingSetup) -> Self {
        let is_packed = setup.features.packed();
        Self { next_avail: AtomicU16::new(setup.base), is_packed, fault: OnceLock::new() }
    }

    /// Returns the index of the next available entry to take; all entries before it were used.
    /// Exact once the ring is dropped. For a packed ring this is the position in the descriptor
    /// ring, with the wrap counter as bit 15. A ring that continues there has it as its
    /// [`RingSetup::base`].
    pub fn next_avail(&self) -> u16 {
        self.next_avail.load(Ordering::Acquire)
    }

    /// Returns the position in the format of `VHOST_USER_GET_VRING_BASE`: in a packed ring the
    /// upper half is the next used position. Both halves are equal, because rings return all chains
    /// that they took before they are dropped.
    pub fn vring_base(&self) -> u32 {
        let next = u32::from(self.next_avail());
        if self.is_packed { next | next << 16 } else { next }
    }

    /// Returns true if the ring has had a fault and stopped permanently.
    pub fn is_faulted(&self) -> bool {
        self.fault.get().is_some()
    }

    /// Returns the fault that stopped the ring; `None` if there was none. It is set before the line
    /// `error` of [`RingSetup`] is signalled.
    pub fn fault(&self) -> Option<RingFault> {
        self.fault.get().copied()
    }
}

/// State that all rings have in common.
pub(crate) struct QueueState {
    /// Index of the vring in its device, for error messages.
    pub(crate) queue: u16,
    pub(crate) features: RingFeatures,
    pub(crate) access: Access,
    pub(crate) view: MemoryView,
    pub(crate) state: Arc<RingState>,
    pub(crate) call: Arc<InterruptLine>,
    error: Arc<InterruptLine>,
    reported_faults: u64,
    fault: Option<RingFault>,
}

impl QueueState {
    pub(crate) fn new(memory: Arc<GuestMemory>, setup: &RingSetup, access: Access) -> Self {
        Self {
            queue: setup.queue,
            features: setup.features,
            access,
            view: MemoryView::new(memory),
            state: Arc::new(RingState::new(setup)),
            call: Arc::clone(&setup.call),
            error: Arc::clone(&setup.error),
            reported_faults: suimon_mapping::truncated_access_count(),
            fault: None,
        }
    }

    /// Checks that the ring has had no fault.
    ///
    /// # Errors
    /// The fault that ended the ring.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), RingFault> {
        match self.fault {
            None => Ok(()),
            Some(fault) => Err(fault),
        }
    }

    /// Ends the ring with `fault`, signals the error line, and returns the fault. An earlier fault
    /// is kept.
    #[cold]
    pub(crate) fn fail(&mut self, fault: RingFault) -> RingFault {
        if self.fault.is_none() {
            self.fault = Some(fault);
            let _ = self.state.fault.set(fault);
            self.error.signal();
        }
        fault
    }

    /// Checks that the file of the VM's memory was not truncated.
    ///
    /// # Errors
    /// [`RingFault::MemoryTruncated`], with which the caller must end the ring.
    #[inline]
    pub(crate) fn check_memory(&mut self) -> Result<(), RingFault> {
        let faults = suimon_mapping::truncated_access_count();
        if faults != self.reported_faults {
            self.reported_faults = faults;
            if self.view.memory().is_faulted() {
                return Err(RingFault::MemoryTruncated { queue: self.queue });
            }
        }
        Ok(())
    }

    /// Prefetches the first buffer of a chain.
    #[inline(always)]
    pub(crate) fn prefetch_buffer(&self, head: &ChainHead) {
        match self.access {
            Access::Read | Access::ReadThenWrite => self.view.prefetch_read(head.first.addr),
            Access::Write => {
                self.view.prefetch_write(head.first.addr, self.features.header_bytes());
            }
        }
    }
}
