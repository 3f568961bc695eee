//! What the two forms of virtqueue have in common: the operations that a network
//! ring and one of requests need of either, and the state behind them.

use core::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

use suimon_ports::Wakeup;

use crate::call_line::CallLine;
use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::chain::ChainWalk;
use crate::fault::RingFault;
use crate::features::RingFeatures;
use crate::inflight_packed::ChainEntries;
use crate::memory::GuestMemory;
use crate::memory_view::MemoryView;
use crate::setup::RingSetup;

/// Buffers whose lines are asked for ahead of the one in use. Far enough to hide
/// the way to another CPU's cache; not more lines than a CPU can wait for at once.
pub(crate) const PREFETCH_DISTANCE: usize = 8;

/// A virtqueue from the device's side: chains are taken in the driver's order and
/// returned in the same order, or with [`AnyOrder`] in another.
///
/// [`Virtqueue::look_ahead`] fetches chains, [`Virtqueue::peek`] shows the next,
/// [`Virtqueue::complete`] takes it, [`Virtqueue::publish`] returns all that were
/// taken. Errors are final: the caller hands them to [`QueueSide::fail`].
pub(crate) trait Virtqueue: Send {
    /// A position to come back to.
    type Mark: Copy;

    /// Whether a descriptor in an indirect table may say that it is indirect
    /// itself, which is then an error. In packed rings that flag is ignored there.
    const NESTS_VISIBLY: bool;

    fn side(&self) -> &QueueSide;
    fn side_mut(&mut self) -> &mut QueueSide;

    /// Entries of the queue.
    fn size(&self) -> u16;

    /// Fetches up to a batch of chains if none is at hand, and asks for their
    /// buffers. Returns how many are at hand.
    fn look_ahead(&mut self) -> Result<usize, RingFault>;

    /// Fetches the next chains before they are needed, so that their lines come
    /// while something else is done.
    fn prefetch_ahead(&mut self) -> Result<(), RingFault>;

    /// The next chain at hand, without taking it.
    fn peek(&self) -> Option<Head>;

    /// Takes the chain that [`Virtqueue::peek`] showed: the device wrote
    /// `written` bytes into it.
    fn complete(&mut self, head: Head, written: u32);

    fn mark(&self) -> Self::Mark;

    /// Forgets every chain completed since `mark`; none may be published.
    fn rewind(&mut self, mark: Self::Mark);

    /// Makes completed chains visible, and interrupts the driver if it asked.
    fn publish(&mut self);

    /// Asks the driver to kick when the next chain is available.
    fn arm(&mut self) -> Wakeup;

    /// Tells the driver not to kick.
    fn park(&mut self);

    /// The device wrote `bytes` bytes of a buffer at this guest address.
    fn note_written(&self, addr: u64, bytes: usize);

    /// The descriptor that follows `descriptor` in the ring's own table; `None`
    /// if it is the chain's last.
    fn follow_direct(
        &mut self,
        walk: &ChainWalk,
        descriptor: Descriptor,
    ) -> Result<Option<Descriptor>, RingFault>;

    /// The index of the entry behind `descriptor`, which was entry `index` of an
    /// indirect table; `None` if it is the last.
    fn follow_indirect(descriptor: Descriptor, index: u16, entries: u32) -> Option<u16>;

    /// The descriptor in these bytes of an indirect table.
    fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Descriptor;

    #[inline(always)]
    fn view(&mut self) -> &mut MemoryView {
        &mut self.side_mut().view
    }

    /// The fault of a buffer that is not in memory.
    #[cold]
    fn outside(&self, head: u16, address: u64, bytes: usize) -> RingFault {
        let queue = self.side().queue;
        RingFault::BufferAddress { queue, head, address, bytes: bytes as u64 }
    }
}

/// A virtqueue whose chains may be returned in any order, long after they were taken.
///
/// [`AnyOrder::take`] stands where [`Virtqueue::complete`] does for others; later
/// [`AnyOrder::give_back`] completes the chain. Nothing is taken back:
/// [`Virtqueue::rewind`] has no place here.
pub(crate) trait AnyOrder: Virtqueue {
    /// Takes the chain that [`Virtqueue::peek`] showed. Its descriptors are not looked at
    /// again.
    fn take(&mut self, head: Head) -> Result<Taken, RingFault>;

