//! Public transmit and receive rings, independent of the form of the virtqueue (split or packed)
//! and of its records.
//!
//! Each combination is compiled separately and selected by one dynamic call per batch (transmit) or
//! frame (receive). Callers that need a trait object take it from the ring
//! ([`TxRing::into_source`], [`RxRing::into_sink`]) at no additional cost.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::{ArmResult, FrameSink, FrameSource, QueueFault, TransmitResult};

use crate::memory::GuestMemory;
use crate::packed::PackedQueue;
use crate::rx_ring::{OffloadMask, RxEngine};
use crate::setup::{RingSetup, RingTracking};
use crate::split::SplitQueue;
use crate::tx_ring::{RarpAnnouncer, TxEngine};
use crate::virtqueue::{Access, RingState, Virtqueue};

/// Transmit ring of a VM. Copies frames and returns their chains in the same call, so that the
/// guest may reuse its buffers at once. Exception: the payload of large frames is not copied by
/// this ring. A batch with such frames is returned when it is released.
pub struct TxRing {
    source: Box<dyn FrameSource>,
    state: Arc<RingState>,
    announcer: Arc<RarpAnnouncer>,
}

impl TxRing {
    /// Creates a running ring without a dirty page log and without in-flight tracking.
    ///
    /// # Errors
    /// As [`TxRing::with_tracking`].
    pub fn new(memory: Arc<GuestMemory>, setup: &RingSetup) -> Result<Self, QueueFault> {
        Self::with_tracking(memory, setup, RingTracking::default())
    }

    /// Creates a running ring. Kicks are suppressed until it is armed.
    ///
    /// # Errors
    /// The ring's size, areas or records are invalid, as [`RingFault`](crate::RingFault) reports,
    /// or no file descriptor is available.
    pub fn with_tracking(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingTracking,
    ) -> Result<Self, QueueFault> {
        let access = Access::Read;
        // The entry that returns a whole batch is written by the variant with `RECORDS`.
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

    fn over<Q: Virtqueue + 'static>(queue: Q, setup: &RingSetup) -> Result<Self, QueueFault> {
        let state = Arc::clone(&queue.queue_state().state);
        let engine = TxEngine::new(queue, setup)?;
        Ok(Self { state, announcer: engine.announcer(), source: Box::new(engine) })
    }

    /// Returns the ring's position and fault state, which outlive the ring.
    pub fn state(&self) -> Arc<RingState> {
        Arc::clone(&self.state)
    }

    /// Returns the handle with which other threads make the ring announce the VM's MAC address.
    pub fn announcer(&self) -> Arc<RarpAnnouncer> {
        Arc::clone(&self.announcer)
    }

    /// Returns the ring as a trait object.
    pub fn into_source(self) -> Box<dyn FrameSource> {
        self.source
    }
}

impl FrameSource for TxRing {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        self.source.receive(batch)
    }

    fn release(&mut self) {
        self.source.release();
    }

    fn arm(&mut self) -> ArmResult {
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

    fn malformed_frames(&self) -> u64 {
        self.source.malformed_frames()
    }
}

/// Receive ring of a VM. With mergeable buffers a frame may fill several chains; otherwise it must
/// fit into one chain. A frame that does not fit is not accepted and leaves the ring unchanged.
pub struct RxRing {
    sink: Box<dyn FrameSink>,
    state: Arc<RingState>,
}

impl RxRing {
    /// Creates a running ring without a dirty page log and without in-flight tracking.
    ///
    /// # Errors
    /// As [`RxRing::with_tracking`].
    pub fn new(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        mask: Arc<OffloadMask>,
    ) -> Result<Self, QueueFault> {
        Self::with_tracking(memory, setup, RingTracking::default(), mask)
    }

    /// Creates a running ring. Kicks are suppressed permanently: new buffers are detected when a
    /// frame is to be delivered. `mask` limits the offloads of delivered frames.
    ///
    /// # Errors
    /// The ring's size, areas or records are invalid, as [`RingFault`](crate::RingFault) reports.
    pub fn with_tracking(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingTracking,
        mask: Arc<OffloadMask>,
    ) -> Result<Self, QueueFault> {
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
        let state = Arc::clone(&queue.queue_state().state);
        Self { state, sink: Box::new(RxEngine::new(queue, setup, mask)) }
    }

    /// Returns the ring's position and fault state, which outlive the ring.
    pub fn state(&self) -> Arc<RingState> {
        Arc::clone(&self.state)
    }

    /// Returns the ring as a trait object.
    pub fn into_sink(self) -> Box<dyn FrameSink> {
        self.sink
    }
}

impl FrameSink for RxRing {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        self.sink.transmit(frame)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.sink.flush()
    }

    fn offloads(&self) -> Offloads {
        self.sink.offloads()
    }

    fn reads_tails(&self) -> bool {
        self.sink.reads_tails()
    }
}
