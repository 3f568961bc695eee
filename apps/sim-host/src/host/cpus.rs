//! Model of scheduling: assignment of workers to CPUs, and duration of work.
//!
//! - A worker is a virtual CPU of a VM or a thread of the host. It processes items of work
//!   sequentially. A pinned worker runs on its CPU only, immediately, and preempts an unpinned one.
//! - A worker with new work gets its last CPU if its whole core is idle, else a CPU of an idle
//!   core, else its last or any idle CPU; else it waits. A worker on a shared core moves to an idle
//!   core.
//! - Of the waiting workers the one with the least CPU time is next, as in Linux's completely fair
//!   scheduler. A running worker is preempted by a waiting one with 2 ms less CPU time. A worker
//!   that was idle for long counts as at most 5 ms behind the last selected one.
//! - A virtual CPU that runs where another one ran takes `cache_refill_us` more, since the core's
//!   caches contain the other's data.
//! - Work is processed in slices of at most 0.2 ms. The duration of a slice is determined at its
//!   start: by the clock ([`PowerModel`]), by work on other CPUs ([`CpuSharingModel`]), and by the
//!   core's idle state.

use std::collections::{BTreeSet, VecDeque};

use suimon_quantity::Time;
use suimon_sim_kernel::Observer;

use crate::host::facts::Fact;
use crate::host::power::PowerModel;
use crate::host::spec::MachineSpec;
use crate::processors::CpuSharingModel;

const SLICE_NS: u64 = 200_000;
/// Lead in CPU time, in ns, at which a waiting worker preempts a running one.
const BEHIND_NS: u64 = 2_000_000;
/// Largest credit in CPU time, in ns, of a worker that was idle.
const BEHIND_NS_MAX: u64 = 5_000_000;

/// Item of work of one session on a CPU.
#[derive(Clone, Debug)]
pub(crate) struct WorkItem {
    /// Session that the work belongs to.
    pub(crate) session: u32,
    /// Remaining duration at the nominal clock without contention, in ns.
    pub(crate) remaining_ns: u64,
    pub(crate) memory_wait_permille: u64,
    pub(crate) is_host_work: bool,
    /// Time for which a CPU has processed the item so far, in ns.
    pub(crate) spent_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    pinned: Option<u16>,
    /// CPU to which the worker will be pinned at the end of its current item of work.
    moves_to: Option<u16>,
    work_item: Option<WorkItem>,
    is_on: Option<u16>,
    last: u16,
    /// CPU time in ns that determines the order of waiting workers. For a worker that was idle it
    /// is raised, which limits its credit.
    worked_ns: u64,
}

/// State of a CPU with its current slice.
#[derive(Clone, Debug, Default)]
struct Slot {
    worker: Option<u32>,
    started_ns: u64,
    until: u64,
    /// Length of the current slice at the nominal clock, in ns.
    slice_ns: u64,
    /// Number of the current slice. Planned ends of earlier slices have another number and are
    /// ignored.
    number: u64,
    pinned: VecDeque<u32>,
    busy_ns: u64,
    /// Last virtual CPU that ran on the CPU, whose data the core's caches contain.
    caches: Option<u32>,
}

/// Planned end of a slice on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SliceEnd {
    pub(crate) cpu: u16,
    pub(crate) number: u64,
}

/// CPUs of a machine and their workers.
pub(crate) struct Cpus {
    spec: MachineSpec,
    sharing: CpuSharingModel,
    slots: Vec<Slot>,
    workers: Vec<Worker>,
    /// Waiting workers as pairs (CPU time in ns, number), least CPU time first.
    ready: BTreeSet<(u64, u32)>,
    /// CPU time of the worker that was selected last, in ns.
    floor_ns: u64,
    /// Number of CPUs that currently process work of the host.
    host_working: u64,
    pub(crate) energy: Option<PowerModel>,
    planned: Vec<(Time, SliceEnd)>,
}

impl Cpus {
    pub(crate) fn new(spec: &MachineSpec, energy: Option<PowerModel>) -> Self {
        let sharing = spec.sharing();
        Self {
            slots: vec![Slot::default(); sharing.logical_cpus.into()],
            spec: spec.clone(),
            sharing,
            workers: Vec::new(),
            ready: BTreeSet::new(),
            floor_ns: 0,
            host_working: 0,
            energy,
            planned: Vec::new(),
        }
    }

