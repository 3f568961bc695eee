//! Run of a case: sessions with requests, one event at a time.
//!
//! - A session has one request at a time, which follows its path ([`route`](super::route)) leg by
//!   leg. When it is complete, the session starts the next one: immediately, or when its pace
//!   allows.
//! - Legs at a VM or the host wait for one of its workers, in order. Their duration varies by up to
//!   10 %, that of external components by up to 50 %.

use std::collections::VecDeque;

use anyhow::Result;
use suimon_quantity::Time;
use suimon_sim_kernel::{EventQueue, Observer, RandomStream, SECOND_NS};
use suimon_vmq::VmqSpec;

use crate::host::cpus::{Cpus, SliceEnd, WorkItem};
use crate::host::facts::Fact;
use crate::host::nic::Nic;
use crate::host::power::{PowerModel, TICK_NS};
use crate::host::resolved_case::ResolvedCase;
use crate::host::route::Leg;
use crate::host::spec::Executor;
use crate::host::switch::Switch;
use crate::host::totals::CaseTotals;
use crate::processors::{BusyTimes, Moves, PERIOD_NS, Placement};

const HAND_OVER_NS: u64 = 20_000;
/// Retransmission timeout of TCP in ns.
const RESENT_NS: u64 = SECOND_NS / 5;

#[derive(Clone, Copy, Debug)]
enum Event {
    SubmitRequest {
        session: u32,
    },
    Slice(SliceEnd),
    /// The frame of a request was lost, and the request repeats its current leg.
    RetryLeg {
        session: u32,
    },
    /// A leg that no CPU of the host executes is complete.
    Passed {
        session: u32,
    },
    Broadcast {
        vm: u32,
    },
    Tick,
    Measure,
    HandOver {
        vm: u32,
        to: u16,
    },
    /// The warm-up ends, and counting starts.
    Count,
}

#[derive(Clone, Debug)]
struct Session {
    vm: u32,
    peer: Option<u32>,
    request: usize,
    leg: usize,
    started: Time,
}

/// Workers that process the same queue of work items.
#[derive(Clone, Debug, Default)]
struct Pool {
    idle: Vec<u32>,
    waits: VecDeque<WorkItem>,
}

pub(crate) struct World<'p> {
    plan: &'p ResolvedCase<'p>,
    agenda: EventQueue<Event>,
    pub(crate) observer: Observer<Fact>,
    cpus: Cpus,
    nic: Option<Nic>,
    switch: Switch,
    placement: Option<Placement>,
    pools: Vec<Pool>,
    /// Index of the pool that each worker belongs to.
    worker_pools: Vec<u32>,
    sessions: Vec<Session>,
    queue_busy_ns: Vec<u64>,
    reported_mhz: Vec<u64>,
    random: RandomStream,
    counts_from: Time,
    pub(crate) totals: CaseTotals,
}

/// Number of pools per VM: one each for its virtual CPUs, its host thread and its queue.
const POOLS: u32 = 3;

impl<'p> World<'p> {
    /// Returns the initial state of a case.
    ///
    /// # Errors
    /// A policy rejects the configuration.
    pub(crate) fn new(
        plan: &'p ResolvedCase<'p>,
        seed: u64,
        observer: Observer<Fact>,
    ) -> Result<Self> {
        let machine = plan.machine;
        let sharing = machine.sharing();
        let energy = machine.energy.as_ref();
        let energy = energy.map(|spec| PowerModel::new(spec, sharing, plan.case.power));
        let vms = plan.vms.len() as u32;
        let mut world = Self {
            plan,
            agenda: EventQueue::new(Time::ZERO),
            observer,
            cpus: Cpus::new(machine, energy),
            nic: plan.nic.map(Nic::new),
            switch: Switch::new(plan.case.switch, vms)?,
            placement: None,
            pools: vec![Pool::default(); (vms * POOLS) as usize],
            worker_pools: Vec::new(),
            sessions: Vec::new(),
            queue_busy_ns: vec![0; vms as usize],
            reported_mhz: vec![0; sharing.logical_cpus.into()],
            random: RandomStream::new(seed, "sessions"),
            counts_from: Time::from_ns(plan.scenario.settle_ms * 1_000_000),
            totals: CaseTotals::new(plan),
        };
        let owners = world.assign_queues()?;
        for (vm, vm_plan) in (0..).zip(&plan.vms) {
            (0..vm_plan.spec.vcpus).for_each(|_| world.add_worker(vm * POOLS, None));
            world.add_worker(vm * POOLS + 1, None);
            if let Some(owner) = owners.get(vm as usize) {
                world.add_worker(vm * POOLS + 2, Some(*owner));
            }
            if let Some(vf) = vm_plan.vf {
                world.observer.record(Time::ZERO, &Fact::VfAssigned { vm, vf });
            }
        }
        world.add_sessions();
        world.agenda.schedule(Time::ZERO, Event::Tick);
        world.agenda.schedule(world.counts_from, Event::Count);
        Ok(world)
    }

