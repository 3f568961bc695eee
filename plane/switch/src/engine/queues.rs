//! Egress queues of a worker: attaching, moving and detaching them, and the adoption of new tables.

use std::sync::Arc;

use suimon_quantity::{PortId, QueueId, WorkerId};
use suimon_teaming::Distribution;

use super::Engine;
use super::egress::Egress;
use super::teams::TeamStates;
use crate::latch::Latch;
use crate::owned::OwnedSink;
use crate::published::PublishedTables;
use crate::stage_clock::StageProbe;
use crate::worker_mailbox::{WorkerMailboxes, WorkerMessage, return_to_sender};

impl Engine {
    /// Adopts these tables, and starts the moves of queues whose owner they change.
    pub(crate) fn adopt_tables(
        &mut self,
        published: Arc<PublishedTables>,
        links: Arc<WorkerMailboxes>,
    ) {
        self.forwarder.handle_tables(&published.forwarding_tables);
        let other_workers = links.iter().count().saturating_sub(1);
        let Egress { locations, sink_by_queue: sink_of, .. } = &mut self.egress;
        let adopted =
            locations.adopt(&published.owners, other_workers, |queue| sink_of.contains_key(&queue));
        (self.published, self.links) = (published, links);
        self.teams = TeamStates::from_published(&self.published, self.egress.mailbox.id);
        for index in 0..self.egress.sinks.len() {
            self.inform_sink(index);
        }
        adopted.orphaned_messages.into_iter().for_each(return_to_sender);
        for fence in adopted.fences {
            self.send_reliably(fence.former_owner, WorkerMessage::Fence(fence.queue));
        }
        for (queue, to) in adopted.queues_to_send {
            self.depart(queue, to);
        }
        self.egress.resolve_routes(&self.published);
    }

    /// Sets the distribution of the team with this port.
    pub(crate) fn set_distribution(&mut self, port: PortId, distribution: &Arc<Distribution>) {
        self.teams.set_distribution(&self.published, port, distribution);
    }

    pub(crate) fn handle_fence(&mut self, queue: QueueId) {
        if let Some(to) = self.egress.locations.handle_fence(queue) {
            self.depart(queue, to);
            self.egress.resolve_routes(&self.published);
        }
    }

    fn depart(&mut self, queue: QueueId, to: WorkerId) {
        let mut sink = self.detach_sink(queue);
        if let Some(Err(fault)) = sink.as_mut().map(|sink| sink.flush()) {
            if let Some(sink) = sink.take() {
                self.egress.notices.report_fault(queue, &sink.drop_reporter, fault);
            }
        }
        self.send_reliably(to, WorkerMessage::MovedSink(queue, sink));
    }

    /// Sends a message that must not be lost, after all frames sent to that worker before.
    pub(crate) fn send_reliably(&mut self, to: WorkerId, message: WorkerMessage) {
        self.egress.send_frame_messages(&self.links);
        if let Some(link) = self.links.mailbox_of(to) {
            self.egress.outbox.send(link, message);
        }
    }

    /// Takes ownership of a queue that was moved to this worker; `sink` is `None` if the queue had
    /// a fault before. Frames that were buffered for the queue are delivered before others.
    pub(crate) fn handle_queue_arrival(
        &mut self,
        queue: QueueId,
        sink: Option<Box<OwnedSink>>,
        probe: &mut StageProbe<'_>,
    ) {
        if let Some(sink) = sink {
            sink.counters.moves.add(1);
            self.attach_sink(sink);
        }
        for message in self.egress.locations.handle_queue_arrival(queue) {
            self.handle_frame_message(message, probe);
        }
        self.egress.resolve_routes(&self.published);
        if let Some(latch) = self.expected.remove(&queue) {
            latch.count_down();
        }
    }

    pub(crate) fn count_down_on_sink(&mut self, queue: QueueId, latch: Latch) {
        if self.egress.sink_by_queue.contains_key(&queue) {
            latch.count_down();
        } else {
            self.expected.insert(queue, latch);
        }
    }

    /// Takes ownership of a queue, and drops it if its detachment was requested meanwhile.
    pub(crate) fn attach_sink(&mut self, mut sink: Box<OwnedSink>) {
        if sink.drop_reporter.is_revoked() {
            return;
        }
        let Egress { accounting: ledger, sinks, sink_by_queue: sink_of, .. } = &mut self.egress;
        ledger.add_queue(&mut sink.cost, &sink.counters);
        let index = sinks.iter().position(Option::is_none).unwrap_or(sinks.len());
        if index == sinks.len() {
            sinks.push(None);
        }
        sink_of.insert(sink.id, index);
        sinks[index] = Some(sink);
        self.inform_sink(index);
    }

    /// Applies the port settings of the current tables to a sink.
    fn inform_sink(&mut self, index: usize) {
        let Some(Some(sink)) = self.egress.sinks.get_mut(index) else { return };
        if let Some(port) = self.published.port(sink.id.port) {
            sink.accepts_coalesced = port.receive_coalescing;
        }
    }

    /// Removes and returns a queue whose detachment was requested; `None` if there is no such
    /// queue.
    pub(crate) fn take_revoked_sink(&mut self, queue: QueueId) -> Option<Box<OwnedSink>> {
        let index = *self.egress.sink_by_queue.get(&queue)?;
        let sink = self.egress.sinks.get(index)?.as_ref()?;
        if sink.drop_reporter.is_revoked() { self.detach_sink(queue) } else { None }
    }

    pub(crate) fn detach_sink(&mut self, queue: QueueId) -> Option<Box<OwnedSink>> {
        let index = self.egress.sink_by_queue.remove(&queue)?;
        self.egress.sinks_to_flush.retain(|touched| *touched != index);
        let mut sink = self.egress.sinks.get_mut(index).and_then(Option::take);
        if let Some(sink) = &mut sink {
            self.egress.accounting.remove_queue(&mut sink.cost);
        }
        self.egress.resolve_routes(&self.published);
        sink
    }
}
