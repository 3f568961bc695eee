//! Egress side of a worker: delivery of frames with a forwarding decision to its own queues and to
//! other workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_forwarding::{DropReason, FloodKind, PortSlot};
use suimon_frame::{Frame, VlanId, flow_hash};
use suimon_ports::{PortFault, ServedDevice};
use suimon_quantity::{Direction, QueueId};

use super::batch::Batch;
use crate::handover::{QueueLocation, QueueLocations};
use crate::ledger::QueueAccounting;
use crate::link::{FrameMessage, Link, Links, return_to_owner};
use crate::notice::{Notices, SwitchNotice};
use crate::outbox::LinkOutbox;
use crate::owned::OwnedSink;
use crate::post::FrameSender;
use crate::published::Published;
use crate::routes::{EgressTarget, Route, Routes};
use crate::stages::Probe;

/// Maximum number of frame messages buffered for one queue that is being moved to this worker: the
/// number that its sender and some others may have in flight.
const BUFFERED_MAX: usize = 4096;

/// Egress queues of a worker, and its outgoing messages to other workers.
pub(super) struct Egress {
    pub(super) link: Arc<Link>,
    pub(super) sinks: Vec<Option<Box<OwnedSink>>>,
    pub(super) sink_by_queue: BTreeMap<QueueId, usize>,
    /// Indices in `sinks` of sinks to flush.
    pub(super) touched: Vec<usize>,
    pub(super) locations: QueueLocations<FrameMessage>,
    pub(super) routes: Routes,
    pub(super) frame_sender: FrameSender,
    pub(super) outbox: LinkOutbox,
    pub(super) accounting: QueueAccounting,
    pub(super) notices: Arc<Notices>,
}

impl Egress {
    pub(super) fn new(link: Arc<Link>, notices: Arc<Notices>) -> Self {
        Self {
            locations: QueueLocations::new(link.id),
            frame_sender: FrameSender::new(Arc::clone(&link)),
            link,
            sinks: Vec::new(),
            sink_by_queue: BTreeMap::new(),
            touched: Vec::new(),
            routes: Routes::default(),
            outbox: LinkOutbox::default(),
            accounting: QueueAccounting::default(),
            notices,
        }
    }

    pub(super) fn handle_drop(&self, batch: &Batch<'_>, reason: DropReason, frame: &Frame) {
        let port = match &batch.receiving_member {
            Some(arrival) if reason == DropReason::OtherMember => arrival.port,
            _ => batch.port,
        };
        port.shared.counters.drop_rx(reason, 1);
        if reason == DropReason::SpoofedSource && port.shared.spoofing_reports.is_due(batch.now) {
            let notice = SwitchNotice::SpoofedSource { port: port.shared.id, mac: frame.source() };
            self.notices.send(notice);
        }
    }

