//! Queues as their owning processor holds them.

use std::sync::Arc;

use suimon_forwarding::DropReason;
use suimon_frame::{Frame, Offloads, complete_checksum, segment};
use suimon_offload::{EgressStep, plan};
use suimon_ports::{FaultKind, FrameSink, FrameSource, PortFault, Sent};
use suimon_quantity::{QueueId, Time};

use crate::ledger::QueueCost;
use crate::published::{Ingress, PortShared};
use crate::stages::{Probe, Stage};
use crate::tally::QueueTally;

/// Where an ingress queue stands on the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// It is polled, and its notifications are off.
    Polling,
    /// Its descriptor becomes readable when there is something.
    Waiting,
    /// Its port's bandwidth is used up until then; it is left alone.
    Throttled(Time),
}

/// An ingress queue in the hands of its owner.
pub(crate) struct OwnedSource {
    pub id: QueueId,
    pub source: Box<dyn FrameSource>,
    pub shared: Arc<PortShared>,
    pub tally: Arc<QueueTally>,
    pub readiness: Readiness,
    /// As what its frames are handled under the present tables.
    pub ingress: Option<Ingress>,
    pub cost: QueueCost,
    malformed: u64,
}

impl OwnedSource {
    pub(crate) fn new(
        id: QueueId,
        source: Box<dyn FrameSource>,
        shared: Arc<PortShared>,
        tally: Arc<QueueTally>,
    ) -> Self {
        let (readiness, cost) = (Readiness::Polling, QueueCost::default());
        Self { id, source, shared, tally, readiness, ingress: None, cost, malformed: 0 }
    }

    /// Counts what was received, and what the source had to drop meanwhile.
    pub(crate) fn count(&mut self, frames: u64, bytes: u64) {
        self.tally.frames.add(frames);
        self.tally.bytes.add(bytes);
        self.count_malformed();
    }

    /// Counts what the source had to drop since it was last asked.
    pub(crate) fn count_malformed(&mut self) {
        let malformed = self.source.malformed();
        self.shared.tally.drop_rx(DropReason::Malformed, malformed.saturating_sub(self.malformed));
        self.malformed = malformed;
    }
}

/// An egress queue in the hands of its owner.
pub(crate) struct OwnedSink {
    pub id: QueueId,
    pub sink: Box<dyn FrameSink>,
    pub shared: Arc<PortShared>,
    pub tally: Arc<QueueTally>,
    /// Whether its port takes large frames that were joined from segments.
    pub takes_coalesced: bool,
    pub cost: QueueCost,
    unflushed: Unflushed,
    discarded: u64,
    /// What it last told others that it takes.
    told: Offloads,
}

/// What was handed to a sink since it was last flushed.
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
        shared: Arc<PortShared>,
        tally: Arc<QueueTally>,
    ) -> Self {
        let discarded = sink.discarded();
        let (cost, unflushed) = (QueueCost::default(), Unflushed::default());
        let told = sink.offloads();
        shared.egress_forms.set(told);
        Self { id, sink, shared, tally, takes_coalesced: true, cost, unflushed, discarded, told }
    }

    /// Whether [`OwnedSink::flush`] has something to do.
    pub(crate) fn is_touched(&self) -> bool {
        self.unflushed.touched
    }

    /// Frames and their bytes that the next [`OwnedSink::flush`] makes visible.
    pub(crate) fn unflushed(&self) -> (u64, u64) {
        (self.unflushed.frames, self.unflushed.bytes)
    }

    /// Hands a frame over, after doing in software what this egress lacks.
    pub(crate) fn transmit(
        &mut self,
        frame: &mut Frame,
        probe: &mut Probe<'_>,
    ) -> Result<(), PortFault> {
        let is_plain = frame.meta.gso.is_none()
            && !matches!(frame.meta.checksum, suimon_frame::Checksum::Partial { .. });
        if is_plain {
            return self.hand_over_as_it_is(frame);
        }
        let mut offloads = self.sink.offloads();
        if frame.meta.is_coalesced && !self.takes_coalesced {
            offloads = offloads.without_segmentation();
        }
        match plan(&frame.meta, offloads) {
            EgressStep::AsIs => self.hand_over_as_it_is(frame),
            EgressStep::CompleteChecksum => {
                probe.mark(Stage::CopyOut);
                complete_checksum(frame);
                probe.mark(Stage::Checksum);
                self.shared.tally.software_checksummed.add(1);
                self.hand_over(frame)
            }
            EgressStep::Segment { partial_checksum } => {
                probe.mark(Stage::CopyOut);
                self.segment(frame, partial_checksum, probe)
            }
        }
    }

    fn segment(
        &mut self,
        frame: &mut Frame,
        partial_checksum: bool,
        probe: &mut Probe<'_>,
    ) -> Result<(), PortFault> {
        match segment(frame, partial_checksum) {
            Ok(mut segments) => {
                self.shared.tally.software_segmented.add(1);
                // A partial checksum is a word of the header as others are.
                let rest = if partial_checksum { Stage::Segment } else { Stage::Checksum };
                while let Some(piece) = segments.next_segment_with(|| probe.mark(Stage::Segment)) {
                    probe.mark(rest);
                    self.hand_over(piece)?;
                    probe.mark(Stage::CopyOut);
                }
            }
            // Sources admit only frames that can be segmented.
            Err(_) => self.shared.tally.drop_tx(DropReason::Malformed, 1),
        }
        Ok(())
    }

    /// Hands a frame over that nothing was done to, so that it may have a tail.
    #[inline]
    fn hand_over_as_it_is(&mut self, frame: &mut Frame) -> Result<(), PortFault> {
        if frame.has_tail() && !self.sink.reads_tails() {
            frame.gather();
        }
        self.hand_over(frame)
    }

    fn hand_over(&mut self, frame: &Frame) -> Result<(), PortFault> {
        self.unflushed.touched = true;
        match self.sink.transmit(frame)? {
            Sent::Accepted => {
                self.unflushed.frames += 1;
                self.unflushed.bytes += frame.len() as u64;
            }
            Sent::Full => self.unflushed.full += 1,
        }
        Ok(())
    }

    /// Makes everything handed over visible, and counts it.
    pub(crate) fn flush(&mut self) -> Result<(), PortFault> {
        let flushed = self.sink.flush();
        let takes = self.sink.offloads();
        if takes != self.told {
            self.told = takes;
            self.shared.egress_forms.set(takes);
        }
        let unflushed = std::mem::take(&mut self.unflushed);
        let discarded = self.sink.discarded();
        self.shared.tally.drop_tx(DropReason::EgressDown, discarded.saturating_sub(self.discarded));
        self.discarded = discarded;
        self.tally.frames.add(unflushed.frames);
        self.tally.bytes.add(unflushed.bytes);
        self.tally.full.add(unflushed.full);
        self.shared.tally.drop_tx(DropReason::EgressFull, unflushed.full);
        flushed
    }
}

/// The fault of a descriptor that cannot be waited on.
pub(crate) fn unwatchable(error: &std::io::Error) -> PortFault {
    PortFault {
        kind: FaultKind::Host,
        detail: format!("its descriptor cannot be waited on: {error}"),
    }
}
