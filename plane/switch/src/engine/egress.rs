//! Egress side of a worker: delivery of frames with a forwarding decision to its own queues and to
//! other workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_forwarding::{DropReason, FloodKind, PortSlot};
use suimon_frame::{Frame, VlanId, flow_hash};
use suimon_ports::{QueueFault, ServedDevice};
use suimon_quantity::{Direction, QueueId};

use super::batch_context::BatchContext;
use crate::frame_sender::FrameSender;
use crate::handover::{QueueLocation, QueueLocations};
use crate::notice::{Notices, SwitchNotice};
use crate::outbox::WorkerOutbox;
use crate::owned::OwnedSink;
use crate::published::PublishedTables;
use crate::queue_accounting::QueueAccounting;
use crate::routes::{EgressTarget, Route, Routes};
use crate::stage_clock::StageProbe;
use crate::worker_mailbox::{FrameMessage, WorkerMailbox, WorkerMailboxes, return_to_sender};

/// Maximum number of frame messages buffered for one queue that is being moved to this worker: the
/// number that its sender and some others may have in flight.
const BUFFERED_MAX: usize = 4096;

/// Egress queues of a worker, and its outgoing messages to other workers.
pub(super) struct Egress {
    pub(super) mailbox: Arc<WorkerMailbox>,
    pub(super) sinks: Vec<Option<Box<OwnedSink>>>,
    pub(super) sink_by_queue: BTreeMap<QueueId, usize>,
    /// Indices in `sinks` of sinks to flush.
    pub(super) sinks_to_flush: Vec<usize>,
    pub(super) locations: QueueLocations<FrameMessage>,
    pub(super) routes: Routes,
    pub(super) frame_sender: FrameSender,
    pub(super) outbox: WorkerOutbox,
    pub(super) accounting: QueueAccounting,
    pub(super) notices: Arc<Notices>,
}

impl Egress {
    pub(super) fn new(link: Arc<WorkerMailbox>, notices: Arc<Notices>) -> Self {
        Self {
            locations: QueueLocations::new(link.id),
            frame_sender: FrameSender::new(Arc::clone(&link)),
            mailbox: link,
            sinks: Vec::new(),
            sink_by_queue: BTreeMap::new(),
            sinks_to_flush: Vec::new(),
            routes: Routes::default(),
            outbox: WorkerOutbox::default(),
            accounting: QueueAccounting::default(),
            notices,
        }
    }

    pub(super) fn handle_drop(&self, batch: &BatchContext<'_>, reason: DropReason, frame: &Frame) {
        let port = match &batch.receiving_member {
            Some(arrival) if reason == DropReason::OtherMember => arrival.port,
            _ => batch.port,
        };
        port.shared.counters.count_rx_drop(reason, 1);
        if reason == DropReason::SpoofedSource && port.shared.spoofing_reports.try_report(batch.now)
        {
            let notice = SwitchNotice::SpoofedSource { port: port.shared.id, mac: frame.source() };
            self.notices.send(notice);
        }
    }

    pub(super) fn flood(
        &mut self,
        batch: &BatchContext<'_>,
        (vlan, kind): (Option<VlanId>, FloodKind),
        frame: &mut Frame,
        probe: &mut StageProbe<'_>,
    ) {
        let BatchContext { now, published, ingress, port, .. } = *batch;
        if let Some(limit) = &port.storm_limit {
            if !limit.admit(now, 1) {
                port.shared.counters.count_rx_drop(DropReason::StormLimit, 1);
                if port.shared.storm_reports.try_report(now) {
                    self.notices.send(SwitchNotice::StormLimited { port: port.shared.id });
                }
                return;
            }
        }
        port.shared.counters.flooded.add(1);
        let tag = frame.meta.tag;
        let mut members = 0;
        let mut other_members = 0;
        for member in published.forwarding_tables.flood_members(ingress, vlan, kind) {
            let arrival = batch.receiving_member.as_ref();
            if arrival.is_some_and(|arrival| !arrival.may_deliver_to(published, member.slot)) {
                other_members += 1;
                continue;
            }
            members += 1;
            match published.forwarding_tables.check_copy(member, frame) {
                Ok(()) => {
                    frame.meta.tag = member.rule.apply(tag);
                    self.deliver(batch, member.slot, frame, false, probe);
                }
                Err(reason) => {
                    if let Some(port) = published.ports.get(member.slot.index()) {
                        port.shared.counters.count_tx_drop(reason, 1);
                    }
                }
            }
        }
        if members == 0 {
            let reason =
                if other_members > 0 { DropReason::OtherMember } else { DropReason::NoDestination };
            self.handle_drop(batch, reason, frame);
        }
    }

