//! Test of the protocol for moving queues with arbitrary orders of events: workers are actors whose
//! mailboxes preserve the order of each sender, and a random scheduler selects the actor that runs
//! next.

use std::collections::VecDeque;

use proptest::prelude::*;
use suimon_quantity::{Direction, PortId};

use super::*;

const QUEUE: QueueId = QueueId { port: PortId(7), direction: Direction::Egress, index: 0 };

#[derive(Debug)]
enum Mail {
    Frame { from: u16, number: u32 },
    Fence,
    Queue,
}

struct Actor {
    routes: QueueLocations<(u16, u32)>,
    mailbox: VecDeque<Mail>,
    has_queue: bool,
    /// Owner of the queue in each table that was published and not adopted yet, oldest first.
    tables: VecDeque<WorkerId>,
    sent: u32,
}

struct World {
    actors: Vec<Actor>,
    delivered: Vec<(u16, u32)>,
    arrivals: usize,
}

impl World {
    fn new(workers: u16, owner: u16) -> Self {
        let actors = (0..workers)
            .map(|id| {
                let mut routes = QueueLocations::new(WorkerId(id));
                routes
                    .adopt(&[(QUEUE, WorkerId(owner))], usize::from(workers) - 1, |_| id == owner);
                Actor {
                    routes,
                    mailbox: VecDeque::new(),
                    has_queue: id == owner,
                    tables: VecDeque::new(),
                    sent: 0,
                }
            })
            .collect();
        Self { actors, delivered: Vec::new(), arrivals: 0 }
    }

    fn deliver(&mut self, index: usize, frame: (u16, u32)) {
        assert!(self.actors[index].has_queue, "{frame:?} delivered where the queue is not");
        self.delivered.push(frame);
    }

    fn send(&mut self, index: usize) {
        let actor = &mut self.actors[index];
        let frame = (index as u16, actor.sent);
        actor.sent += 1;
        match actor.routes.location(QUEUE) {
            QueueLocation::ThisWorker => self.deliver(index, frame),
            QueueLocation::OtherWorker(owner) => self.actors[usize::from(owner.0)]
                .mailbox
                .push_back(Mail::Frame { from: frame.0, number: frame.1 }),
            QueueLocation::MovingHere => actor.routes.buffer(QUEUE, frame, usize::MAX).unwrap(),
            QueueLocation::UnknownQueue => panic!("{frame:?} has nowhere to go"),
        }
    }

    fn depart(&mut self, index: usize, to: WorkerId) {
        assert!(std::mem::take(&mut self.actors[index].has_queue));
        self.actors[usize::from(to.0)].mailbox.push_back(Mail::Queue);
    }

    fn adopt(&mut self, index: usize) {
        let other_actors = self.actors.len() - 1;
        let actor = &mut self.actors[index];
        let Some(owner) = actor.tables.pop_front() else { return };
        let has_queue = actor.has_queue;
        let adopted = actor.routes.adopt(&[(QUEUE, owner)], other_actors, |_| has_queue);
        assert_eq!(adopted.orphaned_messages, []);
        for fence in adopted.fences {
            self.actors[usize::from(fence.former_owner.0)].mailbox.push_back(Mail::Fence);
        }
        for (_, to) in adopted.queues_to_send {
            self.depart(index, to);
        }
    }

    fn read_messages(&mut self, index: usize) {
        let Some(message) = self.actors[index].mailbox.pop_front() else { return };
        match message {
            Mail::Frame { from, number } => {
                match self.actors[index].routes.location_for_received(QUEUE) {
                    QueueLocation::ThisWorker => self.deliver(index, (from, number)),
                    QueueLocation::MovingHere => {
                        self.actors[index]
                            .routes
                            .buffer(QUEUE, (from, number), usize::MAX)
                            .unwrap();
                    }
                    route => panic!("message for a queue that is {route:?}"),
                }
            }
            Mail::Fence => {
                if let Some(to) = self.actors[index].routes.handle_fence(QUEUE) {
                    self.depart(index, to);
                }
            }
            Mail::Queue => {
                self.actors[index].has_queue = true;
                self.arrivals += 1;
                for frame in self.actors[index].routes.handle_queue_arrival(QUEUE) {
                    self.deliver(index, frame);
                }
            }
        }
    }

