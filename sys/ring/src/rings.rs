//! The rings as their users see them: whatever the form of the virtqueue and
//! whatever is written down beside, one transmit and one receive ring.
//!
//! Each combination is compiled for itself, and which one it is is found out by
//! one call through a table per batch (transmit) or frame (receive). Those who
//! hold a trait object anyway take it out ([`TxRing::into_source`],
//! [`RxRing::into_sink`]) and pay nothing.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::{FrameSink, FrameSource, PortFault, Sent, Wakeup};

use crate::memory::GuestMemory;
use crate::packed::PackedQueue;
use crate::rx_ring::{OffloadMask, RxEngine};
use crate::setup::{RingRecords, RingSetup};
use crate::split::SplitQueue;
use crate::tx_ring::{Announcer, TxEngine};
use crate::virtqueue::{Access, RingState, Virtqueue};

/// A VM's transmit ring. Frames are copied out and their chains returned in the
/// same call, so the guest may reuse its buffers at once. Only if large frames are
/// among them, whose payload is not copied here, are they returned when the batch is
/// released.
pub struct TxRing {
    source: Box<dyn FrameSource>,
    state: Arc<RingState>,
    announcer: Arc<Announcer>,
}

impl TxRing {
    /// A running ring that writes nothing down.
    ///
    /// # Errors
    /// As [`TxRing::recording`].
    pub fn new(memory: Arc<GuestMemory>, setup: &RingSetup) -> Result<Self, PortFault> {
        Self::recording(memory, setup, RingRecords::default())
    }

    /// A running ring. Kicks are suppressed until it is armed.
    ///
    /// # Errors
    /// The ring's size, areas or records are no good, as
    /// [`RingFault`](crate::RingFault) says, or the host has no descriptor to
    /// spare.
    pub fn recording(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingRecords,
    ) -> Result<Self, PortFault> {
        let access = Access::Read;
        // The entry that returns a whole batch is written by the recording form.
        let is_plain =
            records.is_empty() && (setup.features.packed() || !setup.features.in_order());
        match (setup.features.packed(), is_plain) {
            (false, true) => {
                Self::over(SplitQueue::<false>::new(memory, setup, records, access)?, setup)
            }
            (false, false) => {
                Self::over(SplitQueue::<true>::new(memory, setup, records, access)?, setup)
            }
            (true, true) => {
                Self::over(PackedQueue::<false>::new(memory, setup, records, access)?, setup)
            }
            (true, false) => {
                Self::over(PackedQueue::<true>::new(memory, setup, records, access)?, setup)
            }
        }
    }

    fn over<Q: Virtqueue + 'static>(queue: Q, setup: &RingSetup) -> Result<Self, PortFault> {
        let state = Arc::clone(&queue.side().state);
        let engine = TxEngine::new(queue, setup)?;
        Ok(Self { state, announcer: engine.announcer(), source: Box::new(engine) })
    }

    /// Where the ring stands, also after it is gone.
    pub fn state(&self) -> Arc<RingState> {
        Arc::clone(&self.state)
    }

    /// A way to speak up for the VM.
    pub fn announcer(&self) -> Arc<Announcer> {
        Arc::clone(&self.announcer)
    }

    /// The ring, for its owner.
    pub fn into_source(self) -> Box<dyn FrameSource> {
        self.source
    }
}

impl FrameSource for TxRing {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault> {
        self.source.receive(batch)
    }

    fn release(&mut self) {
        self.source.release();
    }

    fn arm(&mut self) -> Wakeup {
        self.source.arm()
    }

    fn disarm(&mut self) {
        self.source.disarm();
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.source.wake_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        self.source.is_polled_by_fd()
    }

    fn malformed(&self) -> u64 {
        self.source.malformed()
    }
}

/// A VM's receive ring. With mergeable buffers a frame may fill several chains;
/// without, it goes into one or not at all. A frame that finds no room leaves
/// the ring as it was.
pub struct RxRing {
    sink: Box<dyn FrameSink>,
    state: Arc<RingState>,
}

impl RxRing {
    /// A running ring that writes nothing down.
    ///
    /// # Errors
    /// As [`RxRing::recording`].
    pub fn new(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        mask: Arc<OffloadMask>,
    ) -> Result<Self, PortFault> {
        Self::recording(memory, setup, RingRecords::default(), mask)
    }

    /// A running ring. The driver is told never to kick: new buffers are found
    /// when there is a frame for them.
    ///
    /// # Errors
    /// The ring's size, areas or records are no good, as
    /// [`RingFault`](crate::RingFault) says.
    pub fn recording(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingRecords,
        mask: Arc<OffloadMask>,
    ) -> Result<Self, PortFault> {
        let access = Access::Write;
        Ok(match (setup.features.packed(), records.is_empty()) {
            (false, true) => {
                Self::over(SplitQueue::<false>::new(memory, setup, records, access)?, setup, mask)
            }
            (false, false) => {
                Self::over(SplitQueue::<true>::new(memory, setup, records, access)?, setup, mask)
            }
            (true, true) => {
                Self::over(PackedQueue::<false>::new(memory, setup, records, access)?, setup, mask)
            }
            (true, false) => {
                Self::over(PackedQueue::<true>::new(memory, setup, records, access)?, setup, mask)
            }
        })
    }

    fn over<Q: Virtqueue + 'static>(queue: Q, setup: &RingSetup, mask: Arc<OffloadMask>) -> Self {
        let state = Arc::clone(&queue.side().state);
        Self { state, sink: Box::new(RxEngine::new(queue, setup, mask)) }
    }

    /// Where the ring stands, also after it is gone.
    pub fn state(&self) -> Arc<RingState> {
        Arc::clone(&self.state)
    }

    /// The ring, for its owner.
    pub fn into_sink(self) -> Box<dyn FrameSink> {
        self.sink
    }
}

impl FrameSink for RxRing {
    fn transmit(&mut self, frame: &Frame) -> Result<Sent, PortFault> {
        self.sink.transmit(frame)
    }

    fn flush(&mut self) -> Result<(), PortFault> {
        self.sink.flush()
    }

    fn offloads(&self) -> Offloads {
        self.sink.offloads()
    }

    fn reads_tails(&self) -> bool {
        self.sink.reads_tails()
    }
}
