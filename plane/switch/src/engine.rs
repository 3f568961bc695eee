//! Processing of a batch of frames by one worker.
//!
//! All frames of a batch are decided at once, and segments of a stream are coalesced for ports that
//! accept large frames. The frames are then handed to the egress queues ([`delivery`]): directly if
//! this worker owns the queue, in a parcel if another worker owns it. Ownership of egress queues:
//! [`queues`]. Ports that are teams: [`teams`], and [`arrivals`] for frames received by members.

mod arrivals;
mod delivery;
mod queues;
mod teams;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use suimon_forwarding::{DropReason, FloodKind, Forwarder, Learned, PortSlot, Verdict};
use suimon_frame::{BATCH_FRAMES_MAX, Coalesced, Frame, FrameBatch, LeavesAs, VlanId};
use suimon_ports::ServedDevice;
use suimon_quantity::{Direction, PortId, QueueId, Time};

use crate::coalescing::coalesce_decided;
use crate::handover::{Route, Routes};
use crate::ledger::Ledger;
use crate::link::{Latch, Link, Outbox};
use crate::notice::{Notices, PlaneNotice};
use crate::owned::OwnedSink;
use crate::post::{Parcel, Post, return_home};
use crate::published::{Ingress, PortRuntime, Published};
use crate::stages::{Probe, Stage};
use crate::ways::Ways;

use self::arrivals::Arrival;
use self::delivery::HELD_MAX;
use self::teams::Teams;

/// Maximum number of addresses one worker learns over all switches, 32 bytes each.
const ADDRESSES_MAX: usize = 131_072;

/// Frame-processing part of a worker: everything except ingress queues and sleeping.
pub(crate) struct Engine {
    link: Arc<Link>,
    published: Arc<Published>,
    forwarder: Forwarder,
    verdicts: [Verdict; BATCH_FRAMES_MAX],
    sinks: Vec<Option<Box<OwnedSink>>>,
    sink_of: BTreeMap<QueueId, usize>,
    /// Indices of sinks to flush.
    touched: Vec<usize>,
    routes: Routes<Parcel>,
    expected: BTreeMap<QueueId, Latch>,
    ways: Ways,
    teams: Teams,
    post: Post,
    outbox: Outbox,
    ledger: Ledger,
    notices: Arc<Notices>,
}

/// Properties common to all frames of a batch.
struct Batch<'a> {
    now: Time,
    published: &'a Published,
    /// Slot of the port through which the switch receives the frames.
    ingress: PortSlot,
    port: &'a PortRuntime,
    /// Id of `port`.
    from: PortId,
    teams: &'a Teams,
    /// Member that received the frames, if the port is a team.
    arrival: Option<Arrival<'a>>,
}

impl Engine {
    pub(crate) fn new(link: Arc<Link>, published: Arc<Published>, notices: Arc<Notices>) -> Self {
        let mut engine = Self {
            routes: Routes::new(link.id),
            post: Post::new(Arc::clone(&link)),
            link,
            published: Arc::clone(&published),
            forwarder: Forwarder::new(ADDRESSES_MAX),
            verdicts: [Verdict::default(); BATCH_FRAMES_MAX],
            sinks: Vec::new(),
            sink_of: BTreeMap::new(),
            touched: Vec::new(),
            expected: BTreeMap::new(),
            ways: Ways::default(),
            teams: Teams::default(),
            outbox: Outbox::default(),
            ledger: Ledger::default(),
            notices,
        };
        engine.adopt(published);
        engine
    }

    pub(crate) fn published(&self) -> &Arc<Published> {
        &self.published
    }

    pub(crate) fn forwarder(&mut self) -> &mut Forwarder {
        &mut self.forwarder
    }

