//! A split virtqueue from the device's side: takes chains, returns them, and
//! agrees with the driver on notifications (virtio 1.3, section 2.7).

use core::sync::atomic::{AtomicU16, Ordering};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use suimon_frame::BATCH_FRAMES_MAX;
use suimon_ports::Wakeup;

use crate::arming::{self, NotifyCells};
use crate::call_line::CallLine;
use crate::cells::{Descriptor, RingCells};
use crate::fault::RingFault;
use crate::features::RingFeatures;
use crate::memory::{GuestMemory, MemoryView};
use crate::sigbus::memory_faults;

/// The largest queue (virtio 1.3, section 2.7).
pub const QUEUE_SIZE_MAX: u16 = 32_768;

/// Buffers whose lines are asked for ahead of the one in use. Far enough to hide
/// the way to another CPU's cache; not more lines than a CPU can wait for at once.
const PREFETCH_DISTANCE: usize = 8;

/// Where a ring's areas lie, as addresses of the front-end (vhost-user,
/// `VHOST_USER_SET_VRING_ADDR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingAddresses {
    /// The descriptor table.
    pub descriptors: u64,
    /// The available ring.
    pub available: u64,
    /// The used ring.
    pub used: u64,
}

/// What a ring is made from.
#[derive(Clone)]
pub struct RingSetup {
    /// The vring's index in its device, for fault texts.
    pub queue: u16,
    /// Entries: a power of two, at most [`QUEUE_SIZE_MAX`].
    pub size: u32,
    /// Where its areas lie.
    pub addresses: RingAddresses,
    /// Index of the first available entry to take.
    pub base: u16,
    /// What was negotiated.
    pub features: RingFeatures,
    /// Becomes readable when the driver kicks; `None` if it never does and has
    /// to be polled for ever. Must not block when read.
    pub kick: Option<Arc<OwnedFd>>,
    /// The way to interrupt the driver.
    pub call: Arc<CallLine>,
    /// Is told once if the ring meets a fault (`VHOST_USER_SET_VRING_ERR`).
    pub error: Arc<CallLine>,
}

/// Where a ring stands. Written by the ring at the end of each batch and when it
/// is dropped; readable as long as anybody wants to know.
#[derive(Debug)]
pub struct RingState {
    next_avail: AtomicU16,
    fault: OnceLock<RingFault>,
}

impl RingState {
    fn new(base: u16) -> Self {
        Self { next_avail: AtomicU16::new(base), fault: OnceLock::new() }
    }

    /// The next available entry that will be taken: everything before it was
    /// used. Exact once the ring is dropped.
    pub fn next_avail(&self) -> u16 {
        self.next_avail.load(Ordering::Acquire)
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

/// A chain's first descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) index: u16,
    pub(crate) first: Descriptor,
}

/// Which way the device uses a ring's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Chains whose first descriptors were fetched ahead of their use.
struct Ahead {
    heads: [Head; BATCH_FRAMES_MAX],
    filled: usize,
    taken: usize,
}

/// A position to come back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    next_avail: u16,
    next_used: u16,
}

/// The queue. `next_used` runs ahead of `published_used` until
/// [`SplitQueue::publish`].
pub(crate) struct SplitQueue {
    pub(crate) cells: RingCells,
    pub(crate) view: MemoryView,
    pub(crate) features: RingFeatures,
    queue: u16,
    pub(crate) access: Access,
    ahead: Ahead,
    /// The driver's index when it was last read.
    avail_seen: u16,
    next_avail: u16,
    next_used: u16,
    published_used: u16,
    /// The used index when an interrupt was last decided on.
    asked_used: Option<u16>,
    /// The event index that suppresses kicks, while they are suppressed.
    parked: Option<u16>,
    faults_seen: u64,
    fault: Option<RingFault>,
    call: Arc<CallLine>,
    error: Arc<CallLine>,
    state: Arc<RingState>,
}