    /// Adds a worker. Unpinned workers start on consecutive CPUs.
    pub(crate) fn add_worker(&mut self, pinned: Option<u16>) -> u32 {
        let number = self.workers.len() as u32;
        let last = (number % u32::from(self.sharing.logical_cpus)) as u16;
        self.workers.push(Worker { pinned, last, ..Worker::default() });
        number
    }

    /// Returns the ends of slices that were planned since the last call.
    pub(crate) fn take_planned(&mut self) -> Vec<(Time, SliceEnd)> {
        std::mem::take(&mut self.planned)
    }

    /// Returns the busy time of each CPU since the last call, in ns.
    pub(crate) fn take_busy_ns(&mut self, now: Time) -> Vec<u64> {
        (0..self.sharing.logical_cpus).for_each(|cpu| self.count(now, cpu));
        self.slots.iter_mut().map(|slot| std::mem::take(&mut slot.busy_ns)).collect()
    }

    /// Assigns an item of work to an idle worker, which then requests a CPU.
    pub(crate) fn assign_work(
        &mut self,
        now: Time,
        worker: u32,
        piece: WorkItem,
        observer: &mut Observer<Fact>,
    ) {
        self.workers[worker as usize].work_item = Some(piece);
        self.make_ready(now, worker, observer);
    }

    fn make_ready(&mut self, now: Time, number: u32, observer: &mut Observer<Fact>) {
        let worker = &mut self.workers[number as usize];
        worker.worked_ns = worker.worked_ns.max(self.floor_ns.saturating_sub(BEHIND_NS_MAX));
        if let Some(cpu) = worker.pinned {
            let runs = self.slots[usize::from(cpu)].worker;
            let is_pinned = runs.is_some_and(|cpu| self.workers[cpu as usize].pinned.is_some());
            if is_pinned {
                self.slots[usize::from(cpu)].pinned.push_back(number);
                return;
            }
            let displaced = runs.map(|_| self.interrupt(now, cpu, observer));
            self.start(now, cpu, number, observer);
            if let Some(displaced) = displaced {
                self.assign_cpu(now, displaced, observer);
            }
            return;
        }
        self.assign_cpu(now, number, observer);
    }

    /// Starts an unpinned worker on a free CPU, or adds it to the waiting workers.
    fn assign_cpu(&mut self, now: Time, number: u32, observer: &mut Observer<Fact>) {
        let last = self.workers[number as usize].last;
        match self.free_for(last) {
            Some(cpu) => self.start(now, cpu, number, observer),
            None => self.wait(now, number, observer),
        }
    }

    fn wait(&mut self, now: Time, number: u32, observer: &mut Observer<Fact>) {
        self.ready.insert((self.workers[number as usize].worked_ns, number));
        observer.record(now, &Fact::WorkerWaiting { worker: number });
    }

    fn is_free(&self, cpu: u16) -> bool {
        self.slots[usize::from(cpu)].worker.is_none()
    }

    fn is_core_free(&self, cpu: u16) -> bool {
        self.is_free(cpu) && self.sharing.siblings(cpu).all(|other| self.is_free(other))
    }

    fn free_for(&self, last: u16) -> Option<u16> {
        if self.is_core_free(last) {
            return Some(last);
        }
        let cpus = || 0..self.sharing.logical_cpus;
        let core = cpus().find(|cpu| self.is_core_free(*cpu));
        core.or_else(|| Some(last).filter(|cpu| self.is_free(*cpu)))
            .or_else(|| cpus().find(|cpu| self.is_free(*cpu)))
    }

    fn start(&mut self, now: Time, cpu: u16, number: u32, observer: &mut Observer<Fact>) {
        let wake_ns = self.energy.as_mut().map_or(0, |energy| energy.mark_busy(now, cpu));
        let worker = &mut self.workers[number as usize];
        (worker.is_on, worker.last) = (Some(cpu), cpu);
        let is_host = worker.work_item.as_ref().is_some_and(|work_item| work_item.is_host_work);
        self.host_working += u64::from(is_host);
        self.floor_ns = self.floor_ns.max(worker.worked_ns.min(self.floor_ns + BEHIND_NS));
        let slot = &mut self.slots[usize::from(cpu)];
        slot.worker = Some(number);
        let previous = if is_host { None } else { slot.caches.replace(number) };
        let is_cold = previous.is_some_and(|previous| previous != number);
        observer.record(now, &Fact::WorkerStarted { cpu, worker: number });
        let refill_ns = if is_cold { self.spec.cache_refill_us * 1000 } else { 0 };
        self.slice(now, cpu, wake_ns + refill_ns);
    }

