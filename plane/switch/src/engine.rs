//! Processing of a batch of frames by one worker.
//!
//! All frames of a batch are decided at once, and segments of a stream are coalesced for ports that
//! accept large frames. The frames are then handed to the egress queues ([`egress`]): directly if
//! this worker owns the queue, in a [`FrameMessage`] if another worker owns it. Ownership of egress
//! queues: [`queues`]. Ports that are teams: [`teams`], and [`receiving_member`] for frames
//! received by members.

mod batch_context;
mod egress;
mod queues;
mod receiving_member;
mod teams;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use suimon_forwarding::{AddressSighting, Forwarder, Verdict};
use suimon_frame::{BATCH_FRAMES_MAX, CoalesceResult, EgressForm, Frame, FrameBatch};
use suimon_quantity::{Direction, QueueId, Time};

use crate::coalescing::coalesce_by_verdict;
use crate::latch::Latch;
use crate::notice::{Notices, SwitchNotice};
use crate::outbox::WorkerOutbox;
use crate::published::{Ingress, PortRuntime, PublishedTables};
use crate::queue_accounting::QueueAccounting;
use crate::stage::Stage;
use crate::stage_clock::StageProbe;
use crate::worker_mailbox::{FrameMessage, WorkerMailbox, WorkerMailboxes};

use self::batch_context::BatchContext;
use self::egress::Egress;
use self::receiving_member::ReceivingMember;
use self::teams::TeamStates;

/// Maximum number of addresses that one worker learns over all switches; an address occupies 32
/// bytes.
const ADDRESSES_MAX: usize = 131_072;

/// Frame-processing part of a worker: everything except ingress queues and sleeping.
///
/// Tables and egress side are separate fields, so that a batch borrows the tables while it changes
/// the egress side. The tables' reference count is in a cache line that all workers share, so it is
/// not touched per batch.
pub(crate) struct Engine {
    published: Arc<PublishedTables>,
    links: Arc<WorkerMailboxes>,
    teams: TeamStates,
    forwarder: Forwarder,
    verdicts: [Verdict; BATCH_FRAMES_MAX],
    expected: BTreeMap<QueueId, Latch>,
    egress: Egress,
}

impl Engine {
    pub(crate) fn new(
        link: Arc<WorkerMailbox>,
        published: Arc<PublishedTables>,
        links: Arc<WorkerMailboxes>,
        notices: Arc<Notices>,
    ) -> Self {
        let mut engine = Self {
            published: Arc::clone(&published),
            links: Arc::clone(&links),
            teams: TeamStates::default(),
            forwarder: Forwarder::new(ADDRESSES_MAX),
            verdicts: [Verdict::default(); BATCH_FRAMES_MAX],
            expected: BTreeMap::new(),
            egress: Egress::new(link, notices),
        };
        engine.adopt_tables(published, links);
        engine
    }

    pub(crate) fn published(&self) -> &PublishedTables {
        &self.published
    }

    pub(crate) fn forwarder(&mut self) -> &mut Forwarder {
        &mut self.forwarder
    }

