//! Ingress and egress queues with the state of the worker that owns them.

use std::sync::Arc;

use suimon_forwarding::DropReason;
use suimon_frame::{Frame, Offloads, complete_checksum, segment};
use suimon_offload::{EgressStep, egress_step};
use suimon_ports::{FaultKind, FrameSink, FrameSource, QueueFault, TransmitResult};
use suimon_quantity::{QueueId, Time};

use crate::attachment::DropReporter;
use crate::counters::QueueCounters;
use crate::published::{Ingress, SharedPortState};
use crate::queue_accounting::QueueCost;
use crate::queue_record::QueueRecord;
use crate::stage::Stage;
use crate::stage_clock::StageProbe;

/// State of an ingress queue between polling and sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The queue is polled, and its notifications are disabled.
    Polling,
    /// The queue is not polled; its descriptor becomes readable when frames arrive.
    Waiting,
    /// The port's bandwidth limit is exceeded until this time; the queue is neither polled nor
    /// watched.
    Throttled(Time),
}

/// Ingress queue with the state of its owner.
pub(crate) struct OwnedSource {
    pub id: QueueId,
    pub source: Box<dyn FrameSource>,
    pub shared: Arc<SharedPortState>,
    pub counters: Arc<QueueCounters>,
    pub readiness: Readiness,
    /// Port slot and team member that its frames are attributed to under the current tables; `None`
    /// if the tables do not contain the port.
    pub ingress: Option<Ingress>,
    pub cost: QueueCost,
    malformed: u64,
    pub drop_reporter: DropReporter,
}

impl OwnedSource {
    pub(crate) fn new(
        id: QueueId,
        source: Box<dyn FrameSource>,
        shared: Arc<SharedPortState>,
        record: &QueueRecord,
    ) -> Self {
        Self {
            id,
            source,
            shared,
            counters: Arc::clone(&record.counters),
            readiness: Readiness::Polling,
            ingress: None,
            cost: QueueCost::default(),
            malformed: 0,
            drop_reporter: DropReporter::new(&record.attachment),
        }
    }

    /// Counts `frames` received frames with `bytes` bytes, and frames that the source has dropped
    /// as malformed since the last call.
    pub(crate) fn count(&mut self, frames: u64, bytes: u64) {
        self.counters.frames.add(frames);
        self.counters.bytes.add(bytes);
        self.count_malformed();
    }

    /// Counts frames that the source has dropped as malformed since the last call.
    pub(crate) fn count_malformed(&mut self) {
        let malformed = self.source.malformed_frames();
        self.shared
            .counters
            .count_rx_drop(DropReason::Malformed, malformed.saturating_sub(self.malformed));
        self.malformed = malformed;
    }
}

/// Egress queue with the state of its owner.
pub(crate) struct OwnedSink {
    pub id: QueueId,
    pub sink: Box<dyn FrameSink>,
    pub shared: Arc<SharedPortState>,
    pub counters: Arc<QueueCounters>,
    /// True if the port accepts frames coalesced from segments.
    pub accepts_coalesced: bool,
    pub cost: QueueCost,
    unflushed: Unflushed,
    discarded: u64,
    /// Offloads that this worker has last reported to other workers.
    reported: Offloads,
    pub drop_reporter: DropReporter,
}

/// Frames passed to a sink since its last flush.
#[derive(Default)]
struct Unflushed {
    touched: bool,
    frames: u64,
    bytes: u64,
    full: u64,
}

impl OwnedSink {
    pub(crate) fn new(
        id: QueueId,
        sink: Box<dyn FrameSink>,
        shared: Arc<SharedPortState>,
        record: &QueueRecord,
    ) -> Self {
        let discarded = sink.discarded_frames();
        let offloads = sink.offloads();
        shared.accepted_offloads.set(offloads);
        Self {
            id,
            sink,
            shared,
            counters: Arc::clone(&record.counters),
            accepts_coalesced: true,
            cost: QueueCost::default(),
            unflushed: Unflushed::default(),
            discarded,
            reported: offloads,
            drop_reporter: DropReporter::new(&record.attachment),
        }
    }

    /// Returns true if [`OwnedSink::flush`] has work to do.
    pub(crate) fn needs_flush(&self) -> bool {
        self.unflushed.touched
    }

