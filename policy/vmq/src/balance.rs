//! Static assignment of queues to workers, balanced by weight when queues are added or the
//! configuration changes.

use std::collections::BTreeMap;

use suimon_quantity::{PortId, QueueId, Time, WorkerId};

use crate::{Move, MoveReason, Vmq};

impl Vmq {
    /// Returns the workers to which static assignment may assign queues: the first `max_workers` in
    /// the order of use.
    fn assignable(&self) -> impl Iterator<Item = WorkerId> + '_ {
        self.order.iter().take(self.spec.max_workers.into()).copied()
    }

    pub(crate) fn weight(&self, queue: QueueId) -> u8 {
        self.nics.get(&queue.port).map_or(0, |nic| nic.vmq_weight)
    }

    /// Returns the total queue weight of each worker.
    fn weights(&self) -> BTreeMap<WorkerId, u64> {
        let mut weights: BTreeMap<WorkerId, u64> = self.assignable().map(|id| (id, 0)).collect();
        for (id, queue) in &self.queues {
            if let Some(weight) = weights.get_mut(&queue.worker) {
                *weight += u64::from(self.weight(*id));
            }
        }
        weights
    }

    /// Returns the worker with the lowest total weight, the first in order among equals: equal
    /// weights are assigned round robin.
    pub(crate) fn lightest_worker(&self) -> WorkerId {
        let weights = self.weights();
        // The first among equals is chosen.
        self.assignable()
            .min_by_key(|id| weights.get(id).copied())
            .unwrap_or_else(|| self.base_worker())
    }

    /// Moves queues from workers that are no longer permitted, or exceed `max_workers`, to the
    /// worker with the lowest weight. Other queues stay. Returns the moves.
    pub(crate) fn vacate_disallowed_workers_static(&mut self, now: Time) -> Vec<Move> {
        let assignable: Vec<WorkerId> = self.assignable().collect();
        let astray = self.queues.iter().filter(|(id, queue)| {
            !assignable.contains(&queue.worker)
                && !self.uses_default_queue(**id)
                && queue.may_move(now)
        });
        let mut astray: Vec<QueueId> = astray.map(|(id, _)| *id).collect();
        astray.sort_by_key(|id| (core::cmp::Reverse(self.weight(*id)), *id));
        let mut moves = Vec::new();
        for queue in astray {
            let Some(from) = self.queues.get(&queue).map(|record| record.worker) else { continue };
            let is_permitted =
                self.workers.get(&from).is_some_and(|worker_state| worker_state.rank.is_some());
            let max_workers = self.spec.max_workers;
            let reason = if is_permitted {
                MoveReason::WorkerLimit { max_workers }
            } else {
                MoveReason::NotPermitted
            };
            moves.extend(self.assign(queue, self.lightest_worker(), reason, now));
        }
        moves
    }

    /// Assigns the queues of a NIC again as if they were added now; other queues stay. Returns the
    /// moves.
    pub(crate) fn reassign(&mut self, nic: PortId, now: Time) -> Vec<Move> {
        let of_nic = self.queues.iter().filter(|(id, queue)| {
            id.port == nic && queue.may_move(now) && !self.uses_default_queue(**id)
        });
        let of_nic: Vec<QueueId> = of_nic.map(|(id, _)| *id).collect();
        let mut moves = Vec::new();
        for queue in of_nic {
            let (weight, from) =
                (self.weight(queue), self.queues.get(&queue).map(|record| record.worker));
            // The queue's own weight is excluded from its current worker.
            let weights = self.weights();
            let lightest = self.assignable().min_by_key(|id| {
                let own_weight = if Some(*id) == from { u64::from(weight) } else { 0 };
                weights.get(id).map(|sum| sum - own_weight)
            });
            if let Some(to) = lightest.filter(|to| Some(*to) != from) {
                moves.extend(self.assign(
                    queue,
                    to,
                    MoveReason::AssignedStatically { weight },
                    now,
                ));
            }
        }
        moves
    }

    /// Balances the weights with few moves after a change of the configuration, and returns the
    /// moves. Each queue moves at most once.
    pub(crate) fn balance(&mut self, now: Time) -> Vec<Move> {
        let mut moves = Vec::new();
        while let Some((queue, to)) = self.balancing_move(now) {
            let weight = self.weight(queue);
            moves.extend(self.assign(queue, to, MoveReason::AssignedStatically { weight }, now));
        }
        moves
    }

    /// Returns the heaviest queue on the heaviest worker whose move to the lightest worker reduces
    /// their difference, and that worker; `None` if there is none. Queues in transit are excluded,
    /// which bounds the loop of the caller.
    fn balancing_move(&self, now: Time) -> Option<(QueueId, WorkerId)> {
        let weights = self.weights();
        let to = self.lightest_worker();
        let min_weight = weights.get(&to).copied()?;
        let (from, max_weight) = weights.iter().max_by_key(|(id, weight)| (**weight, **id))?;
        let of_heaviest = self.queues.iter().filter(|(id, queue)| {
            queue.worker == *from && queue.may_move(now) && !self.uses_default_queue(**id)
        });
        of_heaviest
            .map(|(id, _)| (self.weight(*id), *id))
            .filter(|(weight, _)| u64::from(*weight) < max_weight - min_weight)
            .max()
            .map(|(_, id)| (id, to))
    }

    fn assign(
        &mut self,
        queue: QueueId,
        to: WorkerId,
        reason: MoveReason,
        now: Time,
    ) -> Option<Move> {
        let mut draft = self.trial_of_mean_loads(now);
        let step = draft.move_queue(queue, to)?;
        Some(self.commit(&step, reason, now))
    }
}
