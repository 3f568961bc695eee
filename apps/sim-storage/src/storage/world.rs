//! Run of a storage scenario: clients, nodes and the array, one event at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use suimon_quantity::{DiskId, Time};
use suimon_sim_kernel::{EventQueue, Observer, RandomStream};
use suimon_storage_qos::{AdmissionError, IoKind, Limits, SubmitOutcome};

use crate::cluster::{ClusterModel, ControlEvent};
use crate::storage::array::{Array, ArrayEvent, Io};
use crate::storage::capacity::clients;
use crate::storage::client::Client;
use crate::storage::facts::Fact;
use crate::storage::intervention::Intervention;
use crate::storage::ledger::Ledger;
use crate::storage::node_store::{NodeStore, OBSERVE_INTERVAL_NS};
use crate::storage::spec::{StorageScenario, cost};

/// Time in ns from a completion to the VM's next request, in addition to the think time.
const RESUBMIT_DELAY_NS: u64 = 2000;
/// First tag of requests of external clients. Tags of disks' requests are below it.
pub(super) const EXTERNAL_TAG_FIRST: u64 = 1 << 32;

/// Planned event of a run.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Array(ArrayEvent),
    Submit {
        disk: u32,
    },
    /// A paused node processes a completion at the end of its pause.
    Completed {
        tag: u32,
    },
    Cluster(Box<ControlEvent>),
    Wake {
        node: usize,
        number: u64,
    },
    Observe,
    Intervention {
        number: usize,
    },
    ExternalSubmit,
}

/// Request that a client has submitted and that is not complete yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    disk: u32,
    offset: u64,
    is_write: bool,
    sent: Time,
}

pub(super) struct Disk {
    pub(super) node: usize,
    client: Client,
    pub(super) has_demand: bool,
    outstanding: u32,
}

/// Run of a storage scenario in progress.
pub(crate) struct World {
    pub(super) events: EventQueue<Event>,
    pub(crate) observer: Observer<Fact>,
    pub(crate) ledger: Ledger,
    pub(super) array: Array,
    pub(super) nodes: Vec<NodeStore>,
    pub(crate) cluster_model: Option<ClusterModel>,
    pub(super) disks: Vec<Disk>,
    pub(super) requests: BTreeMap<u32, Request>,
    pub(super) next_tag: u32,
    pub(super) interventions: Vec<Intervention>,
    pub(super) timer_delay: (Time, u64),
    pub(super) usual_timer_delay_ns: u64,
    pub(super) external_load: (Time, u32),
    pub(super) timers: RandomStream,
    pub(super) external_random: RandomStream,
    pub(super) external_request_count: u64,
    /// Reason for which the store rejected a step.
    pub(crate) rejection: Option<AdmissionError>,
}

impl World {
    /// Returns the initial state. `interventions` are events with their times.
    pub(crate) fn new(
        scenario: &StorageScenario,
        seed: u64,
        nodes: Vec<NodeStore>,
        control: Option<ClusterModel>,
        interventions: Vec<(u64, Intervention)>,
        observer: Observer<Fact>,
    ) -> Self {
        let mut agenda = EventQueue::new(Time::ZERO);
        let placed_disks = scenario.disks();
        let disks: Vec<Disk> = clients(scenario, seed)
            .into_iter()
            .zip(placed_disks)
            .map(|(client, placed)| Disk {
                node: placed.node,
                client,
                has_demand: true,
                outstanding: 0,
            })
            .collect();
        agenda.schedule(Time::ZERO, Event::Observe);
        for (number, (at_ns, _)) in interventions.iter().enumerate() {
            agenda.schedule(Time::from_ns(*at_ns), Event::Intervention { number });
        }
        for disk in 0..disks.len() as u32 {
            agenda.schedule(Time::ZERO, Event::Submit { disk });
        }
        let mut world = Self {
            events: agenda,
            observer,
            ledger: Ledger::new(disks.len()),
            array: Array::new(scenario.array.clone(), RandomStream::new(seed, "array")),
            nodes,
            cluster_model: control,
            disks,
            requests: BTreeMap::new(),
            next_tag: 0,
            interventions: interventions
                .into_iter()
                .map(|(_, intervention)| intervention)
                .collect(),
            timer_delay: (Time::ZERO, 0),
            usual_timer_delay_ns: scenario.timer_delay_max_us * 1000,
            external_load: (Time::ZERO, 0),
            timers: RandomStream::new(seed, "timers"),
            external_random: RandomStream::new(seed, "foreign"),
            external_request_count: 0,
            rejection: None,
        };
        for disk in 0..world.disks.len() as u32 {
            world.set_limits(disk, Limits::default());
            world.observer.record(Time::ZERO, &Fact::Demand { disk, all: true });
        }
        world
    }