    /// Determines the next slice of the work on a CPU and plans its end. `wake_ns` is added to its
    /// duration.
    fn slice(&mut self, now: Time, cpu: u16, wake_ns: u64) {
        let Some(number) = self.slots[usize::from(cpu)].worker else { return };
        let Some(piece) = &self.workers[number as usize].work_item else { return };
        let slice_ns = piece.remaining_ns.min(SLICE_NS);
        let ns = wake_ns + self.takes_ns(cpu, piece, slice_ns);
        let slot = &mut self.slots[usize::from(cpu)];
        slot.number += 1;
        (slot.started_ns, slot.until, slot.slice_ns) = (now.as_ns(), now.as_ns() + ns, slice_ns);
        self.planned.push((Time::from_ns(slot.until), SliceEnd { cpu, number: slot.number }));
    }

    fn takes_ns(&self, cpu: u16, piece: &WorkItem, ns: u64) -> u64 {
        let memory_ns = ns * piece.memory_wait_permille / 1000;
        let (mhz, nominal) = match &self.energy {
            Some(energy) => (energy.mhz(cpu).max(1), energy.nominal_mhz()),
            None => (1, 1),
        };
        let alone_ns = (ns - memory_ns) * nominal / mhz + memory_ns;
        let core = self.sharing.core(cpu);
        let others = (0..self.sharing.cores()).filter(|other| *other != core);
        let working = others.filter(|other| !self.is_core_free(*other)).count() as u64;
        let mut kappa_n = self.spec.contention_permille * working;
        if piece.is_host_work {
            kappa_n += self.spec.host_contention_permille * self.host_working.saturating_sub(1);
        }
        let has_sibling = self.sharing.siblings(cpu).any(|other| !self.is_free(other));
        self.sharing.duration_ns(alone_ns, kappa_n, has_sibling)
    }

    /// Removes the running worker from a CPU and returns it; `None` if the CPU is idle.
    fn stop(&mut self, now: Time, cpu: u16, observer: &mut Observer<Fact>) -> Option<u32> {
        let number = self.slots[usize::from(cpu)].worker.take()?;
        self.workers[number as usize].is_on = None;
        if let Some(piece) = &self.workers[number as usize].work_item {
            self.host_working -= u64::from(piece.is_host_work);
        }
        if let Some(energy) = &mut self.energy {
            energy.mark_idle(now, cpu);
        }
        observer.record(now, &Fact::WorkerStopped { cpu, worker: number });
        Some(number)
    }

    /// Adds the time since the last call to the CPU's, the item's and the worker's totals, and
    /// subtracts the completed work from the item.
    fn count(&mut self, now: Time, cpu: u16) {
        let slot = &mut self.slots[usize::from(cpu)];
        let Some(number) = slot.worker else { return };
        let worker = &mut self.workers[number as usize];
        let Some(piece) = &mut worker.work_item else { return };
        let elapsed_ns = now.as_ns() - slot.started_ns.min(now.as_ns());
        let planned = (slot.until - slot.started_ns).max(1);
        let done_ns = if now.as_ns() >= slot.until {
            slot.slice_ns
        } else {
            slot.slice_ns * elapsed_ns / planned
        };
        slot.busy_ns += elapsed_ns;
        slot.slice_ns -= done_ns;
        slot.started_ns = now.as_ns();
        piece.spent_ns += elapsed_ns;
        piece.remaining_ns -= done_ns;
        worker.worked_ns += elapsed_ns;
    }

    /// Preempts the unpinned worker on a CPU and returns it.
    fn interrupt(&mut self, now: Time, cpu: u16, observer: &mut Observer<Fact>) -> u32 {
        self.count(now, cpu);
        self.slots[usize::from(cpu)].number += 1;
        self.stop(now, cpu, observer).unwrap_or_default()
    }

