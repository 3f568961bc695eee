//! State machine of the VMQ placement.

use std::collections::BTreeMap;

use core::time::Duration;

use suimon_quantity::{PortId, QueueId, Time, WorkerId};

use crate::effect::PendingEffect;
use crate::load::RecentLoads;
use crate::move_budget::MoveBudget;
use crate::pack_delay::PackDelay;
use crate::queue::Queue;
use crate::shed_pacing::ShedPacing;
use crate::spec::VmqMode;
use crate::thresholds::{MOVE_RETRY_DELAY, PARKED_LOAD_MAX};
use crate::trial_placement::{TrialMove, TrialPlacement, TrialQueue, TrialWorker};
use crate::worker_order::worker_order;
use crate::worker_state::WorkerState;
use crate::{
    Load, Move, MoveReason, NicSpec, PlacementReason, QueueError, VmqSpec, VmqSpecError, WorkerSpec,
};

/// Result of [`Vmq::add_queue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedQueue {
    /// Worker that services the new queue.
    pub worker: WorkerId,
    /// Moves of other queues that the new one requires: a default queue may bring the base worker
    /// into use while `max_workers` are in use.
    pub moves: Vec<Move>,
}

/// Placement of the queues of one team or uplink on workers.
#[derive(Clone, Debug)]
pub struct Vmq {
    pub(crate) spec: VmqSpec,
    pub(crate) workers: BTreeMap<WorkerId, WorkerState>,
    /// Permitted workers in the order in which they come into use; at least one.
    pub(crate) order: Vec<WorkerId>,
    pub(crate) nics: BTreeMap<PortId, NicSpec>,
    pub(crate) queues: BTreeMap<QueueId, Queue>,
    /// Duration added up so far for the current measurement.
    pub(crate) period: Duration,
    pub(crate) move_budget: MoveBudget,
    pub(crate) pack_delay: PackDelay,
    pub(crate) shed_pacing: ShedPacing,
    /// Last move of each queue whose effect is still being measured.
    pub(crate) pending_effects: BTreeMap<QueueId, PendingEffect>,
}

impl Vmq {
    /// Creates a placement without NICs and queues.
    ///
    /// # Errors
    ///
    /// The contradiction in the configuration or with the workers, with accepted values.
    pub fn new(spec: VmqSpec, workers: &[WorkerSpec], now: Time) -> Result<Self, VmqSpecError> {
        let mut vmq = Self {
            order: worker_order(&spec, workers)?,
            spec,
            workers: BTreeMap::new(),
            nics: BTreeMap::new(),
            queues: BTreeMap::new(),
            period: Duration::ZERO,
            move_budget: MoveBudget::full(0, now),
            pack_delay: PackDelay::new(now),
            shed_pacing: ShedPacing::new(now),
            pending_effects: BTreeMap::new(),
        };
        vmq.worker(workers, now);
        Ok(vmq)
    }

    /// Returns the configuration in effect.
    pub const fn spec(&self) -> &VmqSpec {
        &self.spec
    }

    /// Changes the configuration and returns the required moves: queues on workers no longer
    /// permitted are moved at once. A different configuration also resets delays, pauses and the
    /// move budget.
    ///
    /// # Errors
    ///
    /// The contradiction; the previous configuration stays in effect.
    pub fn set_spec(&mut self, spec: VmqSpec, now: Time) -> Result<Vec<Move>, VmqSpecError> {
        let workers: Vec<WorkerSpec> =
            self.workers.values().map(|worker_state| worker_state.worker).collect();
        self.configure(spec, &workers, now)
    }

    /// Changes the workers of the host; see [`Vmq::set_spec`].
    ///
    /// # Errors
    ///
    /// The contradiction with the configuration; nothing was changed.
    pub fn set_workers(
        &mut self,
        workers: &[WorkerSpec],
        now: Time,
    ) -> Result<Vec<Move>, VmqSpecError> {
        self.configure(self.spec.clone(), workers, now)
    }

    /// Changes configuration and workers at once, where neither is possible alone.
    ///
    /// # Errors
    ///
    /// The contradiction; nothing was changed.
    pub fn configure(
        &mut self,
        spec: VmqSpec,
        workers: &[WorkerSpec],
        now: Time,
    ) -> Result<Vec<Move>, VmqSpecError> {
        let order = worker_order(&spec, workers)?;
        let is_other = spec != self.spec || order != self.order;
        self.spec = spec;
        self.order = order;
        self.worker(workers, now);
        if is_other {
            self.reset_pacing_and_history(now);
        }
        let mut moves = self.vacate_disallowed_workers(now);
        if is_other && self.spec.mode == VmqMode::Static {
            moves.extend(self.balance(now));
        }
        Ok(moves)
    }

    /// Resets delays, pauses and the move budget. Called when the operator causes a different load,
    /// for example by a change of the team mode.
    pub fn reset_pacing_and_history(&mut self, now: Time) {
        self.move_budget = MoveBudget::full(self.queues.len(), now);
        self.pack_delay = PackDelay::new(now);
        self.reset_load_history();
        for queue in self.queues.values_mut() {
            queue.is_return_prepaid = true;
        }
        for worker_state in self.workers.values_mut() {
            worker_state.emptiable_since = None;
        }
    }