    /// Returns the number of processed events.
    pub(crate) fn processed_events(&self) -> u64 {
        self.events.processed_events()
    }

    /// Advances the run to a time.
    pub(crate) fn run(&mut self, until: Time) {
        while let Some(event) = self.events.next(until) {
            match event {
                Event::Array(event) => {
                    let now = self.events.now();
                    self.array.handle(now, event);
                }
                Event::Submit { disk } => self.submit(disk),
                Event::Completed { tag } => self.handle_completed(tag),
                Event::Cluster(event) => self.handle_cluster_event(*event),
                Event::Wake { node, number } => self.wake(node, number),
                Event::Observe => self.observe(),
                Event::Intervention { number } => {
                    self.execute_intervention(self.interventions[number].clone());
                }
                Event::ExternalSubmit => self.submit_external(),
            }
            self.process_completions();
            self.let_go();
            self.forward_cluster_facts();
        }
        self.observer.end(until);
    }

    /// Processes completions of the array, and passes its planned events to the agenda.
    fn process_completions(&mut self) {
        for tag in self.array.take_completed() {
            match u32::try_from(tag) {
                Ok(tag) => self.handle_completed(tag),
                Err(_) => self.events.schedule_after_ns(RESUBMIT_DELAY_NS, Event::ExternalSubmit),
            }
        }
        for (time, event) in self.array.take_planned() {
            self.events.schedule(time, Event::Array(event));
        }
    }

    fn handle_completed(&mut self, tag: u32) {
        let now = self.events.now();
        let Some(Request { disk, sent, is_write, .. }) = self.requests.get(&tag).copied() else {
            return;
        };
        if let Some(until) = self.pause_end(disk) {
            return self.events.schedule(until, Event::Completed { tag });
        }
        self.requests.remove(&tag);
        let disk_state = &mut self.disks[disk as usize];
        let (bytes, latency) = (disk_state.client.bytes(), now.since(sent));
        disk_state.outstanding -= 1;
        let think_ns = u64::from(disk_state.client.load.think_us) * 1000;
        self.events.schedule_after_ns(think_ns + RESUBMIT_DELAY_NS, Event::Submit { disk });
        let node = &mut self.nodes[disk_state.node];
        if let Some(slot) = node.store.slot(DiskId(disk)) {
            let operation = if is_write { IoKind::Write } else { IoKind::Read };
            node.handle_completed(now, slot, (operation, bytes), latency);
        }
        let (cost, latency_ns) = (cost(bytes), latency.as_nanos() as u64);
        self.ledger.handle_completed(now.as_ns(), disk, cost, latency_ns);
        self.observer.record(now, &Fact::Completed { disk, tag, cost, latency_ns });
    }

