//! Host in virtual time: queues that demand a share of a worker, workers that divide their time,
//! and the placement that measures and moves.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use suimon_quantity::{Direction, PortId, QueueId, Time, WorkerId};
use suimon_vmq::{
    Measurements, Move, MoveEffect, MoveReason, NicSpec, QueueBusy, Vmq, VmqSpec, WorkerBusy,
    WorkerSpec,
};

/// Interval of measurements passed to the policy.
pub(crate) const PERIOD: Duration = Duration::from_millis(250);
/// Step of the simulation; a move takes one step.
pub(crate) const STEP: Duration = Duration::from_millis(50);

pub(crate) fn queue(nic: u32) -> QueueId {
    QueueId { port: PortId(nic), direction: Direction::Ingress, index: 0 }
}

/// Returns `number` workers on `nodes` NUMA nodes, with `threads` threads per core. Siblings are
/// numbered as Linux does: first one thread of each core, then the second ones.
pub(crate) fn workers(number: u16, threads: u16, nodes: u16) -> Vec<WorkerSpec> {
    let cores = number / threads;
    (0..number)
        .map(|index| WorkerSpec {
            number: WorkerId(index),
            core: u32::from(index % cores),
            numa_node: index % cores * nodes / cores,
        })
        .collect()
}

pub(crate) struct Host {
    pub(crate) vmq: Vmq,
    pub(crate) now: Time,
    workers: Vec<WorkerSpec>,
    /// Demand of each queue in percent of a worker, by [`queue`]'s number.
    pub(crate) loads: Vec<f64>,
    /// Load of other work on each worker in percent.
    pub(crate) other: Vec<f64>,
    /// Weight of each queue in the division of a saturated worker.
    pub(crate) weights: Vec<f64>,
    /// Factor by which work on each worker takes longer because of external load on its CPU.
    pub(crate) stretch: Vec<f64>,
    /// Worker on which each queue actually is.
    placements: BTreeMap<QueueId, WorkerId>,
    under_way: VecDeque<Move>,
    measured: Duration,
    queue_ns: Vec<f64>,
    worker_ns: Vec<f64>,
    /// Moves carried out, with their times.
    pub(crate) moves: Vec<(Time, Move)>,
    pub(crate) effects: Vec<MoveEffect>,
    /// Load of queues in the last step, in percent of a worker.
    pub(crate) delivered: Vec<f64>,
}

impl Host {
    pub(crate) fn new(spec: VmqSpec, workers: Vec<WorkerSpec>, queues: usize) -> Self {
        // Clocks of hosts do not start at zero.
        let now = Time::from_ns(1_000_000_000_000);
        let mut vmq = Vmq::new(spec, &workers, now).unwrap();
        let mut placements = BTreeMap::new();
        for nic in 0..queues as u32 {
            assert!(vmq.set_nic(PortId(nic), NicSpec::default(), 1, now).unwrap().is_empty());
            placements.insert(queue(nic), vmq.add_queue(queue(nic), now).unwrap().worker);
        }
        Self {
            vmq,
            now,
            other: vec![0.0; workers.len()],
            weights: vec![1.0; queues],
            stretch: vec![1.0; workers.len()],
            worker_ns: vec![0.0; workers.len()],
            workers,
            loads: vec![0.0; queues],
            placements,
            under_way: VecDeque::new(),
            measured: Duration::ZERO,
            queue_ns: vec![0.0; queues],
            moves: Vec::new(),
            effects: Vec::new(),
            delivered: vec![0.0; queues],
        }
    }

    pub(crate) fn of(workers_max: u16, workers_there: u16, queues: usize) -> Self {
        let spec = VmqSpec { max_workers: workers_max, ..VmqSpec::default() };
        Self::new(spec, workers(workers_there, 1, 1), queues)
    }

    /// Advances the time by `span`.
    pub(crate) fn run(&mut self, span: Duration) {
        self.run_with(span, |_, _| ());
    }

    /// Advances the time; `before_step` may change the demand, given the time since the start.
    pub(crate) fn run_with(
        &mut self,
        span: Duration,
        mut before_step: impl FnMut(&mut Self, Duration),
    ) {
        let start = self.now;
        while self.now.since(start) < span {
            let elapsed = self.now.since(start);
            before_step(self, elapsed);
            self.step();
        }
    }

