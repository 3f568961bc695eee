//! Execution of the control plane's commands in a worker.

use suimon_quantity::{Direction, ProcessorId, QueueId};

use super::Processor;
use crate::link::{Command, Latch, Mail};

/// Whether the worker continues after a command.
pub(super) enum Next {
    GoOn,
    Stop,
}

impl Processor {
    pub(super) fn handle_command(&mut self, command: Command) -> Next {
        match command {
            Command::Adopt(published, latch) => {
                for owned in self.sources.iter_mut() {
                    owned.ingress = published.ingress(owned.id.port);
                }
                self.engine.adopt(published);
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
            Command::Detach(queue, latch) => {
                match queue.direction {
                    Direction::Ingress => {
                        let token = self.sources.token_of(queue);
                        drop(token.and_then(|token| self.take_source(token)));
                    }
                    Direction::Egress => drop(self.engine.detach_sink(queue)),
                }
                latch.count_down();
            }
            Command::Addresses(reply) => {
                let entries = self.engine.forwarder().entries(self.now).collect();
                let _ = reply.send(entries);
            }
            Command::Heard(heard) => {
                heard.iter().for_each(|of| self.engine.handle_learned(self.now, *of));
            }
            Command::Stop => return Next::Stop,
        }
        self.count_queues();
        Next::GoOn
    }

    /// Sends a queue to its new owner. All frames received from it were delivered or sent already.
    fn move_source(&mut self, queue: QueueId, to: ProcessorId, latch: Latch) {
        match self.sources.token_of(queue).and_then(|token| self.take_source(token)) {
            Some(source) => self.engine.send_must(to, Mail::Source(source, latch)),
            None => latch.count_down(),
        }
    }
}