    fn assign_queues(&mut self) -> Result<Vec<u16>> {
        let Some(vmq) = self.plan.case.vmq else { return Ok(Vec::new()) };
        let (enabled, max_processors) = (vmq.enabled, vmq.max_workers);
        let spec = VmqSpec { enabled, max_workers: max_processors, ..VmqSpec::default() };
        let processors = self.plan.machine.sharing().worker_specs();
        let (placement, owners, moves) =
            Placement::new(spec, &processors, self.plan.vms.len() as u32)?;
        self.placement = Some(placement);
        self.order(moves);
        self.agenda.schedule(Time::from_ns(PERIOD_NS), Event::Measure);
        Ok(owners)
    }

    fn add_worker(&mut self, pool: u32, pinned: Option<u16>) {
        let worker = self.cpus.add_worker(pinned);
        self.worker_pools.push(pool);
        self.pools[pool as usize].idle.push(worker);
    }

    fn add_sessions(&mut self) {
        for (vm, vm_plan) in (0..).zip(&self.plan.vms) {
            for number in 0..vm_plan.sessions {
                let peer = vm_plan.peers.get(number as usize % vm_plan.peers.len().max(1)).copied();
                let session = self.sessions.len() as u32;
                let started = Time::ZERO;
                self.sessions.push(Session { vm, peer, request: 0, leg: 0, started });
                let spread = (vm_plan.spec.request_interval_min_us * 1000).max(1_000_000);
                let start = Time::from_ns(self.random.draw_below(spread));
                self.agenda.schedule(start, Event::SubmitRequest { session });
            }
            if vm_plan.spec.broadcasts_per_s > 0 {
                self.agenda.schedule(Time::ZERO, Event::Broadcast { vm });
            }
        }
    }

    /// Returns the number of processed events.
    pub(crate) fn processed_events(&self) -> u64 {
        self.agenda.processed_events()
    }

    /// Advances the run to a time.
    pub(crate) fn run(&mut self, until: Time) {
        while let Some(event) = self.agenda.next(until) {
            match event {
                Event::SubmitRequest { session } => self.submit_request(session),
                Event::Slice(slice_end) => self.slice(slice_end),
                Event::RetryLeg { session } => self.continue_request(session),
                Event::Passed { session } => self.passed(session),
                Event::Broadcast { vm } => self.broadcast(vm),
                Event::Tick => self.tick(),
                Event::Measure => self.measure(),
                Event::HandOver { vm, to } => self.hand_over(vm, to),
                Event::Count => self.count(),
            }
            for (start, slice) in self.cpus.take_planned() {
                self.agenda.schedule(start, Event::Slice(slice));
            }
        }
        self.totals.energy =
            self.cpus.energy.as_mut().map_or(0, |energy| energy.total_energy_mw_ns(until))
                - self.totals.energy;
        self.add_busy_time(until);
        self.observer.end(until);
    }

    fn counts(&self) -> bool {
        self.agenda.now() >= self.counts_from
    }

    /// Ends the warm-up: discards the totals so far.
    fn count(&mut self) {
        let now = self.agenda.now();
        self.add_busy_time(now);
        self.totals.busy_ns.fill(0);
        self.totals.energy =
            self.cpus.energy.as_mut().map_or(0, |energy| energy.total_energy_mw_ns(now));
    }

    /// Adds the busy time of each CPU to the totals. Returns the busy times since the last call in
    /// ns.
    fn add_busy_time(&mut self, now: Time) -> Vec<u64> {
        let busy = self.cpus.take_busy_ns(now);
        self.totals.busy_ns.resize(busy.len(), 0);
        self.totals.busy_ns.iter_mut().zip(&busy).for_each(|(sum, ns)| *sum += ns);
        busy
    }