    /// Returns frames and bytes that the next [`OwnedSink::flush`] makes visible.
    pub(crate) fn unflushed_frames_and_bytes(&self) -> (u64, u64) {
        (self.unflushed.frames, self.unflushed.bytes)
    }

    /// Transmits a frame, after segmenting it or completing its checksum if the egress lacks the
    /// offload.
    pub(crate) fn transmit(
        &mut self,
        frame: &mut Frame,
        probe: &mut StageProbe<'_>,
    ) -> Result<(), QueueFault> {
        let is_plain = frame.meta.gso.is_none()
            && !matches!(frame.meta.checksum, suimon_frame::Checksum::Partial { .. });
        if is_plain {
            return self.hand_over_as_it_is(frame);
        }
        let mut offloads = self.sink.offloads();
        if frame.meta.is_coalesced && !self.accepts_coalesced {
            offloads = offloads.without_segmentation();
        }
        match egress_step(&frame.meta, offloads) {
            EgressStep::AsIs => self.hand_over_as_it_is(frame),
            EgressStep::CompleteChecksum => {
                probe.end_stage(Stage::CopyOut);
                complete_checksum(frame);
                probe.end_stage(Stage::Checksum);
                self.shared.counters.software_checksummed.add(1);
                self.hand_over(frame)
            }
            EgressStep::Segment { keeps_partial_checksum: partial_checksum } => {
                probe.end_stage(Stage::CopyOut);
                self.segment(frame, partial_checksum, probe)
            }
        }
    }

    fn segment(
        &mut self,
        frame: &mut Frame,
        partial_checksum: bool,
        probe: &mut StageProbe<'_>,
    ) -> Result<(), QueueFault> {
        match segment(frame, partial_checksum) {
            Ok(mut segments) => {
                self.shared.counters.software_segmented.add(1);
                // A partial checksum is part of the header.
                let stage = if partial_checksum { Stage::Segment } else { Stage::Checksum };
                while let Some(segment) =
                    segments.next_segment_timed(|| probe.end_stage(Stage::Segment))
                {
                    probe.end_stage(stage);
                    self.hand_over(segment)?;
                    probe.end_stage(Stage::CopyOut);
                }
            }
            // Sources only accept frames that can be segmented.
            Err(_) => self.shared.counters.count_tx_drop(DropReason::Malformed, 1),
        }
        Ok(())
    }

    /// Transmits a frame without modification; only such a frame may still have a tail.
    #[inline]
    fn hand_over_as_it_is(&mut self, frame: &mut Frame) -> Result<(), QueueFault> {
        if frame.has_tail() && !self.sink.reads_tails() {
            frame.linearize();
        }
        self.hand_over(frame)
    }

    fn hand_over(&mut self, frame: &Frame) -> Result<(), QueueFault> {
        self.unflushed.touched = true;
        match self.sink.transmit(frame)? {
            TransmitResult::Accepted => {
                self.unflushed.frames += 1;
                self.unflushed.bytes += frame.len() as u64;
            }
            TransmitResult::Full => self.unflushed.full += 1,
        }
        Ok(())
    }

    /// Makes all transmitted frames visible to the receiver, and counts them. Fails if the queue
    /// has failed permanently.
    pub(crate) fn flush(&mut self) -> Result<(), QueueFault> {
        let flushed = self.sink.flush();
        let offloads = self.sink.offloads();
        if offloads != self.reported {
            self.reported = offloads;
            self.shared.accepted_offloads.set(offloads);
        }
        let unflushed = std::mem::take(&mut self.unflushed);
        let discarded = self.sink.discarded_frames();
        self.shared
            .counters
            .count_tx_drop(DropReason::EgressDown, discarded.saturating_sub(self.discarded));
        self.discarded = discarded;
        self.counters.frames.add(unflushed.frames);
        self.counters.bytes.add(unflushed.bytes);
        self.counters.dropped_full.add(unflushed.full);
        self.shared.counters.count_tx_drop(DropReason::EgressFull, unflushed.full);
        flushed
    }
}

/// Creates the fault of a queue whose descriptor cannot be watched.
pub(crate) fn watch_fault(error: &std::io::Error) -> QueueFault {
    QueueFault {
        kind: FaultKind::SystemCallFailed,
        detail: format!("the descriptor of the queue cannot be polled: {error}"),
    }
}
