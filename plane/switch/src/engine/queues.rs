//! Egress queues of a worker: attaching, moving and detaching them, and the effect of new tables.

use std::sync::Arc;

use suimon_quantity::{ProcessorId, QueueId};

use super::Engine;
use super::teams::Teams;
use crate::link::{Latch, Mail};
use crate::owned::OwnedSink;
use crate::post::return_home;
use crate::published::Published;
use crate::stages::Probe;

impl Engine {
    /// Switches to these tables, and starts the moves that they contain.
    pub(crate) fn adopt(&mut self, published: Arc<Published>) {
        self.forwarder.handle_tables(&published.tables);
        let others = published.processors().saturating_sub(1);
        let sink_of = &self.sink_of;
        let adopted =
            self.routes.adopt(&published.owners, others, |queue| sink_of.contains_key(&queue));
        self.published = published;
        self.teams = Teams::of(&self.published, self.link.id);
        for at in 0..self.sinks.len() {
            self.inform_sink(at);
        }
        adopted.orphans.into_iter().for_each(return_home);
        for fence in adopted.fences {
            self.send_must(fence.to, Mail::Fence(fence.queue));
        }
        for (queue, to) in adopted.departing {
            self.depart(queue, to);
        }
        self.find_ways();
    }

    pub(crate) fn handle_fence(&mut self, queue: QueueId) {
        if let Some(to) = self.routes.handle_fence(queue) {
            self.depart(queue, to);
            self.find_ways();
        }
    }

    fn depart(&mut self, queue: QueueId, to: ProcessorId) {
        let mut sink = self.detach_sink(queue);
        if let Some(Err(fault)) = sink.as_mut().map(|sink| sink.flush()) {
            if let Some(sink) = sink.take() {
                self.notices.tell_fault(queue, &sink.attached, fault);
            }
        }
        self.send_must(to, Mail::Sink(queue, sink));
    }

    /// Sends mail that must arrive, after all frames sent to that worker before.
    pub(crate) fn send_must(&mut self, to: ProcessorId, mail: Mail) {
        self.post.send_all(&self.published, &mut self.outbox);
        if let Some(link) = self.published.link(to) {
            self.outbox.send(link, mail);
        }
    }

    /// Takes ownership of a queue that was moved here, and delivers first what was held for it.
    pub(crate) fn handle_arrival(
        &mut self,
        queue: QueueId,
        sink: Option<Box<OwnedSink>>,
        probe: &mut Probe<'_>,
    ) {
        if let Some(sink) = sink {
            sink.tally.moves.add(1);
            self.attach_sink(sink);
        }
        for parcel in self.routes.handle_arrival(queue) {
            self.handle_parcel(parcel, probe);
        }
        self.find_ways();
        if let Some(latch) = self.expected.remove(&queue) {
            latch.count_down();
        }
    }

    pub(crate) fn expect_sink(&mut self, queue: QueueId, latch: Latch) {
        if self.sink_of.contains_key(&queue) {
            latch.count_down();
        } else {
            self.expected.insert(queue, latch);
        }
    }

    /// Takes ownership of a queue, and drops it if it was requested back meanwhile.
    pub(crate) fn attach_sink(&mut self, mut sink: Box<OwnedSink>) {
        if sink.attached.is_revoked() {
            return;
        }
        self.ledger.open(&mut sink.cost, &sink.tally);
        let at = self.sinks.iter().position(Option::is_none).unwrap_or(self.sinks.len());
        if at == self.sinks.len() {
            self.sinks.push(None);
        }
        self.sink_of.insert(sink.id, at);
        self.sinks[at] = Some(sink);
        self.inform_sink(at);
    }

    /// Applies the port settings of the current tables to a sink.
    fn inform_sink(&mut self, at: usize) {
        let Some(Some(sink)) = self.sinks.get_mut(at) else { return };
        if let Some(port) = self.published.port(sink.id.port) {
            sink.takes_coalesced = port.receive_coalescing;
        }
    }

    /// Takes a queue that was requested back.
    pub(crate) fn take_revoked_sink(&mut self, queue: QueueId) -> Option<Box<OwnedSink>> {
        let at = *self.sink_of.get(&queue)?;
        let sink = self.sinks.get(at)?.as_ref()?;
        if sink.attached.is_revoked() { self.detach_sink(queue) } else { None }
    }

    pub(crate) fn detach_sink(&mut self, queue: QueueId) -> Option<Box<OwnedSink>> {
        let at = self.sink_of.remove(&queue)?;
        self.touched.retain(|touched| *touched != at);
        let mut sink = self.sinks.get_mut(at).and_then(Option::take);
        if let Some(sink) = &mut sink {
            self.ledger.close(&mut sink.cost);
        }
        self.find_ways();
        sink
    }

    pub(super) fn find_ways(&mut self) {
        self.ways.find(&self.published, &self.routes, &self.sink_of);
    }
}