    /// Returns the time at which learned addresses are next aged.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.forwarder.next_deadline()
    }

    pub(crate) fn outbox(&mut self) -> &mut WorkerOutbox {
        &mut self.egress.outbox
    }

    /// Returns the accounting of worker time per queue on this worker.
    pub(crate) fn accounting(&mut self) -> &mut QueueAccounting {
        &mut self.egress.accounting
    }

    /// Returns true if frames were passed to a sink since the last [`Engine::flush`].
    pub(crate) fn needs_flush(&self) -> bool {
        self.egress.needs_flush()
    }

    pub(crate) fn sink_count(&self) -> usize {
        self.egress.sink_by_queue.len()
    }

    /// Forwards a batch received from a port, and marks the ends of stages with `probe`.
    pub(crate) fn handle_batch(
        &mut self,
        now: Time,
        Ingress { slot: ingress, member }: Ingress,
        batch: &mut FrameBatch,
        probe: &mut StageProbe<'_>,
    ) {
        let Self { published, links, teams, forwarder, verdicts, egress, .. } = self;
        let published = &**published;
        let Some(port) = published.ports.get(ingress.index()) else { return };
        let arrival =
            member.and_then(|member| ReceivingMember::from_slot(teams, published, member));
        let mut frames = batch.frames_mut();
        if let Some(arrival) = &arrival {
            capture_ingress(arrival.port, now, frames);
            let accepted = arrival.accept(now, frames);
            frames = &mut frames[..accepted];
        }
        capture_ingress(port, now, frames);
        probe.end_stage(Stage::CopyIn);
        if port.is_uplink {
            for frame in frames.iter_mut() {
                frame.meta.is_coalesced = frame.meta.gso.is_some();
                if frame.meta.is_coalesced && !port.forwards_coalesced {
                    frame.meta.egress_form = frame.meta.egress_form.max(EgressForm::Segmented);
                }
            }
        }
        forwarder.decide(&published.forwarding_tables, now, ingress, frames, verdicts);
        if let Some(arrival) = &arrival {
            arrival.drop_frames_of_other_members(published, &mut verdicts[..frames.len()]);
        }
        probe.end_stage(Stage::Classify);
        let coalesced = if port.forwards_coalesced {
            coalesce_by_verdict(published, verdicts, frames)
        } else {
            CoalesceResult::default()
        };
        probe.end_stage(Stage::Coalesce);
        let from = port.shared.id;
        let context = BatchContext {
            now,
            published,
            ingress,
            port,
            port_id: from,
            teams,
            receiving_member: arrival,
        };
        for (index, frame) in frames.iter_mut().enumerate() {
            if coalesced.was_merged_away(index) {
                continue;
            }
            match verdicts[index] {
                Verdict::Unicast { egress: to } => egress.deliver(&context, to, frame, true, probe),
                Verdict::Flood { vlan, kind } => egress.flood(&context, (vlan, kind), frame, probe),
                Verdict::Drop(reason) => egress.handle_drop(&context, reason, frame),
            }
        }
        probe.end_stage(Stage::CopyOut);
        egress.send_frame_messages(links);
        self.report_learned(now);
        probe.end_stage(Stage::Notify);
    }

    /// Sends the addresses learned here to the other workers, and reports address moves and new
    /// sources to the control plane.
    fn report_learned(&mut self, now: Time) {
        while let Some(learned) = self.forwarder.poll_announcement() {
            self.report_source(now, &learned);
            for link in self.links.iter() {
                if link.id != self.egress.mailbox.id {
                    link.send_address_sighting(learned);
                }
            }
        }
    }

    fn report_source(&self, now: Time, learned: &AddressSighting) {
        let Some(port) = self.published.port(learned.port) else { return };
        let (shared, mac, notices) = (&port.shared, learned.mac, &self.egress.notices);
        if let Some(from) = learned.moved_from {
            shared.address_moves.fetch_add(1, Relaxed);
            if shared.move_reports.try_report(now) {
                let moves = shared.address_moves.swap(0, Relaxed);
                notices.send(SwitchNotice::AddressMoved {
                    mac,
                    from,
                    to: shared.id,
                    move_count: moves,
                });
            }
        }
        // The port may not claim an address that is in use on another port.
        if port.binds_source && learned.is_first && shared.new_source_reports.try_report(now) {
            notices.send(SwitchNotice::NewSource { port: shared.id, mac });
        }
    }

    pub(crate) fn handle_address_sighting(&mut self, now: Time, learned: AddressSighting) {
        self.forwarder.handle_announcement(&self.published.forwarding_tables, now, learned);
    }

    /// Makes all frames passed to sinks since the last flush visible to their receivers.
    pub(crate) fn flush(&mut self) {
        self.egress.flush(&self.published);
    }

    /// Delivers frames for which another worker has made the forwarding decision to a queue of this
    /// worker.
    pub(crate) fn handle_frame_message(
        &mut self,
        message: FrameMessage,
        probe: &mut StageProbe<'_>,
    ) {
        self.egress.handle_frame_message(&self.published, message, probe);
    }
}

/// Passes received frames to a port's capture.
fn capture_ingress(port: &PortRuntime, now: Time, frames: &mut [Frame]) {
    let Some(tap) = &port.capture else { return };
    for frame in frames {
        frame.linearize();
        tap.capture_frame(now, Direction::Ingress, frame);
    }
}
