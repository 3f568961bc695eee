//! Run of a network: senders, links of the team, workers and VMs, one event at a time.
//!
//! - A sender has up to two trains of each session in flight, each with the frames of 64 KB of
//!   payload, and sends at most `session_mbit_s`; an acknowledgement takes `round_trip_us`. This
//!   models TCP's window: data in flight is bounded, and slow receivers slow the sender.
//! - A link carries trains sequentially, with Ethernet's overhead per frame (38 bytes). A link that
//!   is down loses arriving trains; senders retransmit after 200 ms.
//! - Trains that the team does not accept on a member are lost as well.
//! - The load of queues and workers is measured every 250 ms, as by `plane/node`, and passed to the
//!   placement. A move takes 20 µs, and waits for the train being served.

use anyhow::Result;
use suimon_frame::Frame;
use suimon_quantity::Time;
use suimon_sim_kernel::{EventQueue, Observer, RandomStream, SECOND_NS};
use suimon_vmq::VmqSpec;

use crate::network::facts::Fact;
use crate::network::hosts::{Host, Train};
use crate::network::spec::{Combination, NetworkScenario};
use crate::network::upstream::{Upstream, acknowledgement};
use crate::processors::{BusyTimes, Moves, PERIOD_NS, Placement};

const HAND_OVER_NS: u64 = 20_000;
const RESENT_NS: u64 = SECOND_NS / 5;
const TRAIN_BYTES: u64 = 64 << 10;
/// Bytes of TCP and IP headers in a frame.
const HEADERS: u64 = 40;
/// Bytes of Ethernet's overhead on the wire: preamble, header, frame check sequence and gap.
const ON_WIRE: u64 = 38;
/// Largest number of trains of a session in flight.
const WINDOW: u32 = 2;

/// External event of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Intervention {
    /// A step of the scenario begins.
    Step { number: usize, sessions: u32, max_processors: Option<u16> },
    /// The number of sessions of a VM changes.
    Sessions { vm: u32, count: u32 },
    /// The number of workers that VMQ may use changes.
    Limit { max_processors: u16 },
    /// The state of a link changes.
    Link { member: u32, is_up: bool },
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Send { vm: u32, session: u32 },
    Acknowledged { vm: u32, session: u32 },
    Arrive { vm: u32, member: u32, train: Train },
    Served { worker: u16 },
    Measure,
    HandOver { vm: u32, to: u16 },
    Intervention { number: usize },
}

struct Session {
    number: u64,
    out: u32,
    next: Time,
    is_planned: bool,
    member: Option<u32>,
    frame: Frame,
}

/// Totals of one step, without its settling time.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepTotals {
    /// Payload received by VMs, without the settling time of the step.
    pub(crate) bytes: u64,
    /// Busy time of each worker in ns, without the settling time of the step.
    pub(crate) busy_ns: Vec<u64>,
    /// Numbers of the workers that own queues at the end of the step.
    pub(crate) workers_in_use: Vec<u16>,
}

/// Run of a network scenario in progress.
pub(crate) struct World<'s> {
    scenario: &'s NetworkScenario,
    agenda: EventQueue<Event>,
    pub(crate) observer: Observer<Fact>,
    upstream: Upstream,
    links: Vec<Time>,
    pub(crate) host: Host,
    placement: Placement,
    sessions: Vec<Vec<Session>>,
    active: Vec<u32>,
    interventions: Vec<Intervention>,
    random: RandomStream,
    step: usize,
    counts_from: Time,
    pub(crate) step_totals: Vec<StepTotals>,
}

impl<'s> World<'s> {
    /// Returns the initial state of a run. `interventions` are pairs of time in ns and event.
    pub(crate) fn new(
        scenario: &'s NetworkScenario,
        combination: Combination,
        seed: u64,
        interventions: Vec<(u64, Intervention)>,
        observer: Observer<Fact>,
    ) -> Result<Self> {
        let vms = scenario.vms.count;
        let host = Host::new(&scenario.host, vms);
        let max_processors = scenario.host.max_workers;
        let spec = VmqSpec { max_workers: max_processors, ..VmqSpec::default() };
        let mut agenda = EventQueue::new(Time::ZERO);
        let processors = host.sharing.worker_specs();
        let (placement, owners, moves) = Placement::new(spec, &processors, vms)?;
        for (number, (at_ns, _)) in interventions.iter().enumerate() {
            agenda.schedule(Time::from_ns(*at_ns), Event::Intervention { number });
        }
        agenda.schedule(Time::from_ns(PERIOD_NS), Event::Measure);
        let mut world = Self {
            scenario,
            agenda,
            observer,
            upstream: Upstream::new(combination, scenario.team.members, scenario.team.gbit_s, vms)?,
            links: vec![Time::ZERO; scenario.team.members as usize],
            host,
            placement,
            sessions: (0..vms).map(|_| Vec::new()).collect(),
            active: vec![0; vms as usize],
            interventions: interventions
                .into_iter()
                .map(|(_, intervention)| intervention)
                .collect(),
            random: RandomStream::new(seed, "sessions"),
            step: 0,
            counts_from: Time::ZERO,
            step_totals: vec![StepTotals::default(); scenario.step.len().max(1)],
        };
        world.observer.record(Time::ZERO, &Fact::WorkerLimitChanged { max_processors });
        for (vm, worker) in (0..).zip(owners) {
            world.host.hand_over(vm, worker);
        }
        world.order(moves);
        Ok(world)
    }

