//! Execution of the control plane's commands in a worker.

use suimon_quantity::{Direction, QueueId, WorkerId};

use super::{Next, WorkerLoop};
use crate::latch::Latch;
use crate::link::{Command, LinkMessage};

impl WorkerLoop {
    pub(super) fn handle_command(&mut self, command: Command) -> Next {
        match command {
            Command::Adopt(published, links, latch) => {
                for owned in self.sources.iter_mut() {
                    owned.ingress = published.ingress(owned.id.port);
                }
                self.engine.adopt(published, links);
                latch.count_down();
            }
            Command::Distribute(team, distribution, latch) => {
                self.engine.set_distribution(team, &distribution);
                latch.count_down();
            }
            Command::AttachSource(source) => self.attach_source(source),
            Command::AttachSink(sink) => self.engine.attach_sink(sink),
            Command::ExpectSink(queue, latch) => self.engine.expect_sink(queue, latch),
            Command::MoveSource(queue, to, latch) => self.move_source(queue, to, latch),
            Command::Detach(queue) => self.detach(queue),
            Command::Addresses(reply) => {
                let entries = self.engine.forwarder().entries(self.now).collect();
                let _ = reply.send(entries);
            }
            Command::RefreshAddresses(addresses) => {
                addresses.iter().for_each(|address| self.engine.handle_learned(self.now, *address));
            }
            Command::Stop => return Next::Stop,
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
                        .is_some_and(|source| source.owned.attached.is_revoked())
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
            Some(source) if source.attached.is_revoked() => latch.count_down(),
            Some(source) => self.engine.send_must(to, LinkMessage::Source(source, latch)),
            None => latch.count_down(),
        }
    }
}