    pub(super) fn submit(&mut self, disk: u32) {
        let now = self.events.now();
        if let Some(until) = self.pause_end(disk) {
            return self.events.schedule(until, Event::Submit { disk });
        }
        let disk_state = &mut self.disks[disk as usize];
        while disk_state.has_demand && disk_state.outstanding < disk_state.client.load.depth {
            disk_state.outstanding += 1;
            self.next_tag += 1;
            let (tag, bytes) = (self.next_tag, disk_state.client.bytes());
            let (offset, is_write) = disk_state.client.draw();
            self.requests.insert(tag, Request { disk, offset, is_write, sent: now });
            let fact = Fact::Submitted { disk, tag, cost: cost(bytes) };
            self.observer.record(now, &fact);
            let node = &mut self.nodes[disk_state.node];
            let slot = node.store.slot(DiskId(disk));
            let submitted = slot.map(|slot| node.submit(now, slot, bytes, tag));
            if let Some(Ok(SubmitOutcome::Dispatch)) = submitted {
                send(&mut self.requests, &mut self.array, &mut self.observer, now, tag, bytes);
            }
        }
    }

    /// Dispatches eligible requests of all nodes and arms each node's deadline.
    fn let_go(&mut self) {
        let now = self.events.now();
        for number in 0..self.nodes.len() {
            if self.nodes[number].paused_until > now {
                self.arm(number);
                continue;
            }
            while let Some(tag) = self.nodes[number].dispatch_next(now) {
                let disk = self.requests.get(&tag).map_or(0, |request| request.disk);
                let bytes = self.disks[disk as usize].client.bytes();
                send(&mut self.requests, &mut self.array, &mut self.observer, now, tag, bytes);
            }
            self.arm(number);
        }
        for (time, event) in self.array.take_planned() {
            self.events.schedule(time, Event::Array(event));
        }
    }

    fn arm(&mut self, number: usize) {
        let now = self.events.now();
        let node = &mut self.nodes[number];
        let Some(mut deadline) = node.next_deadline() else {
            node.armed_deadline = None;
            return;
        };
        if node.armed_deadline.is_some_and(|(armed_for, _)| armed_for == deadline) {
            return;
        }
        if deadline <= now {
            let by_ns = now.as_ns() - deadline.as_ns();
            self.observer.record(now, &Fact::DeadlineInPast { node: number as u32, by_ns });
            // A real worker would poll again immediately without sleeping. The model continues
            // after 1 µs.
            deadline = now + Duration::from_micros(1);
        }
        let late_ns =
            if now < self.timer_delay.0 { self.timer_delay.1 } else { self.usual_timer_delay_ns };
        let time = deadline + Duration::from_nanos(self.timers.draw_below(late_ns + 1));
        node.last_wake_number += 1;
        node.armed_deadline = Some((deadline, node.last_wake_number));
        self.events.schedule(time, Event::Wake { node: number, number: node.last_wake_number });
    }

    fn wake(&mut self, node: usize, number: u64) {
        let node = &mut self.nodes[node];
        if node.armed_deadline.is_some_and(|(_, armed)| armed == number) {
            node.armed_deadline = None;
        }
    }

    fn observe(&mut self) {
        let now = self.events.now();
        for (number, node) in
            (0..).zip(&mut self.nodes).filter(|(_, node_state)| node_state.paused_until <= now)
        {
            for event in node.observe(now) {
                self.ledger.notices.push((now.as_ns(), number, event.clone()));
                self.observer.record(now, &Fact::Notified { node: number, event });
            }
        }
        self.events.schedule_after_ns(OBSERVE_INTERVAL_NS, Event::Observe);
    }
}

/// Sends the request with this tag to the array and records the fact.
fn send(
    requests: &mut BTreeMap<u32, Request>,
    array: &mut Array,
    observer: &mut Observer<Fact>,
    now: Time,
    tag: u32,
    bytes: u32,
) {
    let Some(request) = requests.get_mut(&tag) else { return };
    request.sent = now;
    let Request { disk, offset, is_write, .. } = *request;
    observer.record(now, &Fact::Dispatched { disk, tag, cost: cost(bytes) });
    array.send(now, Io { tag: tag.into(), offset, bytes, is_write });
}
