//! Interface of both forms of virtqueue, split and packed: operations for network and request
//! rings, and their common state.

use core::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use suimon_ports::ArmResult;

use crate::call_line::InterruptLine;
use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::chain_walk::ChainWalk;
use crate::fault::RingFault;
use crate::features::RingFeatures;
use crate::head::Head;
use crate::inflight_layout::ChainEntries;
use crate::memory::GuestMemory;
use crate::memory_view::MemoryView;
use crate::setup::RingSetup;

/// Number of buffers prefetched ahead of the one in use: sufficient to hide the latency of another
/// CPU's cache, and within the number of outstanding misses of a CPU.
pub(crate) const PREFETCH_DISTANCE: usize = 8;

/// Virtqueue from the device's side: chains are taken in the driver's order and returned in the
/// same order, or with [`AnyOrder`] in any order.
///
/// [`Virtqueue::fetch`] fetches chains, [`Virtqueue::peek`] returns the next,
/// [`Virtqueue::complete`] takes and completes it, and [`Virtqueue::publish`] returns all completed
/// chains. Errors are final: the caller passes them to [`QueueState::fail`].
pub(crate) trait Virtqueue: Send {
    /// Position for [`Virtqueue::rewind`].
    type Mark: Copy;

    /// True if the `INDIRECT` flag in a descriptor of an indirect table is an error. In packed
    /// rings the flag is ignored there.
    const NESTED_INDIRECT_IS_FAULT: bool;

    fn side(&self) -> &QueueState;
    fn side_mut(&mut self) -> &mut QueueState;

    /// Returns the number of entries of the queue.
    fn size(&self) -> u16;

    /// Fetches up to a batch of chains if none is fetched, and prefetches their buffers. Returns
    /// the number of fetched chains.
    fn fetch(&mut self) -> Result<usize, RingFault>;

    /// Fetches the next chains before they are needed, so that the cache misses overlap with other
    /// work.
    fn prefetch_ahead(&mut self) -> Result<(), RingFault>;

    /// Returns the next fetched chain without taking it.
    fn peek(&self) -> Option<Head>;

    /// Takes and completes the chain returned by [`Virtqueue::peek`]. `written` is the number of
    /// bytes the device wrote to it.
    fn complete(&mut self, head: Head, written: u32);

    fn mark(&self) -> Self::Mark;

    /// Reverts every chain completed since `mark`; none of them may be published.
    fn rewind(&mut self, mark: Self::Mark);

    /// Publishes completed chains, and interrupts the driver if it requests that.
    fn publish(&mut self);

    /// Requests a kick when the next chain is available.
    fn arm(&mut self) -> ArmResult;

    /// Requests no kicks from the driver.
    fn park(&mut self);

    /// Records that the device wrote `bytes` bytes of a buffer at this guest address.
    fn mark_written(&self, addr: u64, bytes: usize);

    /// Returns the descriptor that follows `descriptor` in the ring's own table; `None` if it is
    /// the chain's last.
    fn follow_direct(
        &mut self,
        walk: &ChainWalk,
        descriptor: Descriptor,
    ) -> Result<Option<Descriptor>, RingFault>;

    /// Returns the index of the entry that follows `descriptor`, entry `index` of an indirect
    /// table; `None` if it is the last.
    fn follow_indirect(descriptor: Descriptor, index: u16, entries: u32) -> Option<u16>;

    /// Decodes a descriptor of an indirect table.
    fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Descriptor;

    #[inline(always)]
    fn view(&mut self) -> &mut MemoryView {
        &mut self.side_mut().view
    }

    /// Returns the fault of a buffer that is not in guest memory.
    #[cold]
    fn outside(&self, head: u16, address: u64, bytes: usize) -> RingFault {
        let queue = self.side().queue;
        RingFault::BufferAddress { queue, head, address, bytes: bytes as u64 }
    }
}

/// Virtqueue whose chains may be returned in any order, at any time after they were taken.
///
/// [`AnyOrder::take`] replaces [`Virtqueue::complete`]; later [`AnyOrder::complete_taken`]
/// completes the chain. [`Virtqueue::rewind`] is not used with such queues.
pub(crate) trait AnyOrder: Virtqueue {
    /// Takes the chain returned by [`Virtqueue::peek`]. Its descriptors are not read again.
    fn take(&mut self, head: Head) -> Result<TakenChain, RingFault>;

    /// Completes a chain. `written` is the number of bytes the device wrote to it.
    fn complete_taken(&mut self, chain: TakenChain, written: u32);

    /// True if writes to buffers are logged.
    fn is_logging(&self) -> bool;

    /// Returns true if chains that were taken are recorded in the in-flight region.
    fn has_record(&self) -> bool;
}

/// Chain that was taken and not returned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenChain {
    /// Index of the head, or in a packed ring the buffer id.
    pub(crate) index: u16,
    /// Number of the chain's descriptors in the ring. Set in packed rings only.
    pub(crate) descriptors: u16,
    /// Entries of the chain in a packed ring's in-flight region.
    pub(crate) entries: Option<ChainEntries>,
}

/// Direction in which the device accesses a ring's buffers.
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

    /// Returns the next available entry to take; everything before it was used. Exact once the ring
    /// is dropped. For a packed ring this is the position in the descriptor ring, with the wrap
    /// counter as bit 15. A ring that continues here has it as its [`RingSetup::base`].
    pub fn next_avail(&self) -> u16 {
        self.next_avail.load(Ordering::Acquire)
    }

    /// Returns the position in the format of `VHOST_USER_GET_VRING_BASE`: in a packed ring the
    /// upper half is the next used position. Both halves are equal, because rings return everything
    /// they took before they are dropped.
    pub fn vring_base(&self) -> u32 {
        let next = u32::from(self.next_avail());
        if self.is_packed { next | next << 16 } else { next }
    }

    /// True if the ring met a fault and stopped permanently.
    pub fn is_faulted(&self) -> bool {
        self.fault.get().is_some()
    }

    /// Returns the fault that stopped the ring. It is set before the line `error` of [`RingSetup`]
    /// is signalled.
    pub fn fault(&self) -> Option<RingFault> {
        self.fault.get().copied()
    }
}

/// State common to all rings.
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
            reported_faults: suimon_mapping::truncations(),
            fault: None,
        }
    }

    /// Fails with the fault that ended this queue, if any.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), RingFault> {
        match self.fault {
            None => Ok(()),
            Some(fault) => Err(fault),
        }
    }

    /// Ends the queue with `fault` and signals the error line.
    #[cold]
    pub(crate) fn fail(&mut self, fault: RingFault) -> RingFault {
        if self.fault.is_none() {
            self.fault = Some(fault);
            let _ = self.state.fault.set(fault);
            self.error.signal();
        }
        fault
    }

    /// Fails if the file behind the VM's memory was truncated.
    #[inline]
    pub(crate) fn check_memory(&mut self) -> Result<(), RingFault> {
        let faults = suimon_mapping::truncations();
        if faults != self.reported_faults {
            self.reported_faults = faults;
            if self.view.memory().is_faulted() {
                return Err(RingFault::MemoryTruncated { queue: self.queue });
            }
        }
        Ok(())
    }

    /// Prefetches a chain's first buffer.
    #[inline(always)]
    pub(crate) fn prefetch_buffer(&self, head: &Head) {
        match self.access {
            Access::Read | Access::ReadThenWrite => self.view.prefetch_read(head.first.addr),
            Access::Write => {
                self.view.prefetch_write(head.first.addr, self.features.header_bytes());
            }
        }
    }
}