    fn submit_request(&mut self, session: u32) {
        let now = self.agenda.now();
        let session_state = &mut self.sessions[session as usize];
        let vm = &self.plan.vms[session_state.vm as usize];
        let total_share = vm.spec.request.iter().map(|request| request.share).sum();
        let mut draw = self.random.draw_below(total_share);
        session_state.request = 0;
        for request in &vm.spec.request {
            if draw < request.share {
                break;
            }
            draw -= request.share;
            session_state.request += 1;
        }
        (session_state.leg, session_state.started) = (0, now);
        let legs = vm.paths[session_state.request].len() as u32;
        let fact = Fact::RequestStarted { session, vm: session_state.vm, legs };
        self.observer.record(now, &fact);
        self.continue_request(session);
    }

    /// Starts the next leg of a session's request, or completes the request after its last leg.
    fn continue_request(&mut self, session: u32) {
        let now = self.agenda.now();
        let plan = self.plan;
        let Session { vm, peer, request, leg, started } = self.sessions[session as usize];
        let vm_plan = &plan.vms[vm as usize];
        let Some(leg) = vm_plan.paths[request].get(leg) else {
            self.observer.record(now, &Fact::RequestCompleted { session });
            if self.counts() {
                let sum = &mut self.totals.vms[vm as usize];
                sum.completed_requests += 1;
                sum.bytes += vm_plan.spec.request[request].bytes;
            }
            let start =
                Time::from_ns(started.as_ns() + vm_plan.spec.request_interval_min_us * 1000);
            return self.agenda.schedule(start, Event::SubmitRequest { session });
        };
        let other = peer.unwrap_or(vm);
        let pool = match leg.executor {
            Executor::Vm => vm * POOLS,
            Executor::Host if self.sends(vm, peer) => vm * POOLS + 1,
            // The switch dropped the frame. TCP retransmits it after the timeout.
            Executor::Host => {
                return self.agenda.schedule_after_ns(RESENT_NS, Event::RetryLeg { session });
            }
            Executor::Queue => vm * POOLS + 2,
            Executor::PeerVm => other * POOLS,
            Executor::PeerHost => other * POOLS + 1,
            Executor::Nic | Executor::Wire | Executor::Wait => return self.elsewhere(session, leg),
        };
        let left_ns = (leg.duration_ns * self.random.draw_in_range(90, 110) / 100).max(1);
        let is_host = !matches!(leg.executor, Executor::Vm | Executor::PeerVm);
        let memory_permille = leg.memory_wait_permille;
        let piece = WorkItem {
            session,
            remaining_ns: left_ns,
            memory_wait_permille: memory_permille,
            is_host_work: is_host,
            spent_ns: 0,
        };
        match self.pools[pool as usize].idle.pop() {
            Some(worker) => self.cpus.assign_work(now, worker, piece, &mut self.observer),
            None => self.pools[pool as usize].waits.push_back(piece),
        }
    }

    fn elsewhere(&mut self, session: u32, leg: &Leg) {
        let now = self.agenda.now();
        let after_leg = || Time::from_ns(now.as_ns() + leg.duration_ns);
        let passed_at = match (&mut self.nic, leg.executor) {
            (Some(nic), Executor::Nic) => nic.send(now, leg.transfer),
            (Some(nic), Executor::Wire) => nic.receive(now, leg.transfer),
            (_, Executor::Wait) => Time::from_ns(
                now.as_ns() + leg.duration_ns * self.random.draw_in_range(50, 150) / 100,
            ),
            _ => after_leg(),
        };
        self.agenda.schedule(passed_at, Event::Passed { session });
    }

    fn passed(&mut self, session: u32) {
        let session_state = &mut self.sessions[session as usize];
        let leg = session_state.leg as u32;
        let executor = self.plan.vms[session_state.vm as usize].paths[session_state.request]
            [session_state.leg]
            .executor;
        session_state.leg += 1;
        let by_queue = executor == Executor::Queue;
        self.observer.record(
            self.agenda.now(),
            &Fact::LegCompleted { session, leg, is_queue_leg: by_queue },
        );
        self.continue_request(session);
    }