    /// Delivers one frame to one port. With `is_only`, this is the frame's only destination, so its
    /// buffer may be taken.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        batch: &BatchContext<'_>,
        egress: PortSlot,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut StageProbe<'_>,
    ) {
        match self.routes.egress_target(egress.index()) {
            EgressTarget::Sink(sink) => self.transmit(batch.published, sink as usize, frame, probe),
            EgressTarget::Queues => {
                self.deliver_to_queue(batch, egress.index(), frame, is_only, probe);
            }
            EgressTarget::Team(team) => {
                self.deliver_to_team(batch, team as usize, frame, is_only, probe);
            }
        }
    }

    /// Delivers one frame to a queue of the port at index `egress` of [`PublishedTables::ports`],
    /// which is not a team.
    #[inline]
    pub(super) fn deliver_to_queue(
        &mut self,
        batch: &BatchContext<'_>,
        egress: usize,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut StageProbe<'_>,
    ) {
        let BatchContext { now, published, .. } = *batch;
        let Some(port) = published.ports.get(egress) else { return };
        let queues = port.egress_queues.len();
        let index = match queues {
            0 => return port.shared.counters.count_tx_drop(DropReason::EgressDown, 1),
            1 => port.egress_queues.start,
            _ => port.egress_queues.start + flow_hash(frame) as usize % queues,
        };
        if let Some(tap) = &port.capture {
            frame.linearize();
            tap.capture_frame(now, Direction::Egress, frame);
        }
        let (queue, _) = published.owners[index];
        match self.routes.queue_route(index) {
            Route::Sink(sink) => self.transmit(published, sink, frame, probe),
            Route::OtherWorker(owner) => {
                if !self.frame_sender.add(owner, queue, frame, is_only) {
                    port.shared.counters.count_tx_drop(DropReason::EgressFull, 1);
                }
            }
            Route::MovingHere => {
                if !self.buffer(queue, frame, is_only) {
                    port.shared.counters.count_tx_drop(DropReason::EgressFull, 1);
                }
            }
            Route::Drop => port.shared.counters.count_tx_drop(DropReason::EgressDown, 1),
        }
    }

    #[inline]
    pub(super) fn transmit(
        &mut self,
        published: &PublishedTables,
        index: usize,
        frame: &mut Frame,
        probe: &mut StageProbe<'_>,
    ) {
        let Some(Some(sink)) = self.sinks.get_mut(index) else { return };
        if !sink.needs_flush() {
            self.sinks_to_flush.push(index);
        }
        self.mailbox.round_progress.served_device.set(ServedDevice::Port(sink.id.port));
        if let Err(fault) = sink.transmit(frame, probe) {
            self.abandon_sink(published, index, fault);
        }
    }

    /// Delivers one frame to one member of a team. The member is selected for the whole frame,
    /// before segmentation.
    pub(super) fn deliver_to_team(
        &mut self,
        batch: &BatchContext<'_>,
        team: usize,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut StageProbe<'_>,
    ) {
        let Some(team) = batch.teams.get(team) else { return };
        let Some((index, source)) =
            team.select_egress_member(batch.published, (batch.now, batch.port_id), frame)
        else {
            return;
        };
        let original = source.map(|source| {
            let original = frame.source();
            frame.set_source(source);
            original
        });
        if let Some(tap) = &team.capture {
            frame.linearize();
            tap.capture_frame(batch.now, Direction::Egress, frame);
        }
        match self.routes.egress_target(index) {
            EgressTarget::Sink(sink) => self.transmit(batch.published, sink as usize, frame, probe),
            _ => self.deliver_to_queue(batch, index, frame, is_only, probe),
        }
        if let Some(original) = original.filter(|_| !is_only) {
            frame.set_source(original);
        }
    }

    fn buffer(&mut self, queue: QueueId, frame: &mut Frame, is_only: bool) -> bool {
        let Some(message) =
            self.frame_sender.create_message(self.mailbox.id, queue, frame, is_only)
        else {
            return false;
        };
        match self.locations.buffer(queue, message, BUFFERED_MAX) {
            Ok(()) => true,
            Err(message) => {
                return_to_sender(message);
                false
            }
        }
    }

    fn abandon_sink(&mut self, published: &PublishedTables, index: usize, fault: QueueFault) {
        if let Some(mut sink) = self.sinks.get_mut(index).and_then(Option::take) {
            self.sink_by_queue.remove(&sink.id);
            self.accounting.remove_queue(&mut sink.cost);
            self.notices.report_fault(sink.id, &sink.drop_reporter, fault);
            self.resolve_routes(published);
        }
    }

    /// Makes all frames passed to sinks since the last flush visible to their receivers.
    pub(super) fn flush(&mut self, published: &PublishedTables) {
        let mut touched = std::mem::take(&mut self.sinks_to_flush);
        for index in touched.drain(..) {
            let Some(Some(sink)) = self.sinks.get_mut(index) else { continue };
            let (frames, bytes) = sink.unflushed_frames_and_bytes();
            self.accounting.charge_egress(&sink.cost, frames, bytes);
            self.mailbox.round_progress.served_device.set(ServedDevice::Port(sink.id.port));
            if let Err(fault) = sink.flush() {
                self.abandon_sink(published, index, fault);
            }
        }
        self.sinks_to_flush = touched;
        if !self.outbox.is_empty() {
            self.outbox.retry();
        }
    }

    /// Returns true if frames were passed to a sink since the last [`Egress::flush`].
    pub(super) fn needs_flush(&self) -> bool {
        !self.sinks_to_flush.is_empty()
    }

    /// Sends the frame messages filled by a batch to the workers that own their queues.
    pub(super) fn send_frame_messages(&mut self, links: &WorkerMailboxes) {
        self.frame_sender.send_all(links, &mut self.outbox);
    }

    /// Delivers frames for which another worker has made the forwarding decision to a queue of this
    /// worker.
    pub(super) fn handle_frame_message(
        &mut self,
        published: &PublishedTables,
        mut message: FrameMessage,
        probe: &mut StageProbe<'_>,
    ) {
        let queue = message.queue;
        let frames = message.frames.len() as u64;
        if let Some(&index) = self.sink_by_queue.get(&queue) {
            for frame in &mut message.frames {
                self.transmit(published, index, frame, probe);
            }
            return return_to_sender(message);
        }
        match self.locations.location_for_received(queue) {
            QueueLocation::MovingHere => {
                let Err(refused) = self.locations.buffer(queue, message, BUFFERED_MAX) else {
                    return;
                };
                count_lost(published, queue, frames);
                message = refused;
            }
            QueueLocation::ThisWorker
            | QueueLocation::OtherWorker(_)
            | QueueLocation::UnknownQueue => {
                count_lost(published, queue, frames);
            }
        }
        return_to_sender(message);
    }

    pub(super) fn resolve_routes(&mut self, published: &PublishedTables) {
        self.routes.recompute(published, &self.locations, &self.sink_by_queue);
    }
}

/// Counts frames as dropped for a queue that this worker does not own and that is not being moved
/// to it.
fn count_lost(published: &PublishedTables, queue: QueueId, frames: u64) {
    if let Some(port) = published.port(queue.port) {
        port.shared.counters.count_tx_drop(DropReason::EgressFull, frames);
    }
}
