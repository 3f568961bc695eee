//! The run: clients, nodes and the array, one event after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use suimon_quantity::{DiskId, Time};
use suimon_storage_qos::{Assignment, Limits, Proposal, Refusal, Submitted};

use crate::kernel::{Agenda, Dice, SECOND, Witness};
use crate::storage::array::{Array, ArrayEvent, Io};
use crate::storage::client::Client;
use crate::storage::facts::Fact;
use crate::storage::ledger::Ledger;
use crate::storage::node::{Node, OBSERVE_NS};
use crate::storage::spec::{StorageScenario, cost};

/// From an answer until the VM has heard of it and asked again, in ns, beside its thinking.
const TURN_NS: u64 = 2000;
/// Tags of requests that no node has.
const FOREIGN: u64 = 1 << 32;

/// Something is done to the run from outside.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Disks get limits. What is refused changes nothing; of a scenario that is an error.
    Limit { disks: Vec<u32>, limits: Limits, may_be_refused: bool },
    /// A VM asks for all it can get, or for nothing.
    Want { disk: u32, all: bool },
    /// The array answers nothing for so long.
    Stall { ns: u64 },
    /// The array's drives take so many percent of their time, for so long.
    Slow { ns: u64, percent: u32 },
    /// Timers fire so much later, for so long.
    LateTimers { ns: u64, late_ns: u64 },
    /// Somebody past all nodes keeps so many requests outstanding, for so long.
    Foreign { ns: u64, depth: u32 },
}

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
enum Event {
    Array(ArrayEvent),
    Ask { disk: u32 },
    Wake { node: usize, number: u64 },
    Observe,
    Deed { number: usize },
    ForeignAsk,
}

/// A request that was asked for.
#[derive(Clone, Copy, Debug)]
struct Request {
    disk: u32,
    offset: u64,
    is_write: bool,
    sent: Time,
}

struct Disk {
    node: usize,
    client: Client,
    wants: bool,
    outstanding: u32,
}

/// A run.
pub(crate) struct World {
    agenda: Agenda<Event>,
    pub(crate) witness: Witness<Fact>,
    pub(crate) ledger: Ledger,
    array: Array,
    nodes: Vec<Node>,
    disks: Vec<Disk>,
    requests: BTreeMap<u32, Request>,
    next_tag: u32,
    deeds: Vec<Deed>,
    late: (Time, u64),
    late_usual_ns: u64,
    foreign: (Time, u32),
    timers: Dice,
    foreign_dice: Dice,
    foreign_asked: u64,
    /// What a step could not do.
    pub(crate) refused: Option<Refusal>,
}

impl World {
    /// Nothing has happened. `deeds` have the time at which they are done.
    pub(crate) fn new(
        scenario: &StorageScenario,
        seed: u64,
        nodes: Vec<Node>,
        deeds: Vec<(u64, Deed)>,
        witness: Witness<Fact>,
    ) -> Self {
        let mut agenda = Agenda::new(Time::ZERO);
        let disks = disks(scenario, seed);
        agenda.plan(Time::ZERO, Event::Observe);
        for (number, (at_ns, _)) in deeds.iter().enumerate() {
            agenda.plan(Time::from_ns(*at_ns), Event::Deed { number });
        }
        for disk in 0..disks.len() as u32 {
            agenda.plan(Time::ZERO, Event::Ask { disk });
        }
        let mut world = Self {
            agenda,
            witness,
            ledger: Ledger::new(disks.len()),
            array: Array::new(scenario.array.clone(), Dice::new(seed, "array")),
            nodes,
            disks,
            requests: BTreeMap::new(),
            next_tag: 0,
            deeds: deeds.into_iter().map(|(_, deed)| deed).collect(),
            late: (Time::ZERO, 0),
            late_usual_ns: scenario.timer_late_us * 1000,
            foreign: (Time::ZERO, 0),
            timers: Dice::new(seed, "timers"),
            foreign_dice: Dice::new(seed, "foreign"),
            foreign_asked: 0,
            refused: None,
        };
        for disk in 0..world.disks.len() as u32 {
            world.limit(disk, Limits::default());
            world.witness.tell(Time::ZERO, &Fact::Wants { disk, all: true });
        }
        world
    }

    /// How many events have happened.
    pub(crate) fn happened(&self) -> u64 {
        self.agenda.happened()
    }

    /// Lets time pass until then.
    pub(crate) fn run(&mut self, until: Time) {
        while let Some(event) = self.agenda.next(until) {
            match event {
                Event::Array(event) => {
                    let now = self.agenda.now();
                    self.array.handle(now, event);
                }
                Event::Ask { disk } => self.ask(disk),
                Event::Wake { node, number } => self.wake(node, number),
                Event::Observe => self.observe(),
                Event::Deed { number } => self.carry_out(self.deeds[number].clone()),
                Event::ForeignAsk => self.ask_foreign(),
            }
            self.hear_array();
            self.let_go();
        }
        self.witness.end(until);
    }