    fn step(&mut self, choice: u8) {
        let count = self.actors.len();
        let index = usize::from(choice) % count;
        match usize::from(choice) / count % 4 {
            0 => self.adopt(index),
            1 => self.read_messages(index),
            _ => self.send(index),
        }
    }

    fn settle(&mut self) {
        for _ in 0..4 {
            for index in 0..self.actors.len() {
                while !self.actors[index].tables.is_empty() {
                    self.adopt(index);
                }
            }
            for index in 0..self.actors.len() {
                while !self.actors[index].mailbox.is_empty() {
                    self.read_messages(index);
                }
            }
        }
    }

    fn check(&self, owner: u16) {
        for (id, actor) in self.actors.iter().enumerate() {
            assert_eq!(actor.has_queue, id == usize::from(owner));
            let numbers: Vec<u32> = self
                .delivered
                .iter()
                .filter(|(from, _)| usize::from(*from) == id)
                .map(|(_, number)| *number)
                .collect();
            let in_order: Vec<u32> = (0..actor.sent).collect();
            assert_eq!(numbers, in_order, "frames of processor {id} lost or out of order");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_is_lost_and_nothing_overtakes(
        workers in 2_u16..5,
        moves in prop::collection::vec((0_u16..5, prop::collection::vec(any::<u8>(), 0..60)), 1..4),
    ) {
        let mut owner = 0;
        let mut world = World::new(workers, owner);
        for (to, choices) in moves {
            let to = to % workers;
            for actor in &mut world.actors {
                actor.tables.push_back(WorkerId(to));
            }
            for choice in choices {
                world.step(choice);
            }
            world.settle();
            owner = to;
            world.check(owner);
        }
    }
}

#[test]
fn buffered_frames_are_bounded() {
    let mut routes = QueueLocations::new(WorkerId(1));
    assert_eq!(routes.buffer(QUEUE, 'x', 8), Err('x'), "the queue does not exist");
    routes.adopt(&[(QUEUE, WorkerId(0))], 1, |_| false);
    routes.adopt(&[(QUEUE, WorkerId(1))], 1, |_| false);
    assert_eq!(routes.location(QUEUE), QueueLocation::MovingHere);
    assert_eq!(routes.buffer(QUEUE, 'a', 1), Ok(()));
    assert_eq!(routes.buffer(QUEUE, 'b', 1), Err('b'));
    assert_eq!(routes.handle_queue_arrival(QUEUE), ['a']);
    assert_eq!(routes.location(QUEUE), QueueLocation::ThisWorker);
}

#[test]
fn a_removed_queue_has_no_location() {
    let mut routes = QueueLocations::new(WorkerId(0));
    routes.adopt(&[(QUEUE, WorkerId(0))], 0, |_| true);
    assert_eq!(routes.location(QUEUE), QueueLocation::ThisWorker);
    assert!(routes.adopt(&[], 0, |_| true).orphaned_messages.is_empty());
    routes.adopt(&[(QUEUE, WorkerId(1))], 1, |_| false);
    assert_eq!(routes.buffer(QUEUE, 'a', 8), Ok(()), "the sender knew first");
    assert_eq!(routes.adopt(&[], 0, |_| true).orphaned_messages, ['a']);
    routes.adopt(&[(QUEUE, WorkerId(0))], 1, |_| false);
    assert_eq!(routes.buffer(QUEUE, 'b', 8), Ok(()));
    assert_eq!(routes.adopt(&[], 0, |_| true).orphaned_messages, ['b']);
    assert_eq!(routes.location(QUEUE), QueueLocation::UnknownQueue);
    assert_eq!(routes.handle_fence(QUEUE), None);
}