    fn step(&mut self) {
        self.work();
        self.now = self.now + STEP;
        self.measured += STEP;
        for moved in std::mem::take(&mut self.under_way) {
            self.placements.insert(moved.queue, moved.to);
            self.vmq.handle_moved(moved.queue, moved.to, self.now);
        }
        if self.measured < PERIOD {
            return;
        }
        let measurements = Measurements {
            period: std::mem::take(&mut self.measured),
            queues: (0..)
                .zip(&self.queue_ns)
                .map(|(nic, ns)| QueueBusy { queue: queue(nic), busy_ns: *ns as u64 })
                .collect(),
            workers: (0..)
                .zip(&self.worker_ns)
                .map(|(id, ns)| WorkerBusy { worker: WorkerId(id), busy_ns: *ns as u64 })
                .collect(),
        };
        self.queue_ns.fill(0.0);
        self.worker_ns.fill(0.0);
        let observed = self.vmq.observe(&measurements, self.now);
        self.effects.extend(observed.effects);
        self.order(observed.moves);
    }

    /// Starts to carry out moves.
    pub(crate) fn order(&mut self, moves: Vec<Move>) {
        for moved in moves {
            assert_eq!(self.placements.get(&moved.queue), Some(&moved.from), "{moved:?}");
            self.moves.push((self.now, moved));
            self.under_way.push_back(moved);
        }
    }

    /// Simulates one step: each worker satisfies the demand of its queues, or divides its time
    /// by weight if saturated. Two busy threads of a core run at 0.65 times the speed each.
    fn work(&mut self) {
        let demand = |host: &Self, index: usize| -> f64 {
            let queues = host.indices_at(index);
            host.other[index] + queues.iter().map(|queue| host.loads[*queue]).sum::<f64>()
        };
        let busy: Vec<f64> =
            (0..self.workers.len()).map(|index| demand(self, index).min(100.0)).collect();
        for index in 0..self.workers.len() {
            let core = self.workers[index].core;
            let siblings = self.workers.iter().zip(&busy).enumerate();
            let sibling: f64 = siblings
                .filter(|(other, (worker, _))| *other != index && worker.core == core)
                .map(|(_, (_, busy))| *busy)
                .sum();
            let speed = 1.0 - 0.35 * sibling.min(100.0) / 100.0;
            let queues = self.indices_at(index);
            let other = self.other[index].min(100.0);
            let mut remaining = 100.0 - other;
            let mut waiting: f64 = queues.iter().map(|queue| self.weights[*queue]).sum();
            let mut by_want = queues;
            let relative_demand = |queue: usize| self.loads[queue] / self.weights[queue];
            by_want
                .sort_by(|left, right| relative_demand(*left).total_cmp(&relative_demand(*right)));
            let mut used = other;
            // Work takes longer because of the sibling and of external load.
            let speed = speed / self.stretch[index];
            for queue in by_want {
                let weight = self.weights[queue];
                let share =
                    (self.loads[queue] / speed).min(remaining * (weight / waiting).min(1.0));
                remaining -= share;
                waiting -= weight;
                used += share;
                self.delivered[queue] = share * speed;
                self.queue_ns[queue] += share / 100.0 * STEP.as_nanos() as f64;
            }
            self.worker_ns[index] += used / 100.0 * STEP.as_nanos() as f64;
        }
    }

    fn indices_at(&self, index: usize) -> Vec<usize> {
        let id = self.workers[index].number;
        self.placements
            .iter()
            .filter(|(_, worker)| **worker == id)
            .map(|(queue, _)| queue.port.0 as usize)
            .collect()
    }

    /// Returns workers with queues in ascending order.
    pub(crate) fn used(&self) -> Vec<u16> {
        let mut used: Vec<u16> = self.vmq.placement().map(|(_, worker)| worker.0).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Returns the total load of queues, in percent of a worker.
    pub(crate) fn throughput(&self) -> f64 {
        self.delivered.iter().sum()
    }

    /// Returns the number of moves since `from`.
    pub(crate) fn moves_since(&self, from: Time) -> usize {
        self.moves.iter().filter(|(time, _)| *time > from).count()
    }

    /// Returns the time from `from` to the last move that was made because of overload; `None` if
    /// there was none.
    pub(crate) fn last_shed(&self, from: Time) -> Option<Duration> {
        let shed = self.moves.iter().rev().find(|(time, moved)| {
            *time > from
                && matches!(
                    moved.reason,
                    MoveReason::Overloaded { .. } | MoveReason::OverloadedByOtherWork { .. }
                )
        });
        // Carrying out the move takes a step.
        shed.map(|(time, _)| (*time + STEP).since(from))
    }

    /// Returns the time from `from` to the last move.
    pub(crate) fn last_move(&self, from: Time) -> Option<Duration> {
        let (time, _) = self.moves.last().filter(|(time, _)| *time > from)?;
        Some((*time + STEP).since(from))
    }

    /// Changes the configuration by `change`.
    pub(crate) fn set_spec(&mut self, change: impl FnOnce(&mut VmqSpec)) {
        let mut spec = self.vmq.spec().clone();
        change(&mut spec);
        let moves = self.vmq.set_spec(spec, self.now).unwrap();
        self.order(moves);
    }
}

/// Deterministic pseudo-random generator.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Returns a number from 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }
}
