//! Emptying of workers, and moves of queues away from workers that are not permitted.

use suimon_quantity::{QueueId, Time, WorkerId};

use crate::spec::VmqMode;
use crate::trial_placement::{TrialMove, TrialPlacement, TrialQueue};
use crate::{Load, Move, MoveReason, PlacementReason, Vmq};

/// Moves all movable queues of worker `id` in the draft, each to the worker that `choose` returns,
/// and returns the moves; `None`, without a change, if `choose` finds no worker for one of them. If
/// all its queues are movable, the worker no longer counts as used.
pub(crate) fn vacate(
    draft: &mut TrialPlacement,
    id: WorkerId,
    choose: impl Fn(&TrialPlacement, &TrialQueue) -> Option<WorkerId>,
) -> Option<Vec<TrialMove>> {
    let mut trial = draft.clone();
    let items = trial.queues_on(id);
    if items.iter().all(|item| item.may_move) {
        trial.mark_being_emptied(id);
    }
    let mut steps = Vec::new();
    for item in items.iter().filter(|item| item.may_move) {
        let to = choose(&trial, item)?;
        steps.push(trial.move_queue(item.queue, to)?);
    }
    *draft = trial;
    Some(steps)
}

impl Vmq {
    /// Returns the worker for a new queue: the first in use with room, else an unused one, else the
    /// least loaded one in use; the base worker if none is in use.
    pub(crate) fn first_worker_with_room(&self) -> WorkerId {
        let loads = self.loads();
        let fit_mark = self.spec.water_marks.pack_limit();
        let has_room =
            |id: &WorkerId| loads.get(id).is_none_or(|load| load.mean_of_last_two() <= fit_mark);
        let draft = self.trial_of_mean_loads(Time::ZERO);
        let used = draft.used_workers();
        if used.is_empty() {
            return self.base_worker();
        }
        let roomy = used.iter().find(|id| has_room(id)).copied();
        let can_begin = used.len() < usize::from(self.spec.max_workers);
        let unused = || {
            let mut free = self.order.iter().filter(|id| !used.contains(id));
            free.find(|id| has_room(id)).copied().filter(|_| can_begin)
        };
        let emptiest = || {
            let load = |id: &&WorkerId| loads.get(id).map(|load| load.mean_of_last_two());
            used.iter().min_by_key(load).copied()
        };
        roomy.or_else(unused).or_else(emptiest).unwrap_or_else(|| self.base_worker())
    }

    /// Moves queues away from workers that are not permitted or exceed `max_workers`, and default
    /// queues to the base worker. Returns the moves.
    pub(crate) fn vacate_disallowed_workers(&mut self, now: Time) -> Vec<Move> {
        self.note_default();
        let mut moves = self.settle_default(now);
        match self.spec.mode {
            VmqMode::Static => moves.extend(self.vacate_disallowed_workers_static(now)),
            VmqMode::Dynamic => moves.extend(self.settle_dynamic(now)),
        }
        for queue in moves.iter().map(|decided| decided.queue) {
            if let Some(queue) = self.queues.get_mut(&queue) {
                // The configuration, not load, caused the move.
                queue.is_return_prepaid = true;
            }
        }
        moves
    }

    /// Updates the placement reasons of queues on the base worker that became default queues, and
    /// of those that ceased to be default queues.
    fn note_default(&mut self) {
        let ids: Vec<QueueId> = self.queues.keys().copied().collect();
        for id in ids {
            let is_default = self.uses_default_queue(id);
            let not_default = match self.spec.mode {
                VmqMode::Static => PlacementReason::AssignedStatically { weight: self.weight(id) },
                VmqMode::Dynamic => PlacementReason::InitialPlacement,
            };
            let base = self.base_worker();
            let Some(queue) = self.queues.get_mut(&id) else { continue };
            match (is_default, queue.reason) {
                (
                    true,
                    PlacementReason::DefaultQueue
                    | PlacementReason::Moved { reason: MoveReason::DefaultQueue, .. },
                ) => {}
                (true, _) if queue.worker == base => queue.reason = PlacementReason::DefaultQueue,
                (false, PlacementReason::DefaultQueue)
                | (false, PlacementReason::Moved { reason: MoveReason::DefaultQueue, .. }) => {
                    queue.reason = not_default;
                }
                _ => {}
            }
        }
    }

    fn settle_default(&mut self, now: Time) -> Vec<Move> {
        let base = self.base_worker();
        let mut draft = self.trial_of_mean_loads(now);
        let astray = self.queues.iter().filter(|(id, queue)| {
            self.uses_default_queue(**id) && queue.worker != base && queue.may_move(now)
        });
        let astray: Vec<QueueId> = astray.map(|(id, _)| *id).collect();
        let mut moves = Vec::new();
        for queue in astray {
            if let Some(step) = draft.move_queue(queue, base) {
                moves.push(self.commit(&step, MoveReason::DefaultQueue, now));
            }
        }
        moves
    }

    fn settle_dynamic(&mut self, now: Time) -> Vec<Move> {
        let mut draft = self.trial_of_mean_loads(now);
        let max_workers = self.spec.max_workers;
        let too_many: Vec<WorkerId> =
            draft.used_workers().into_iter().skip(max_workers.into()).collect();
        for id in &too_many {
            draft.mark_being_emptied(*id);
        }
        let is_allowed = |worker: &WorkerId| {
            !too_many.contains(worker)
                && self.workers.get(worker).is_some_and(|worker_state| worker_state.rank.is_some())
        };
        let mut moves = Vec::new();
        let leaving = draft.queues_on_disallowed(is_allowed);
        for item in leaving.iter().filter(|item| item.may_move) {
            let Some(step) = best_worker(&draft, item, self.spec.water_marks.pack_limit())
                .and_then(|to| draft.move_queue(item.queue, to))
            else {
                continue;
            };
            let reason = if too_many.contains(&item.worker) {
                MoveReason::WorkerLimit { max_workers }
            } else {
                MoveReason::NotPermitted
            };
            moves.push(self.commit(&step, reason, now));
        }
        moves
    }
}

/// Returns the best worker for a queue that cannot stay on its worker; `None` only if all others
/// are being emptied.
fn best_worker(draft: &TrialPlacement, item: &TrialQueue, fit_mark: Load) -> Option<WorkerId> {
    let emptiest = draft.least_loaded(item);
    if let Some((after, id)) = emptiest {
        if after <= fit_mark {
            return Some(id);
        }
    }
    // With equal loads, the worker in use is preferred.
    let unused = draft.worker_to_add(item);
    [emptiest, unused].into_iter().flatten().min_by_key(|(after, _)| *after).map(|(_, id)| id)
}