    pub(super) fn flood(
        &mut self,
        batch: &Batch<'_>,
        (vlan, kind): (Option<VlanId>, FloodKind),
        frame: &mut Frame,
        probe: &mut Probe<'_>,
    ) {
        let Batch { now, published, ingress, port, .. } = *batch;
        if let Some(limit) = &port.storm {
            if !limit.admit(now, 1) {
                port.shared.counters.drop_rx(DropReason::StormLimit, 1);
                if port.shared.storm_reports.is_due(now) {
                    self.notices.send(SwitchNotice::StormLimited { port: port.shared.id });
                }
                return;
            }
        }
        port.shared.counters.flooded.add(1);
        let tag = frame.meta.tag;
        let mut members = 0;
        let mut other_members = 0;
        for member in published.tables.flood(ingress, vlan, kind) {
            let arrival = batch.receiving_member.as_ref();
            if arrival.is_some_and(|arrival| !arrival.reaches(published, member.slot)) {
                other_members += 1;
                continue;
            }
            members += 1;
            match published.tables.check_copy(member, frame) {
                Ok(()) => {
                    frame.meta.tag = member.rule.apply(tag);
                    self.deliver(batch, member.slot, frame, false, probe);
                }
                Err(reason) => {
                    if let Some(port) = published.ports.get(member.slot.index()) {
                        port.shared.counters.drop_tx(reason, 1);
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
        batch: &Batch<'_>,
        egress: PortSlot,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut Probe<'_>,
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

    /// Delivers one frame to a queue of the port at index `egress` of [`Published::ports`], which
    /// is not a team.
    #[inline]
    pub(super) fn deliver_to_queue(
        &mut self,
        batch: &Batch<'_>,
        egress: usize,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut Probe<'_>,
    ) {
        let Batch { now, published, .. } = *batch;
        let Some(port) = published.ports.get(egress) else { return };
        let queues = port.egress.len();
        let index = match queues {
            0 => return port.shared.counters.drop_tx(DropReason::EgressDown, 1),
            1 => port.egress.start,
            _ => port.egress.start + flow_hash(frame) as usize % queues,
        };
        if let Some(tap) = &port.capture {
            frame.linearize();
            tap.take(now, Direction::Egress, frame);
        }
        let (queue, _) = published.owners[index];
        match self.routes.queue_route(index) {
            Route::Sink(sink) => self.transmit(published, sink, frame, probe),
            Route::OtherWorker(owner) => {
                if !self.frame_sender.add(owner, queue, frame, is_only) {
                    port.shared.counters.drop_tx(DropReason::EgressFull, 1);
                }
            }
            Route::MovingHere => {
                if !self.buffer(queue, frame, is_only) {
                    port.shared.counters.drop_tx(DropReason::EgressFull, 1);
                }
            }
            Route::Nowhere => port.shared.counters.drop_tx(DropReason::EgressDown, 1),
        }
    }

    #[inline]
    pub(super) fn transmit(
        &mut self,
        published: &Published,
        index: usize,
        frame: &mut Frame,
        probe: &mut Probe<'_>,
    ) {
        let Some(Some(sink)) = self.sinks.get_mut(index) else { return };
        if !sink.is_touched() {
            self.touched.push(index);
        }
        self.link.pulse.serving.set(ServedDevice::Port(sink.id.port));
        if let Err(fault) = sink.transmit(frame, probe) {
            self.abandon_sink(published, index, fault);
        }
    }

    /// Delivers one frame to one member of a team. The member is selected for the whole frame,
    /// before segmentation.
    pub(super) fn deliver_to_team(
        &mut self,
        batch: &Batch<'_>,
        team: usize,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut Probe<'_>,
    ) {
        let Some(team) = batch.teams.get(team) else { return };
        let Some((index, source)) =
            team.egress_member(batch.published, (batch.now, batch.from), frame)
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
            tap.take(batch.now, Direction::Egress, frame);
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
        let Some(message) = self.frame_sender.message_for(self.link.id, queue, frame, is_only)
        else {
            return false;
        };
        match self.locations.buffer(queue, message, BUFFERED_MAX) {
            Ok(()) => true,
            Err(message) => {
                return_to_owner(message);
                false
            }
        }
    }

    fn abandon_sink(&mut self, published: &Published, index: usize, fault: PortFault) {
        if let Some(mut sink) = self.sinks.get_mut(index).and_then(Option::take) {
            self.sink_by_queue.remove(&sink.id);
            self.accounting.close(&mut sink.cost);
            self.notices.report_fault(sink.id, &sink.attached, fault);
            self.resolve_routes(published);
        }
    }

    /// Makes all frames passed to sinks since the last flush visible to their receivers.
    pub(super) fn flush(&mut self, published: &Published) {
        let mut touched = std::mem::take(&mut self.touched);
        for index in touched.drain(..) {
            let Some(Some(sink)) = self.sinks.get_mut(index) else { continue };
            let (frames, bytes) = sink.unflushed();
            self.accounting.charge_egress(&sink.cost, frames, bytes);
            self.link.pulse.serving.set(ServedDevice::Port(sink.id.port));
            if let Err(fault) = sink.flush() {
                self.abandon_sink(published, index, fault);
            }
        }
        self.touched = touched;
        if !self.outbox.is_empty() {
            self.outbox.retry();
        }
    }

    /// Returns true if frames were passed to a sink since the last [`Egress::flush`].
    pub(super) fn has_to_flush(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Sends the frame messages filled by a batch to the workers that own their queues.
    pub(super) fn send_frame_messages(&mut self, links: &Links) {
        self.frame_sender.send_all(links, &mut self.outbox);
    }

    /// Delivers frames for which another worker has made the forwarding decision to a queue of this
    /// worker.
    pub(super) fn handle_frame_message(
        &mut self,
        published: &Published,
        mut message: FrameMessage,
        probe: &mut Probe<'_>,
    ) {
        let queue = message.queue;
        let frames = message.frames.len() as u64;
        if let Some(&index) = self.sink_by_queue.get(&queue) {
            for frame in &mut message.frames {
                self.transmit(published, index, frame, probe);
            }
            return return_to_owner(message);
        }
        match self.locations.location_for_received(queue) {
            QueueLocation::MovingHere => {
                let Err(refused) = self.locations.buffer(queue, message, BUFFERED_MAX) else {
                    return;
                };
                count_lost(published, queue, frames);
                message = refused;
            }
            QueueLocation::Here | QueueLocation::OtherWorker(_) | QueueLocation::UnknownQueue => {
                count_lost(published, queue, frames);
            }
        }
        return_to_owner(message);
    }

    pub(super) fn resolve_routes(&mut self, published: &Published) {
        self.routes.find(published, &self.locations, &self.sink_by_queue);
    }
}

/// Counts frames as dropped for a queue that this worker does not own and that is not being moved
/// to it.
fn count_lost(published: &Published, queue: QueueId, frames: u64) {
    if let Some(port) = published.port(queue.port) {
        port.shared.counters.drop_tx(DropReason::EgressFull, frames);
    }
}