    /// Resets the state that was derived from the previous load: the load has changed.
    pub(crate) fn reset_load_history(&mut self) {
        self.shed_pacing.reset();
        for worker_state in self.workers.values_mut() {
            worker_state.has_unequal_shares = false;
        }
    }

    fn worker(&mut self, workers: &[WorkerSpec], now: Time) {
        let mut before = core::mem::take(&mut self.workers);
        for worker in workers {
            let existing = before.remove(&worker.number);
            let mut worker_state = existing.unwrap_or_else(|| WorkerState::new(*worker, now));
            worker_state.worker = *worker;
            worker_state.rank = self.order.iter().position(|number| *number == worker.number);
            self.workers.insert(worker.number, worker_state);
        }
    }

    /// Adds or changes a NIC and returns the required moves. Its queues move at once if they become
    /// default queues; with static assignment they are reassigned if the weight changed.
    /// `queues_max` is the number of queues that the device provides for the NIC.
    ///
    /// # Errors
    ///
    /// The invalid value, with accepted values; nothing was changed.
    pub fn set_nic(
        &mut self,
        nic: PortId,
        spec: NicSpec,
        queues_max: u16,
        now: Time,
    ) -> Result<Vec<Move>, VmqSpecError> {
        spec.check(nic, queues_max)?;
        let before = self.nics.insert(nic, spec);
        let mut moves = self.vacate_disallowed_workers(now);
        let is_other = before.is_some_and(|before| before.vmq_weight != spec.vmq_weight);
        if is_other && self.spec.mode == VmqMode::Static {
            moves.extend(self.reassign(nic, now));
        }
        Ok(moves)
    }

    /// Removes a NIC and its queues.
    pub fn remove_nic(&mut self, nic: PortId, now: Time) {
        self.nics.remove(&nic);
        self.queues.retain(|queue, _| queue.port != nic);
        self.pending_effects.retain(|queue, _| queue.port != nic);
        self.move_budget.resize(self.queues.len(), now);
    }

    /// Adds a queue. The caller must service it on the returned worker.
    ///
    /// # Errors
    ///
    /// [`QueueError`]: the NIC is unknown, the queue exists, or its index is too high; nothing was
    /// changed.
    pub fn add_queue(&mut self, queue: QueueId, now: Time) -> Result<AddedQueue, QueueError> {
        let nic = self.nics.get(&queue.port).ok_or(QueueError::UnknownNic(queue.port))?;
        if self.queues.contains_key(&queue) {
            return Err(QueueError::Duplicate(queue));
        }
        if queue.index >= nic.queues {
            return Err(QueueError::IndexTooHigh { queue, queues: nic.queues });
        }
        let (worker, reason) = self.initial_placement(*nic);
        self.queues.insert(queue, Queue::new(worker, reason, now));
        self.move_budget.resize(self.queues.len(), now);
        Ok(AddedQueue { worker, moves: self.vacate_disallowed_workers(now) })
    }

    /// Returns the worker on which a queue of this NIC would be placed now; `None` if the NIC is
    /// unknown.
    pub fn initial_worker(&self, nic: PortId) -> Option<WorkerId> {
        self.nics.get(&nic).map(|nic| self.initial_placement(*nic).0)
    }

    fn initial_placement(&self, nic: NicSpec) -> (WorkerId, PlacementReason) {
        if !self.spec.enabled || nic.uses_default_queue() {
            (self.base_worker(), PlacementReason::DefaultQueue)
        } else if self.spec.mode == VmqMode::Static {
            (self.lightest_worker(), PlacementReason::AssignedStatically { weight: nic.vmq_weight })
        } else {
            (self.first_worker_with_room(), PlacementReason::InitialPlacement)
        }
    }

    /// Removes a queue and returns whether it existed.
    pub fn remove_queue(&mut self, queue: QueueId, now: Time) -> bool {
        let is_known = self.queues.remove(&queue).is_some();
        self.pending_effects.remove(&queue);
        self.move_budget.resize(self.queues.len(), now);
        is_known
    }

    /// Returns true if the queue exists.
    pub fn contains_queue(&self, queue: QueueId) -> bool {
        self.queues.contains_key(&queue)
    }

    /// Records the outcome of a move: the queue is on `worker` now, which is the previous worker if
    /// the move failed. Until this call the queue counts as being on its destination and is not
    /// moved again.
    pub fn handle_moved(&mut self, queue: QueueId, worker: WorkerId, now: Time) {
        let Some(record) = self.queues.get_mut(&queue) else { return };
        let Some(from) = record.moving_from.take() else { return };
        for id in [from, record.worker, worker] {
            if let Some(worker_state) = self.workers.get_mut(&id) {
                worker_state.has_queue_changes = true;
            }
        }
        if record.worker == worker {
            if let Some(watch) = self.pending_effects.get_mut(&queue) {
                watch.handle_carried_out();
            }
        } else {
            record.reason = PlacementReason::NotMoved { preferred: record.worker };
            record.worker = worker;
            record.placed_at = now;
            record.retry_at = now + MOVE_RETRY_DELAY;
            self.pending_effects.remove(&queue);
            self.shed_pacing.handle_move_failed();
        }
    }

