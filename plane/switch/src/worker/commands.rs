//! Execution of the control plane's commands in a worker.

use suimon_quantity::{Direction, QueueId, WorkerId};

use super::{Next, WorkerLoop};
use crate::latch::Latch;
use crate::worker_mailbox::{WorkerCommand, WorkerMessage};

impl WorkerLoop {
    pub(super) fn handle_command(&mut self, command: WorkerCommand) -> Next {
        match command {
            WorkerCommand::AdoptTables(published, links, latch) => {
                for owned in self.sources.iter_mut() {
                    owned.ingress = published.ingress(owned.id.port);
                }
                self.engine.adopt_tables(published, links);
                latch.count_down();
            }
            WorkerCommand::SetDistribution(team, distribution, latch) => {
                self.engine.set_distribution(team, &distribution);
                latch.count_down();
            }
            WorkerCommand::AttachSource(source) => self.attach_source(source),
            WorkerCommand::AttachSink(sink) => self.engine.attach_sink(sink),
            WorkerCommand::CountDownOnSink(queue, latch) => {
                self.engine.count_down_on_sink(queue, latch);
            }
            WorkerCommand::MoveSource(queue, to, latch) => self.move_source(queue, to, latch),
            WorkerCommand::DetachQueue(queue) => self.detach(queue),
            WorkerCommand::ReportAddresses(reply) => {
                let entries = self.engine.forwarder().entries(self.now).collect();
                let _ = reply.send(entries);
            }
            WorkerCommand::RefreshAddresses(addresses) => {
                addresses
                    .iter()
                    .for_each(|address| self.engine.handle_address_sighting(self.now, *address));
            }
            WorkerCommand::Stop => return Next::Stop,
        }
        self.count_queues();
        Next::GoOn
    }

    /// Drops a queue whose detachment was requested. A queue with the same id that was attached
    /// since remains.
    fn detach(&mut self, queue: QueueId) {
        match queue.direction {
            Direction::Ingress => {
                if let Some(token) = self.sources.token(queue)
                    && self
                        .sources
                        .get_mut(token)
                        .is_some_and(|source| source.source.drop_reporter.is_revoked())
                {
                    drop(self.take_source(token));
                }
            }
            Direction::Egress => drop(self.engine.take_revoked_sink(queue)),
        }
    }

    /// Sends a queue to its new owner. The frames received from it were delivered or sent to other
    /// workers before. `latch` is counted down on arrival.
    fn move_source(&mut self, queue: QueueId, to: WorkerId, latch: Latch) {
        match self.sources.token(queue).and_then(|token| self.take_source(token)) {
            Some(source) if source.drop_reporter.is_revoked() => latch.count_down(),
            Some(source) => {
                self.engine.send_reliably(to, WorkerMessage::MovedSource(source, latch));
            }
            None => latch.count_down(),
        }
    }
}