    /// Returns the number of processed events.
    pub(crate) fn processed_events(&self) -> u64 {
        self.agenda.processed_events()
    }

    /// Advances the run to a time.
    ///
    /// # Errors
    /// A policy rejects a change.
    pub(crate) fn run(&mut self, until: Time) -> Result<()> {
        while let Some(event) = self.agenda.next(until) {
            match event {
                Event::Send { vm, session } => {
                    self.sessions[vm as usize][session as usize].is_planned = false;
                    self.send(vm, session);
                }
                Event::Acknowledged { vm, session } => self.handle_acknowledged(vm, session),
                Event::Arrive { vm, member, train } => self.arrive(vm, member, train),
                Event::Served { worker } => self.handle_served(worker),
                Event::Measure => self.measure(),
                Event::HandOver { vm, to: worker } => self.hand_over(vm, worker),
                Event::Intervention { number } => self.carry_out(self.interventions[number])?,
            }
        }
        self.report_used();
        self.observer.end(until);
        Ok(())
    }

    /// Sends the trains that a session's window permits.
    fn send(&mut self, vm: u32, session: u32) {
        let now = self.agenda.now();
        let vms = &self.scenario.vms;
        let frames = TRAIN_BYTES / (vms.mtu - HEADERS);
        let bytes = frames * (vms.mtu - HEADERS);
        let usual_ns = bytes * 8000 / vms.session_mbit_s;
        let on_wire = frames * (vms.mtu + ON_WIRE) * 8 / self.scenario.team.gbit_s;
        let member = self.upstream.member_to(vm, session);
        let session_state = &mut self.sessions[vm as usize][session as usize];
        while session < self.active[vm as usize] && session_state.out < WINDOW {
            if session_state.next > now {
                if !session_state.is_planned {
                    session_state.is_planned = true;
                    self.agenda.schedule(session_state.next, Event::Send { vm, session });
                }
                return;
            }
            // The session may use a different member now. Its train could overtake those in flight,
            // so it is sent only when none is in flight.
            let Some(member) =
                member.filter(|_| session_state.out == 0 || session_state.member == member)
            else {
                return;
            };
            session_state.member = Some(member);
            session_state.out += 1;
            session_state.number += 1;
            let train = Train { session, number: session_state.number, frames, bytes };
            let ns = usual_ns * self.random.draw_in_range(90, 110) / 100;
            session_state.next = Time::from_ns(session_state.next.max(now).as_ns() + ns);
            let link = &mut self.links[member as usize];
            *link = Time::from_ns((*link).max(now).as_ns() + on_wire);
            self.agenda.schedule(*link, Event::Arrive { vm, member, train });
            self.observer.record(now, &Fact::Sent { vm, session, number: train.number });
        }
    }

    fn handle_acknowledged(&mut self, vm: u32, session: u32) {
        let session_state = &mut self.sessions[vm as usize][session as usize];
        session_state.out -= 1;
        self.upstream.send_acknowledgement(vm, &session_state.frame);
        self.send(vm, session);
    }

    fn arrive(&mut self, vm: u32, member: u32, train: Train) {
        let now = self.agenda.now();
        let is_up = self.upstream.is_up(member);
        if !is_up || !self.upstream.accepts(member, vm) {
            let (session, number) = (train.session, train.number);
            let fact = Fact::Lost { vm, session, number, link_was_down: !is_up };
            self.observer.record(now, &fact);
            return self.agenda.schedule_after_ns(RESENT_NS, Event::Acknowledged { vm, session });
        }
        self.host.add(vm, train);
        self.begin(self.host.queues[vm as usize].owner);
    }

    fn begin(&mut self, worker: u16) {
        if let Some(ns) = self.host.begin(worker) {
            self.agenda.schedule_after_ns(ns, Event::Served { worker });
        }
    }