impl SplitQueue {
    pub(crate) fn new(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        access: Access,
    ) -> Result<Self, RingFault> {
        let cells = RingCells::locate(&memory, setup.queue, setup.size, setup.addresses)?;
        let used = cells.used_idx();
        let mut queue = Self {
            cells,
            view: MemoryView::new(memory),
            features: setup.features,
            queue: setup.queue,
            access,
            ahead: Ahead { heads: [Head::default(); BATCH_FRAMES_MAX], filled: 0, taken: 0 },
            avail_seen: setup.base,
            next_avail: setup.base,
            next_used: used,
            published_used: used,
            asked_used: None,
            parked: None,
            faults_seen: memory_faults(),
            fault: None,
            call: Arc::clone(&setup.call),
            error: Arc::clone(&setup.error),
            state: Arc::new(RingState::new(setup.base)),
        };
        queue.park();
        Ok(queue)
    }

    pub(crate) fn state(&self) -> &Arc<RingState> {
        &self.state
    }

    pub(crate) fn size(&self) -> u16 {
        self.cells.size()
    }

    pub(crate) fn queue(&self) -> u16 {
        self.queue
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

    /// Fetches up to a batch of chains if none is at hand, and asks for their
    /// buffers. Returns how many are at hand.
    #[inline]
    pub(crate) fn look_ahead(&mut self) -> Result<usize, RingFault> {
        let at_hand = self.ahead.filled - self.ahead.taken;
        if at_hand > 0 {
            return Ok(at_hand);
        }
        if self.avail_seen == self.next_avail {
            self.read_avail()?;
        }
        let waiting = self.avail_seen.wrapping_sub(self.next_avail);
        let count = usize::from(waiting).min(BATCH_FRAMES_MAX);
        self.fetch(count)?;
        Ok(count)
    }

    /// Fetches the next chains before they are needed, so that their lines come
    /// while something else is done. Worth it only if few are at hand.
    #[inline]
    pub(crate) fn prefetch_ahead(&mut self) -> Result<(), RingFault> {
        if self.ahead.filled - self.ahead.taken >= BATCH_FRAMES_MAX / 2 {
            return Ok(());
        }
        let mut waiting = usize::from(self.avail_seen.wrapping_sub(self.next_avail));
        if waiting < BATCH_FRAMES_MAX && self.access == Access::Write {
            self.read_avail()?;
            waiting = usize::from(self.avail_seen.wrapping_sub(self.next_avail));
        }
        self.fetch(waiting.min(BATCH_FRAMES_MAX))
    }

    /// Reads the driver's index.
    fn read_avail(&mut self) -> Result<(), RingFault> {
        let faults = memory_faults();
        if faults != self.faults_seen {
            self.faults_seen = faults;
            if self.view.memory().is_faulted() {
                return Err(RingFault::MemoryGone { queue: self.queue });
            }
        }
        let avail = self.cells.avail_idx();
        let ahead = avail.wrapping_sub(self.next_avail);
        if ahead > self.size() {
            return Err(RingFault::AvailIndex {
                queue: self.queue,
                avail,
                next: self.next_avail,
                ahead,
                size: self.size(),
            });
        }
        self.avail_seen = avail;
        Ok(())
    }

    /// Fetches `count` chains' first descriptors: first asks for all the lines,
    /// then reads them, so that the misses overlap.
    fn fetch(&mut self, count: usize) -> Result<(), RingFault> {
        self.ahead.filled = 0;
        self.ahead.taken = 0;
        let size = self.size();
        let mut at = self.next_avail;
        for head in self.ahead.heads.iter_mut().take(count) {
            let index = self.cells.avail_entry(at);
            if index >= size {
                return Err(RingFault::DescriptorIndex {
                    queue: self.queue,
                    field: "available ring",
                    index,
                    size: u32::from(size),
                });
            }
            head.index = index;
            self.cells.prefetch_descriptor(index);
            at = at.wrapping_add(1);
        }
        self.cells.prefetch_used(self.next_used, count);
        for head in self.ahead.heads.iter_mut().take(count) {
            head.first = self.cells.descriptor(head.index);
        }
        self.ahead.filled = count;
        for nth in 0..PREFETCH_DISTANCE {
            self.prefetch_buffer(nth);
        }
        Ok(())
    }

    /// Asks for the lines of a buffer at hand.
    #[inline(always)]
    fn prefetch_buffer(&self, nth: usize) {
        if nth >= self.ahead.filled {
            return;
        }
        let Some(head) = self.ahead.heads.get(nth) else { return };
        match self.access {
            Access::Read => self.view.prefetch_read(head.first.addr),
            Access::Write => {
                let header_bytes = self.features.header_bytes();
                self.view.prefetch_write(head.first.addr, header_bytes);
            }
        }
    }

    /// The next chain at hand, without taking it.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<Head> {
        if self.ahead.taken == self.ahead.filled {
            return None;
        }
        self.ahead.heads.get(self.ahead.taken).copied()
    }