    /// Returns the time at which learned addresses are next aged.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.forwarder.next_deadline()
    }

    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Returns the accounting of the queues' costs on this worker.
    pub(crate) fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Returns true if frames were handed to a sink since the last [`Engine::flush`].
    pub(crate) fn has_to_flush(&self) -> bool {
        !self.touched.is_empty()
    }

    pub(crate) fn sinks(&self) -> usize {
        self.sink_of.len()
    }

    /// Forwards a batch received from a port.
    pub(crate) fn handle_batch(
        &mut self,
        now: Time,
        Ingress { slot: ingress, member }: Ingress,
        batch: &mut FrameBatch,
        probe: &mut Probe<'_>,
    ) {
        let published = Arc::clone(&self.published);
        let Some(port) = published.ports.get(ingress.index()) else { return };
        // Moved out for the batch, so that teams can be borrowed beside the engine.
        let teams = std::mem::take(&mut self.teams);
        let arrival = member.and_then(|member| Arrival::of(&teams, &published, member));
        let mut frames = batch.frames_mut();
        if let Some(arrival) = &arrival {
            capture_ingress(arrival.port, now, frames);
            let taken = arrival.accept(now, frames);
            frames = &mut frames[..taken];
        }
        capture_ingress(port, now, frames);
        probe.mark(Stage::CopyIn);
        if port.is_uplink {
            for frame in frames.iter_mut() {
                frame.meta.is_coalesced = frame.meta.gso.is_some();
                if frame.meta.is_coalesced && !port.hands_over_joined {
                    frame.meta.leaves_as = frame.meta.leaves_as.max(LeavesAs::Segments);
                }
            }
        }
        self.forwarder.decide(&published.tables, now, ingress, frames, &mut self.verdicts);
        if let Some(arrival) = &arrival {
            arrival.leave_to_others(&published, &mut self.verdicts[..frames.len()]);
        }
        probe.mark(Stage::Classify);
        let coalesced = if port.hands_over_joined {
            coalesce_decided(&published, &self.verdicts, frames)
        } else {
            Coalesced::default()
        };
        probe.mark(Stage::Coalesce);
        let from = port.shared.id;
        let of = Batch { now, published: &published, ingress, port, from, teams: &teams, arrival };
        for (at, frame) in frames.iter_mut().enumerate() {
            if coalesced.is_absorbed(at) {
                continue;
            }
            match self.verdicts[at] {
                Verdict::Unicast { egress } => {
                    self.deliver(&of, egress, frame, true, probe);
                }
                Verdict::Flood { vlan, kind } => {
                    self.flood(&of, (vlan, kind), frame, probe);
                }
                Verdict::Drop(reason) => self.handle_drop(&of, reason, frame),
            }
        }
        self.teams = teams;
        probe.mark(Stage::CopyOut);
        self.post.send_all(&published, &mut self.outbox);
        self.report_learned(now, &published);
        probe.mark(Stage::Notify);
    }

    fn handle_drop(&self, of: &Batch<'_>, reason: DropReason, frame: &Frame) {
        let port = match &of.arrival {
            Some(arrival) if reason == DropReason::OtherMember => arrival.port,
            _ => of.port,
        };
        port.shared.tally.drop_rx(reason, 1);
        if reason == DropReason::SpoofedSource && port.shared.spoofing_told.is_due(of.now) {
            let notice = PlaneNotice::SpoofedSource { port: port.shared.id, mac: frame.source() };
            self.notices.tell(notice);
        }
    }

    fn flood(
        &mut self,
        of: &Batch<'_>,
        (vlan, kind): (Option<VlanId>, FloodKind),
        frame: &mut Frame,
        probe: &mut Probe<'_>,
    ) {
        let Batch { now, published, ingress, port, .. } = *of;
        if let Some(limit) = &port.storm {
            if !limit.admit(now, 1) {
                port.shared.tally.drop_rx(DropReason::StormLimit, 1);
                if port.shared.storm_told.is_due(now) {
                    self.notices.tell(PlaneNotice::StormLimited { port: port.shared.id });
                }
                return;
            }
        }
        port.shared.tally.flooded.add(1);
        let tag = frame.meta.tag;
        let mut members = 0;
        let mut others = 0;
        for member in published.tables.flood(ingress, vlan, kind) {
            let arrival = of.arrival.as_ref();
            if arrival.is_some_and(|arrival| !arrival.reaches(published, member.slot)) {
                others += 1;
                continue;
            }
            members += 1;
            match published.tables.check_copy(member, frame) {
                Ok(()) => {
                    frame.meta.tag = member.rule.apply(tag);
                    self.deliver(of, member.slot, frame, false, probe);
                }
                Err(reason) => {
                    if let Some(port) = published.ports.get(member.slot.index()) {
                        port.shared.tally.drop_tx(reason, 1);
                    }
                }
            }
        }
        if members == 0 {
            let reason =
                if others > 0 { DropReason::OtherMember } else { DropReason::NoDestination };
            self.handle_drop(of, reason, frame);
        }
    }

    /// Sends the addresses learned here to the other workers, and reports address moves and new
    /// sources to the control plane.
    fn report_learned(&mut self, now: Time, published: &Published) {
        while let Some(learned) = self.forwarder.poll_learned() {
            self.report_source(now, published, &learned);
            for link in published.links.iter().flatten() {
                if link.id != self.link.id {
                    link.send_learned(learned);
                }
            }
        }
    }

    fn report_source(&self, now: Time, published: &Published, learned: &Learned) {
        let Some(port) = published.port(learned.port) else { return };
        let (shared, mac) = (&port.shared, learned.mac);
        if let Some(from) = learned.moved_from {
            shared.moves.fetch_add(1, Relaxed);
            if shared.move_told.is_due(now) {
                let moves = shared.moves.swap(0, Relaxed);
                self.notices.tell(PlaneNotice::AddressMoved { mac, from, to: shared.id, moves });
            }
        }
        // The port may not claim an address that is in use on another port.
        if port.binds_source && learned.is_first && shared.source_told.is_due(now) {
            self.notices.tell(PlaneNotice::SourceSeen { port: shared.id, mac });
        }
    }

    pub(crate) fn handle_learned(&mut self, now: Time, learned: Learned) {
        self.forwarder.handle_learned(&self.published.tables, now, learned);
    }

    /// Makes all frames handed to sinks since the last flush visible.
    pub(crate) fn flush(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        for at in touched.drain(..) {
            let Some(Some(sink)) = self.sinks.get_mut(at) else { continue };
            let (frames, bytes) = sink.unflushed();
            self.ledger.charge_egress(&sink.cost, frames, bytes);
            self.link.pulse.serving.set(ServedDevice::Port(sink.id.port));
            if let Err(fault) = sink.flush() {
                self.give_up_sink(at, fault);
            }
        }
        self.touched = touched;
        if !self.outbox.is_empty() {
            self.outbox.retry();
        }
    }

    /// Delivers frames that another worker decided to a queue of this worker.
    pub(crate) fn handle_parcel(&mut self, mut parcel: Parcel, probe: &mut Probe<'_>) {
        let queue = parcel.queue;
        let frames = parcel.frames.len() as u64;
        if let Some(&at) = self.sink_of.get(&queue) {
            for frame in &mut parcel.frames {
                self.transmit(at, frame, probe);
            }
            return return_home(parcel);
        }
        match self.routes.route_of_mail(queue) {
            Route::Hold => {
                let Err(refused) = self.routes.hold(queue, parcel, HELD_MAX) else { return };
                self.count_lost(queue, frames);
                parcel = refused;
            }
            Route::Here | Route::At(_) | Route::Nowhere => self.count_lost(queue, frames),
        }
        return_home(parcel);
    }

    fn count_lost(&self, queue: QueueId, frames: u64) {
        if let Some(port) = self.published.port(queue.port) {
            port.shared.tally.drop_tx(DropReason::EgressFull, frames);
        }
    }
}

/// Passes received frames to a port's capture.
fn capture_ingress(port: &PortRuntime, now: Time, frames: &mut [Frame]) {
    let Some(tap) = &port.capture else { return };
    for frame in frames {
        frame.gather();
        tap.take(now, Direction::Ingress, frame);
    }
}