    fn handle_served(&mut self, worker: u16) {
        let now = self.agenda.now();
        if let Some((vm, train)) = self.host.end(worker) {
            let Train { session, number, bytes, .. } = train;
            self.observer.record(now, &Fact::Received { vm, session, number, bytes });
            if now >= self.counts_from {
                self.step_totals[self.step].bytes += bytes;
            }
            let round_trip_ns = self.scenario.vms.round_trip_us * 1000;
            self.agenda.schedule_after_ns(round_trip_ns, Event::Acknowledged { vm, session });
            if let Some(worker) = self.host.queues[vm as usize].next_owner {
                self.hand_over(vm, worker);
            }
        }
        self.begin(worker);
    }

    fn measure(&mut self) {
        let now = self.agenda.now();
        let busy = self.host.take_busy_ns();
        if now.as_ns() >= self.counts_from.as_ns() + PERIOD_NS {
            let sum = &mut self.step_totals[self.step].busy_ns;
            sum.resize(busy.len(), 0);
            sum.iter_mut().zip(&busy).for_each(|(sum, ns)| *sum += ns);
        }
        let queues = self.host.queues.iter_mut().map(|queue| std::mem::take(&mut queue.busy_ns));
        let busy = BusyTimes { queue_ns: queues.collect(), worker_ns: busy };
        let moves = self.placement.observe(busy, now);
        self.order(moves);
        let (used, moving) = (self.placement.workers_in_use(), self.placement.moving_queues);
        let fact = Fact::WorkersInUse { processors: used.len() as u16, moving };
        self.observer.record(now, &fact);
        self.agenda.schedule_after_ns(PERIOD_NS, Event::Measure);
    }

    /// Plans the completion of the given moves of queues.
    fn order(&mut self, moves: Moves) {
        for (vm, worker) in moves {
            self.agenda.schedule_after_ns(HAND_OVER_NS, Event::HandOver { vm, to: worker });
        }
    }

    fn hand_over(&mut self, vm: u32, to: u16) {
        let now = self.agenda.now();
        let from = self.host.queues[vm as usize].owner;
        if !self.host.hand_over(vm, to) {
            return;
        }
        self.observer.record(now, &Fact::QueueMoved { vm, from, to });
        self.placement.handle_move_completed(vm, to, now);
        self.begin(to);
    }

    fn report_used(&mut self) {
        self.step_totals[self.step].workers_in_use = self.placement.workers_in_use();
    }

    fn carry_out(&mut self, intervention: Intervention) -> Result<()> {
        let now = self.agenda.now();
        match intervention {
            Intervention::Step { number, sessions, max_processors } => {
                if number > 0 {
                    self.report_used();
                }
                self.step = number;
                self.counts_from = Time::from_ns(now.as_ns() + self.scenario.settle_s * SECOND_NS);
                if let Some(max) = max_processors {
                    self.limit(max)?;
                }
                (0..self.scenario.vms.count).for_each(|vm| self.set_sessions(vm, sessions));
            }
            Intervention::Sessions { vm, count } => self.set_sessions(vm, count),
            Intervention::Limit { max_processors } => self.limit(max_processors)?,
            Intervention::Link { member, is_up } => {
                self.observer.record(now, &Fact::LinkChanged { member, is_up });
                self.upstream.set_link(member, is_up)?;
                for vm in 0..self.scenario.vms.count {
                    (0..self.active[vm as usize]).for_each(|session| self.send(vm, session));
                }
            }
        }
        Ok(())
    }

    fn limit(&mut self, max_processors: u16) -> Result<()> {
        let now = self.agenda.now();
        let moves = self.placement.set_max_workers(max_processors, now)?;
        self.observer.record(now, &Fact::WorkerLimitChanged { max_processors });
        self.order(moves);
        Ok(())
    }

    fn set_sessions(&mut self, vm: u32, count: u32) {
        let now = self.agenda.now();
        let before = std::mem::replace(&mut self.active[vm as usize], count);
        let sessions = &mut self.sessions[vm as usize];
        for session in sessions.len() as u32..count {
            let frame = acknowledgement(vm, session);
            sessions.push(Session {
                number: 0,
                out: 0,
                next: now,
                is_planned: false,
                member: None,
                frame,
            });
        }
        // The first trains of new sessions are sent at different times.
        let usual_ns = TRAIN_BYTES * 8000 / self.scenario.vms.session_mbit_s;
        for session in before..count {
            let session_state = &mut self.sessions[vm as usize][session as usize];
            session_state.next = session_state
                .next
                .max(Time::from_ns(now.as_ns() + self.random.draw_below(usual_ns + 1)));
            self.send(vm, session);
        }
    }
}