    /// What the array has answered, and what it has planned.
    fn hear_array(&mut self) {
        for tag in self.array.take_answered() {
            match u32::try_from(tag) {
                Ok(tag) => self.handle_answered(tag),
                Err(_) => self.agenda.plan_in(TURN_NS, Event::ForeignAsk),
            }
        }
        for (at, event) in self.array.take_planned() {
            self.agenda.plan(at, Event::Array(event));
        }
    }

    fn handle_answered(&mut self, tag: u32) {
        let now = self.agenda.now();
        let Some(Request { disk, sent, .. }) = self.requests.remove(&tag) else { return };
        let of = &mut self.disks[disk as usize];
        let (bytes, latency) = (of.client.bytes(), now.since(sent));
        of.outstanding -= 1;
        let think_ns = u64::from(of.client.load.think_us) * 1000;
        self.agenda.plan_in(think_ns + TURN_NS, Event::Ask { disk });
        let node = &mut self.nodes[of.node];
        if let Some(slot) = node.store.slot(DiskId(disk)) {
            node.handle_answered(now, slot, bytes, latency);
        }
        let (cost, latency_ns) = (cost(bytes), latency.as_nanos() as u64);
        self.ledger.handle_answered(now.as_ns(), disk, cost, latency_ns);
        self.witness.tell(now, &Fact::Answered { disk, tag, cost, latency_ns });
    }

    fn ask(&mut self, disk: u32) {
        let now = self.agenda.now();
        let of = &mut self.disks[disk as usize];
        while of.wants && of.outstanding < of.client.load.depth {
            of.outstanding += 1;
            self.next_tag += 1;
            let (tag, bytes) = (self.next_tag, of.client.bytes());
            let (offset, is_write) = of.client.draw();
            self.requests.insert(tag, Request { disk, offset, is_write, sent: now });
            let fact = Fact::Asked { disk, tag, cost: cost(bytes) };
            self.witness.tell(now, &fact);
            let node = &mut self.nodes[of.node];
            let slot = node.store.slot(DiskId(disk));
            let submitted = slot.map(|slot| node.submit(now, slot, bytes, tag));
            if let Some(Ok(Submitted::Dispatch)) = submitted {
                send(&mut self.requests, &mut self.array, &mut self.witness, now, tag, bytes);
            }
        }
    }

    /// Lets go what may go, and arms each node's deadline.
    fn let_go(&mut self) {
        let now = self.agenda.now();
        for number in 0..self.nodes.len() {
            while let Some(tag) = self.nodes[number].let_go(now) {
                let disk = self.requests.get(&tag).map_or(0, |request| request.disk);
                let bytes = self.disks[disk as usize].client.bytes();
                send(&mut self.requests, &mut self.array, &mut self.witness, now, tag, bytes);
            }
            self.arm(number);
        }
        for (at, event) in self.array.take_planned() {
            self.agenda.plan(at, Event::Array(event));
        }
    }

    fn arm(&mut self, number: usize) {
        let now = self.agenda.now();
        let node = &mut self.nodes[number];
        let Some(mut deadline) = node.next_deadline() else {
            node.armed = None;
            return;
        };
        if node.armed.is_some_and(|(at, _)| at == deadline) {
            return;
        }
        if deadline <= now {
            let by_ns = now.as_ns() - deadline.as_ns();
            self.witness.tell(now, &Fact::WokenInThePast { node: number as u32, by_ns });
            // As a processor, which would look again at once, and never sleep.
            deadline = now + Duration::from_micros(1);
        }
        let late_ns = if now < self.late.0 { self.late.1 } else { self.late_usual_ns };
        let at = deadline + Duration::from_nanos(self.timers.below(late_ns + 1));
        node.wakes += 1;
        node.armed = Some((deadline, node.wakes));
        self.agenda.plan(at, Event::Wake { node: number, number: node.wakes });
    }

    fn wake(&mut self, node: usize, number: u64) {
        let node = &mut self.nodes[node];
        if node.armed.is_some_and(|(_, armed)| armed == number) {
            node.armed = None;
        }
    }

    fn observe(&mut self) {
        let now = self.agenda.now();
        for (number, node) in (0..).zip(&mut self.nodes) {
            for event in node.observe(now) {
                self.ledger.told.push((now.as_ns(), number, event.clone()));
                self.witness.tell(now, &Fact::Told { node: number, event });
            }
        }
        self.agenda.plan_in(OBSERVE_NS, Event::Observe);
    }

