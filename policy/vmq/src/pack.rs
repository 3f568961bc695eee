//! Packing: emptying under-used workers, so that they park.

use std::collections::BTreeMap;

use suimon_quantity::{QueueId, Time, WorkerId};

use crate::thresholds::PACK_DELAY_HOT_FACTOR;
use crate::trial_placement::TrialMove;
use crate::vacate::vacate;
use crate::{Load, Move, MoveReason, Vmq};

/// Worker that can be emptied, with the moves that empty it.
struct Emptying {
    id: WorkerId,
    queues_load: Load,
    steps: Vec<TrialMove>,
}

impl Vmq {
    /// Updates since when each worker could be emptied continuously (`packable_since`).
    pub(crate) fn update_emptiable_since(&mut self, now: Time) {
        let packable: Vec<WorkerId> =
            self.emptyings(now, |_| true).iter().map(|emptying| emptying.id).collect();
        for (id, worker_state) in &mut self.workers {
            worker_state.emptiable_since =
                packable.contains(id).then(|| worker_state.emptiable_since.unwrap_or(now));
        }
    }

    /// Returns when a worker that could be emptied since `packable_since` will be emptied if no
    /// worker exceeds the high mark meanwhile.
    pub(crate) fn pack_due_at(&self, packable_since: Time) -> Time {
        let hold = self.pack_delay.delay();
        let beside_hot = packable_since + hold.saturating_mul(PACK_DELAY_HOT_FACTOR);
        (packable_since.max(self.shed_pacing.last_hot_at()) + hold).min(beside_hot)
    }

    /// Empties the workers for which that was possible throughout the delay, and returns the moves.
    /// Each move is deducted from the budget together with the queue's return.
    pub(crate) fn pack(&mut self, now: Time) -> Vec<Move> {
        let ripe: BTreeMap<WorkerId, Time> = self
            .workers
            .iter()
            .filter_map(|(id, worker_state)| {
                worker_state.emptiable_since.map(|packable_since| (*id, packable_since))
            })
            .filter(|(_, packable_since)| self.pack_due_at(*packable_since) <= now)
            .collect();
        if ripe.is_empty() {
            return Vec::new();
        }
        // A queue moved to a worker that is emptied too moves only once.
        let mut decided: BTreeMap<QueueId, (TrialMove, MoveReason)> = BTreeMap::new();
        for emptying in self.emptyings(now, |id| ripe.contains_key(&id)) {
            let new_steps = emptying.steps.iter().filter(|step| !decided.contains_key(&step.queue));
            let cost: u32 =
                new_steps.map(|step| if self.is_return_prepaid(step.queue) { 1 } else { 2 }).sum();
            if !self.move_budget.take(cost, now) {
                break;
            }
            let for_time = ripe.get(&emptying.id).map(|packable_since| now.since(*packable_since));
            let reason = MoveReason::Underused {
                queues_load: emptying.queues_load,
                emptiable_for: for_time.unwrap_or_default(),
            };
            for step in emptying.steps {
                let (combined, _) = decided.entry(step.queue).or_insert((step, reason));
                combined.to = step.to;
                combined.predicted.to_before = step.predicted.to_before;
                combined.predicted.to_after = step.predicted.to_after;
            }
        }
        let moves: Vec<Move> =
            decided.values().map(|(step, reason)| self.commit(step, *reason, now)).collect();
        for queue in decided.keys() {
            if let Some(record) = self.queues.get_mut(queue) {
                record.is_return_prepaid = true;
            }
        }
        if let Some(packable_since) = ripe.values().min().filter(|_| !moves.is_empty()) {
            self.pack_delay.handle_packed(moves.len(), *packable_since, now);
            if self.shed_pacing.last_hot_at() < *packable_since {
                self.reset_load_history();
            }
        }
        moves
    }

    /// Returns the workers among the wanted ones (`is_wanted`) that can be emptied together, in
    /// reverse order of use.
    fn emptyings(&self, now: Time, is_wanted: impl Fn(WorkerId) -> bool) -> Vec<Emptying> {
        let mut draft = self.trial_placement(
            |queue| queue.load.larger_of_last_two(),
            |queue| queue.load.mean_of_last_two(),
            |worker_state| worker_state.other_load.larger_of_last_two(),
            now,
        );
        let mut emptyings = Vec::new();
        if !self.spec.parking {
            return emptyings;
        }
        let (low, fit_mark) = (self.spec.water_marks.low, self.spec.water_marks.pack_limit());
        for id in draft.used_workers().into_iter().rev().filter(|id| is_wanted(*id)) {
            let Some(queues_load) = draft.worker(id).map(|worker_state| worker_state.queues_load)
            else {
                continue;
            };
            if draft.queues_on(id).iter().any(|item| !item.may_move) {
                continue;
            }
            let mut trial = draft.clone();
            let choose = |draft: &_, item: &_| {
                crate::trial_placement::TrialPlacement::first_fit(draft, item, fit_mark)
            };
            let Some(steps) = vacate(&mut trial, id, choose) else { continue };
            let is_low = |worker: WorkerId| {
                draft.worker(worker).is_some_and(|worker_state| worker_state.queues_load <= low)
            };
            // Two workers are merged only if the load of one of them is low.
            if is_low(id) || steps.iter().all(|step| is_low(step.to)) {
                draft = trial;
                emptyings.push(Emptying { id, queues_load, steps });
            }
        }
        emptyings
    }
}