    /// Returns each queue with its worker; the destination for queues in transit.
    pub fn placement(&self) -> impl Iterator<Item = (QueueId, WorkerId)> + '_ {
        self.queues.iter().map(|(id, queue)| (*id, queue.worker))
    }

    /// Returns the permitted workers without queues and with at most [`PARKED_LOAD_MAX`] of other
    /// work.
    pub fn parked(&self) -> Vec<WorkerId> {
        let is_idle = |id: &&WorkerId| {
            let other_load = self
                .workers
                .get(id)
                .map_or(Load::ZERO, |worker_state| worker_state.other_load.mean_of_last_two());
            other_load <= PARKED_LOAD_MAX
                && self.queues.values().all(|queue| self.is_away(queue, **id))
        };
        self.order.iter().filter(is_idle).copied().collect()
    }

    /// Returns true if the queue is neither on the worker nor in transit from it.
    fn is_away(&self, queue: &Queue, id: WorkerId) -> bool {
        queue.worker != id && queue.moving_from != Some(id)
    }

    pub(crate) fn base_worker(&self) -> WorkerId {
        // The order is never empty.
        self.order.first().copied().unwrap_or(WorkerId(0))
    }

    pub(crate) fn uses_default_queue(&self, queue: QueueId) -> bool {
        let nic = self.nics.get(&queue.port);
        !self.spec.enabled || nic.is_none_or(NicSpec::uses_default_queue)
    }

    /// Returns the load of each worker: other work plus its current queues, as if they had been
    /// there throughout the last measurements.
    pub(crate) fn loads(&self) -> BTreeMap<WorkerId, RecentLoads> {
        let mut loads: BTreeMap<WorkerId, RecentLoads> =
            self.workers.iter().map(|(id, worker_state)| (*id, worker_state.other_load)).collect();
        for queue in self.queues.values() {
            if let Some(load) = loads.get_mut(&queue.worker) {
                *load = load.sum_with(queue.load);
            }
        }
        loads
    }

    /// Returns a draft placement whose loads are the means of the last two measurements.
    pub(crate) fn trial_of_mean_loads(&self, now: Time) -> TrialPlacement {
        let mean = |queue: &Queue| queue.load.mean_of_last_two();
        self.trial_placement(
            mean,
            mean,
            |worker_state| worker_state.other_load.mean_of_last_two(),
            now,
        )
    }

    pub(crate) fn trial_placement(
        &self,
        load: impl Fn(&Queue) -> Load,
        measured_of: impl Fn(&Queue) -> Load,
        other: impl Fn(&WorkerState) -> Load,
        now: Time,
    ) -> TrialPlacement {
        let worker_states = self.workers.iter().map(|(id, worker_state)| {
            let other = other(worker_state);
            let (rank, core, has_unequal_shares) =
                (worker_state.rank, worker_state.worker.core, worker_state.has_unequal_shares);
            let (own, own_seen) = (Load::ZERO, Load::ZERO);
            let (queues, is_closed) = (0, false);
            (
                *id,
                TrialWorker {
                    rank,
                    core,
                    other_load: other,
                    queues_load: own,
                    measured_queues_load: own_seen,
                    queues,
                    is_being_emptied: is_closed,
                    has_unequal_shares,
                },
            )
        });
        let items = self.queues.iter().map(|(id, queue)| TrialQueue {
            queue: *id,
            worker: queue.worker,
            load: load(queue),
            measured_load: measured_of(queue),
            may_move: queue.may_move(now) && !self.uses_default_queue(*id),
        });
        TrialPlacement::new(worker_states, items, self.spec.max_workers)
    }

    /// Applies a move to the placement, as in transit, starts measuring its effect, and returns it
    /// for the caller of the policy.
    pub(crate) fn commit(&mut self, step: &TrialMove, reason: MoveReason, now: Time) -> Move {
        let TrialMove { queue, from, to, predicted } = *step;
        let decided = Move { queue, from, to, reason, predicted };
        let busy = |id| {
            self.workers.get(&id).map_or(Load::ZERO, |worker_state: &WorkerState| {
                worker_state.busy.mean_of_last_two()
            })
        };
        let measured =
            self.queues.get(&queue).map_or(Load::ZERO, |record| record.load.mean_of_last_two());
        self.pending_effects
            .insert(queue, PendingEffect::new(&decided, busy(from), busy(to), measured));
        for id in [from, to] {
            if let Some(worker_state) = self.workers.get_mut(&id) {
                worker_state.has_queue_changes = true;
            }
        }
        if let Some(record) = self.queues.get_mut(&queue) {
            record.worker = to;
            record.moving_from = Some(from);
            record.reason = PlacementReason::Moved { from, reason, predicted };
            record.placed_at = now;
            record.measurement_count = 0;
        }
        decided
    }
}