    fn carry_out(&mut self, deed: Deed) {
        let now = self.agenda.now();
        let after = |ns: u64| now + Duration::from_nanos(ns);
        let disturbed = match deed {
            Deed::Limit { disks, limits, may_be_refused } => {
                for disk in disks {
                    let refused = self.limit(disk, limits);
                    self.refused = self.refused.or(refused.filter(|_| !may_be_refused));
                }
                return;
            }
            Deed::Want { disk, all } => {
                self.disks[disk as usize].wants = all;
                self.witness.tell(now, &Fact::Wants { disk, all });
                return self.ask(disk);
            }
            Deed::Stall { ns } => {
                self.array.stall(after(ns));
                ns
            }
            Deed::Slow { ns, percent } => {
                self.array.slow_down(after(ns), percent);
                ns
            }
            Deed::LateTimers { ns, late_ns } => {
                self.late = (after(ns), late_ns);
                ns + late_ns
            }
            Deed::Foreign { ns, depth } => {
                self.foreign = (after(ns), depth);
                (0..depth).for_each(|_| self.agenda.plan_in(0, Event::ForeignAsk));
                ns
            }
        };
        let until_ns = now.as_ns() + disturbed;
        self.witness.tell(now, &Fact::Disturbed { until_ns });
    }

    /// A disk gets limits, by the way that the control plane goes. What was refused.
    fn limit(&mut self, disk: u32, limits: Limits) -> Option<Refusal> {
        let now = self.agenda.now();
        let node = &mut self.nodes[self.disks[disk as usize].node];
        let proposal = Proposal::Disk(DiskId(disk), Assignment::Own(limits));
        let changes = match node.store.propose(&[proposal], false) {
            Ok(changes) => changes,
            Err(refusal) => return Some(refusal),
        };
        for change in changes {
            node.apply(now, change);
        }
        self.witness.tell(now, &Fact::Limits { disk, limits });
        None
    }

    fn ask_foreign(&mut self) {
        let now = self.agenda.now();
        if now >= self.foreign.0 {
            return;
        }
        // Anywhere in the first gigabyte, as somebody's backup.
        let block = 256 << 10;
        let offset = self.foreign_dice.below((1 << 30) / block) * block;
        self.foreign_asked += 1;
        let tag = FOREIGN + self.foreign_asked;
        let io = Io { tag, offset, bytes: block as u32, is_write: true };
        self.array.send(now, io);
    }
}

/// A request goes to the array.
fn send(
    requests: &mut BTreeMap<u32, Request>,
    array: &mut Array,
    witness: &mut Witness<Fact>,
    now: Time,
    tag: u32,
    bytes: u32,
) {
    let Some(request) = requests.get_mut(&tag) else { return };
    request.sent = now;
    let Request { disk, offset, is_write, .. } = *request;
    witness.tell(now, &Fact::LetGo { disk, tag, cost: cost(bytes) });
    array.send(now, Io { tag: tag.into(), offset, bytes, is_write });
}

fn disks(scenario: &StorageScenario, seed: u64) -> Vec<Disk> {
    let mut base = 0;
    let mut disks = Vec::new();
    for (number, of) in scenario.disks().iter().enumerate() {
        let dice = Dice::new(seed, &format!("client {number}"));
        let client = Client::new(of.load.clone(), base, dice);
        base += u64::from(of.load.size_gb) << 30;
        disks.push(Disk { node: of.node, client, wants: true, outstanding: 0 });
    }
    disks
}

/// What the array does when the clients ask it for all they can get, past all nodes, in
/// normalised operations per second: what `suimon store measure` finds out of a real one.
pub(crate) fn capability(scenario: &StorageScenario, seed: u64) -> u64 {
    let spec = &scenario.capability;
    let mut array = Array::new(scenario.array.clone(), Dice::new(seed, "measured array"));
    let mut clients: Vec<Client> =
        disks(scenario, seed).into_iter().map(|disk| disk.client).collect();
    let mut agenda: Agenda<Option<ArrayEvent>> = Agenda::new(Time::ZERO);
    let from = spec.settle_s * SECOND;
    let until = from + spec.seconds * SECOND;
    let send = |array: &mut Array, clients: &mut [Client], at: usize, now: Time| {
        let (offset, is_write) = clients[at].draw();
        array.send(now, Io { tag: at as u64, offset, bytes: clients[at].bytes(), is_write });
    };
    for at in 0..clients.len() {
        (0..spec.depth).for_each(|_| send(&mut array, &mut clients, at, Time::ZERO));
    }
    agenda.plan(Time::ZERO, None);
    let mut done = 0;
    while let Some(event) = agenda.next(Time::from_ns(until)) {
        let now = agenda.now();
        if let Some(event) = event {
            array.handle(now, event);
        }
        for tag in array.take_answered() {
            if now.as_ns() >= from {
                done += u64::from(cost(clients[tag as usize].bytes()));
            }
            send(&mut array, &mut clients, tag as usize, now);
        }
        for (at, event) in array.take_planned() {
            agenda.plan(at, Some(event));
        }
    }
    done / spec.seconds
}