    /// Completes a chain: the device wrote `written` bytes into it.
    fn give_back(&mut self, taken: Taken, written: u32);

    /// Whether written buffers are logged.
    fn is_logging(&self) -> bool;

    /// Whether chains that were taken are recorded in the in-flight region.
    fn has_record(&self) -> bool;
}

/// A chain that was taken and not returned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// What the driver knows it by.
    pub(crate) index: u16,
    /// Descriptors it takes in the ring. Told in packed rings only.
    pub(crate) descriptors: u16,
    /// Where a packed ring's in-flight region has it.
    pub(crate) entries: Option<ChainEntries>,
}

/// A chain at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    /// Its first descriptor.
    pub(crate) first: Descriptor,
    /// What the driver knows it by: the index of its first descriptor, or in a
    /// packed ring its buffer id.
    pub(crate) index: u16,
    /// Descriptors it takes in the ring. Told in packed rings only.
    pub(crate) descriptors: u16,
}

/// Which way the device uses a ring's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Each chain has buffers to read, then buffers to write.
    ReadThenWrite,
}

/// Where a ring stands. Written by the ring at the end of each batch and when it
/// is dropped; readable as long as anybody wants to know.
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

    /// The next available entry that will be taken: everything before it was
    /// used. Exact once the ring is dropped. In a packed ring the position in the
    /// descriptor ring, with the wrap counter as bit 15. It is a ring's
    /// [`RingSetup::base`] if the ring is to go on here.
    pub fn next_avail(&self) -> u16 {
        self.next_avail.load(Ordering::Acquire)
    }

    /// The same as vhost-user says it (`VHOST_USER_GET_VRING_BASE`): in a packed
    /// ring the next used position stands in the upper half. Both are the same,
    /// because rings return what they take before they are dropped.
    pub fn vring_base(&self) -> u32 {
        let next = u32::from(self.next_avail());
        if self.is_packed { next | next << 16 } else { next }
    }

    /// Whether the ring met a fault and stopped for good.
    pub fn is_faulted(&self) -> bool {
        self.fault.get().is_some()
    }

    /// The fault that stopped the ring for good. It is there before the line
    /// `error` of [`RingSetup`] is rung.
    pub fn fault(&self) -> Option<RingFault> {
        self.fault.get().copied()
    }
}

/// What every ring holds, whatever its form.
pub(crate) struct QueueSide {
    /// The vring's index, for fault texts.
    pub(crate) queue: u16,
    pub(crate) features: RingFeatures,
    pub(crate) access: Access,
    pub(crate) view: MemoryView,
    pub(crate) state: Arc<RingState>,
    pub(crate) call: Arc<CallLine>,
    error: Arc<CallLine>,
    faults_seen: u64,
    fault: Option<RingFault>,
}

impl QueueSide {
    pub(crate) fn new(memory: Arc<GuestMemory>, setup: &RingSetup, access: Access) -> Self {
        Self {
            queue: setup.queue,
            features: setup.features,
            access,
            view: MemoryView::new(memory),
            state: Arc::new(RingState::new(setup)),
            call: Arc::clone(&setup.call),
            error: Arc::clone(&setup.error),
            faults_seen: suimon_mapping::cuts(),
            fault: None,
        }
    }

    /// The fault that ended this queue, if any.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), RingFault> {
        match self.fault {
            None => Ok(()),
            Some(fault) => Err(fault),
        }
    }

    /// Ends the queue.
    #[cold]
    pub(crate) fn fail(&mut self, fault: RingFault) -> RingFault {
        if self.fault.is_none() {
            self.fault = Some(fault);
            let _ = self.state.fault.set(fault);
            self.error.ring();
        }
        fault
    }

    /// Whether the memory is still what the front-end promised.
    #[inline]
    pub(crate) fn check_memory(&mut self) -> Result<(), RingFault> {
        let faults = suimon_mapping::cuts();
        if faults != self.faults_seen {
            self.faults_seen = faults;
            if self.view.memory().is_faulted() {
                return Err(RingFault::MemoryGone { queue: self.queue });
            }
        }
        Ok(())
    }

    /// Asks for the lines of a chain's first buffer.
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