    fn slice(&mut self, slice_end: SliceEnd) {
        let now = self.agenda.now();
        let Some((worker, piece)) = self.cpus.handle_slice_end(now, slice_end, &mut self.observer)
        else {
            return;
        };
        let pool = self.worker_pools[worker as usize];
        self.account(&piece);
        let next = self.pools[pool as usize].waits.pop_front();
        if next.is_none() {
            self.pools[pool as usize].idle.push(worker);
        }
        let pinned = self.cpus.pinned_cpu(worker);
        self.cpus.assign_next_work(now, worker, next, &mut self.observer);
        if let Some(cpu) =
            self.cpus.pinned_cpu(worker).filter(|_| self.cpus.pinned_cpu(worker) != pinned)
        {
            self.moved(pool / POOLS, cpu);
        }
        self.passed(piece.session);
    }

    /// Adds the duration of a completed item of work to the totals of its VM and queue.
    fn account(&mut self, piece: &WorkItem) {
        let session_state = &self.sessions[piece.session as usize];
        let leg = &self.plan.vms[session_state.vm as usize].paths[session_state.request]
            [session_state.leg];
        if leg.executor == Executor::Queue {
            self.queue_busy_ns[session_state.vm as usize] += piece.spent_ns;
        }
        if !self.counts() {
            return;
        }
        self.totals.vms[session_state.vm as usize].add(leg, piece);
    }

    /// Forwards a frame of the VM to its peer. Returns true if the peer received it, or if the VM
    /// has no peer on this host.
    fn sends(&mut self, vm: u32, peer: Option<u32>) -> bool {
        let now = self.agenda.now();
        let Some(to) = peer else { return true };
        let destinations = self.switch.send(now, vm, Some(to));
        let receivers = destinations.only_receiver.unwrap_or(u32::MAX);
        self.observer.record(
            now,
            &Fact::Forwarded { vm, to, receivers, has_left_host: destinations.has_left_host },
        );
        self.totals.frames_out += u64::from(destinations.has_left_host && self.counts());
        destinations.only_receiver == peer
    }

    fn broadcast(&mut self, vm: u32) {
        let now = self.agenda.now();
        let destinations = self.switch.send(now, vm, None);
        self.observer.record(
            now,
            &Fact::Forwarded {
                vm,
                to: vm,
                receivers: destinations.receiver_count,
                has_left_host: destinations.has_left_host,
            },
        );
        self.totals.broadcasts_out += u64::from(destinations.has_left_host && self.counts());
        let every_ns = SECOND_NS / self.plan.vms[vm as usize].spec.broadcasts_per_s;
        self.agenda.schedule_after_ns(every_ns, Event::Broadcast { vm });
    }

    fn tick(&mut self) {
        let now = self.agenda.now();
        let Some(energy) = &mut self.cpus.energy else { return };
        energy.tick(now);
        for (cpu, reported) in (0..).zip(&mut self.reported_mhz) {
            let mhz = energy.mhz(cpu);
            if std::mem::replace(reported, mhz) != mhz {
                self.observer.record(now, &Fact::Clock { cpu, mhz });
            }
        }
        self.agenda.schedule_after_ns(TICK_NS, Event::Tick);
    }

    fn measure(&mut self) {
        let now = self.agenda.now();
        let processors = self.add_busy_time(now);
        let queues = std::mem::take(&mut self.queue_busy_ns);
        self.queue_busy_ns = vec![0; queues.len()];
        let Some(placement) = &mut self.placement else { return };
        let moves = placement.observe(BusyTimes { queue_ns: queues, worker_ns: processors }, now);
        self.order(moves);
        self.agenda.schedule_after_ns(PERIOD_NS, Event::Measure);
    }

    fn order(&mut self, moves: Moves) {
        for (vm, worker) in moves {
            self.agenda.schedule_after_ns(HAND_OVER_NS, Event::HandOver { vm, to: worker });
        }
    }

    fn hand_over(&mut self, vm: u32, cpu: u16) {
        let pool = vm * POOLS + 2;
        let worker = self.worker_pools.iter().position(|worker_pool| *worker_pool == pool);
        if worker.is_some_and(|worker| self.cpus.pin(worker as u32, cpu)) {
            self.moved(vm, cpu);
        }
    }

    fn moved(&mut self, vm: u32, cpu: u16) {
        if let Some(placement) = &mut self.placement {
            placement.handle_move_completed(vm, cpu, self.agenda.now());
        }
    }
}