    /// Processes the planned end of a slice. If it completes the item of work, returns the worker
    /// and the item, and the caller must call [`Cpus::assign_next_work`]. Otherwise starts the next
    /// slice.
    pub(crate) fn handle_slice_end(
        &mut self,
        now: Time,
        slice_end: SliceEnd,
        observer: &mut Observer<Fact>,
    ) -> Option<(u32, WorkItem)> {
        let slot = &self.slots[usize::from(slice_end.cpu)];
        let number = slot.worker.filter(|_| slot.number == slice_end.number)?;
        self.count(now, slice_end.cpu);
        let worker = &mut self.workers[number as usize];
        if worker.work_item.as_ref().is_some_and(|piece| piece.remaining_ns > 0) {
            self.go_on(now, slice_end.cpu, number, observer);
            return None;
        }
        self.host_working -=
            u64::from(worker.work_item.as_ref().is_some_and(|work_item| work_item.is_host_work));
        Some((number, worker.work_item.take()?))
    }

    /// Assigns the next item of work to a worker that has completed one. Without an item, the
    /// worker leaves its CPU.
    pub(crate) fn assign_next_work(
        &mut self,
        now: Time,
        number: u32,
        piece: Option<WorkItem>,
        observer: &mut Observer<Fact>,
    ) {
        let worker = &mut self.workers[number as usize];
        let Some(cpu) = worker.is_on else { return };
        let moves = worker.moves_to.take();
        if let Some(piece) = piece {
            self.host_working += u64::from(piece.is_host_work);
            worker.work_item = Some(piece);
            if moves.is_none() {
                return self.go_on(now, cpu, number, observer);
            }
        }
        self.stop(now, cpu, observer);
        let worker = &mut self.workers[number as usize];
        worker.pinned = moves.or(worker.pinned);
        if worker.work_item.is_some() {
            self.make_ready(now, number, observer);
        }
        self.fill(now, cpu, observer);
    }

    /// Starts the next slice of a worker on its CPU, unless a waiting worker takes precedence or an
    /// idle core is available. In these cases the worker leaves the CPU.
    fn go_on(&mut self, now: Time, cpu: u16, number: u32, observer: &mut Observer<Fact>) {
        let worker = &self.workers[number as usize];
        let limit_ns = self.ready.first().map(|(worked_ns, _)| worked_ns + BEHIND_NS);
        let is_late = limit_ns.is_some_and(|limit_ns| limit_ns < worker.worked_ns);
        let shares = self.sharing.siblings(cpu).any(|other| !self.is_free(other));
        let is_better = || (0..self.sharing.logical_cpus).any(|other| self.is_core_free(other));
        let is_moved = worker.pinned.is_none() && (is_late || (shares && is_better()));
        if !is_moved {
            return self.slice(now, cpu, 0);
        }
        self.stop(now, cpu, observer);
        if is_late {
            self.wait(now, number, observer);
        } else {
            self.assign_cpu(now, number, observer);
        }
        self.fill(now, cpu, observer);
    }

    /// Starts the next waiting worker on the CPU if it is idle.
    fn fill(&mut self, now: Time, cpu: u16, observer: &mut Observer<Fact>) {
        if !self.is_free(cpu) {
            return;
        }
        let slot = &mut self.slots[usize::from(cpu)];
        let next = slot.pinned.pop_front().or_else(|| Some(self.ready.pop_first()?.1));
        if let Some(number) = next {
            self.start(now, cpu, number, observer);
        }
    }

    /// Pins a worker to another CPU. Returns true if the pin takes effect now; false if the worker
    /// is busy, and it takes effect at the end of its current item of work.
    pub(crate) fn pin(&mut self, number: u32, cpu: u16) -> bool {
        let worker = &mut self.workers[number as usize];
        if worker.work_item.is_some() {
            worker.moves_to = Some(cpu);
            return false;
        }
        worker.pinned = Some(cpu);
        true
    }

    /// Returns the CPU that a worker is pinned to; `None` if it is not pinned.
    pub(crate) fn pinned_cpu(&self, number: u32) -> Option<u16> {
        self.workers[number as usize].pinned
    }
}