    /// Takes the chain that [`SplitQueue::peek`] showed, and writes its used
    /// entry: the device wrote `written` bytes into it.
    #[inline(always)]
    pub(crate) fn complete(&mut self, head: u16, written: u32) {
        self.cells.write_used(self.next_used, head, written);
        self.next_used = self.next_used.wrapping_add(1);
        self.next_avail = self.next_avail.wrapping_add(1);
        self.ahead.taken += 1;
        self.prefetch_buffer(self.ahead.taken + PREFETCH_DISTANCE - 1);
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { next_avail: self.next_avail, next_used: self.next_used }
    }

    /// Forgets every chain completed since `mark`; none may be published.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        if self.next_avail != mark.next_avail {
            self.next_avail = mark.next_avail;
            self.next_used = mark.next_used;
            self.ahead.filled = 0;
            self.ahead.taken = 0;
        }
    }

    /// Whether completed chains wait to be published.
    pub(crate) fn has_unpublished(&self) -> bool {
        self.next_used != self.published_used
    }

    /// Makes completed chains visible, and interrupts the driver if it asked.
    pub(crate) fn publish(&mut self) {
        if !self.has_unpublished() {
            return;
        }
        self.cells.publish_used(self.next_used);
        self.published_used = self.next_used;
        self.state.next_avail.store(self.next_avail, Ordering::Release);
        if let Some(parked) = self.parked {
            if arming::is_park_stale(parked, self.next_avail) {
                self.park();
            }
        }
        let event_idx = self.features.event_idx();
        let before = self.asked_used.replace(self.next_used);
        if arming::wants_interrupt(&self.cells, event_idx, before, self.next_used)
            || (self.features.notify_on_empty() && self.cells.avail_idx() == self.next_avail)
        {
            self.call.ring();
        }
    }

    /// Asks the driver to kick when the next chain is available.
    pub(crate) fn arm(&mut self) -> Wakeup {
        if self.fault.is_some() || self.ahead.filled != self.ahead.taken {
            return Wakeup::Pending;
        }
        let armed = arming::arm(&self.cells, self.features.event_idx(), self.next_avail);
        if armed == Wakeup::Armed {
            self.parked = None;
        }
        armed
    }

    /// Tells the driver not to kick.
    pub(crate) fn park(&mut self) {
        if self.fault.is_none() {
            let event_idx = self.features.event_idx();
            self.parked = Some(arming::park(&self.cells, event_idx, self.next_avail));
        }
    }

    /// The fault of a buffer that is not in memory.
    #[cold]
    pub(crate) fn outside(&self, head: u16, address: u64, bytes: usize) -> RingFault {
        RingFault::BufferAddress { queue: self.queue, head, address, bytes: bytes as u64 }
    }
}

impl Drop for SplitQueue {
    fn drop(&mut self) {
        // What was completed belongs to the driver; the next device would use it
        // again.
        self.publish();
        self.state.next_avail.store(self.next_avail, Ordering::Release);
    }
}
