//! Shedding: moving queues away from workers above the high mark.

use std::collections::BTreeMap;

use suimon_quantity::{QueueId, Time, WorkerId};

use crate::load::RecentLoads;
use crate::queue::Queue;
use crate::thresholds::{
    FURTHER_SHED_LOAD_MIN, LOAD_REDUCTION_MIN, SATURATION_LOAD, SATURATION_MEAN_LOAD,
    SHED_QUEUE_LOAD_MIN,
};
use crate::trial_placement::{TrialPlacement, TrialQueue};
use crate::vacate::vacate;
use crate::worker_state::WorkerState;
use crate::{Load, Move, MoveReason, Vmq, WaterMarks};

/// Kind of load values on which one round of shedding is based.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// Last two measurements.
    Latest,
    /// Running mean over some seconds.
    Usual,
}

impl View {
    fn heat(self, load: RecentLoads) -> Load {
        match self {
            Self::Latest => load.smaller_of_last_two(),
            Self::Usual => load.running_mean(),
        }
    }

    /// Returns true if a worker with this load is saturated, so that the demand of its queues is
    /// unknown.
    fn is_saturated(self, load: RecentLoads) -> bool {
        match self {
            Self::Latest => load.smaller_of_last_two() >= SATURATION_LOAD,
            Self::Usual => load.running_mean() >= SATURATION_MEAN_LOAD,
        }
    }
}

/// Parameters of one round of shedding.
#[derive(Clone, Copy, Debug)]
struct Round {
    view: View,
    /// Load above which workers shed queues.
    threshold: Load,
    /// Number of queues that may move to any better worker. Further ones may move only to workers
    /// with room.
    unrestricted_max: usize,
}

impl Vmq {
    /// Records which workers are hot (above the high mark in two consecutive measurements), and
    /// detects changes of the load.
    pub(crate) fn record_hot_workers(&mut self, now: Time) {
        let loads = self.loads();
        let mut is_any_hot = false;
        let high = self.spec.water_marks.high;
        for (id, worker_state) in &mut self.workers {
            let load = loads.get(id).copied().unwrap_or_default();
            worker_state.record_hot(load.smaller_of_last_two() > high, now);
            is_any_hot |= load.larger_of_last_two() > high
                && self.queues.values().any(|queue| queue.worker == *id);
        }
        let combine = |sum: RecentLoads, queue: &Queue| sum.sum_with(queue.load);
        let sum = self.queues.values().fold(RecentLoads::default(), combine);
        if self.shed_pacing.handle_measured(sum.smaller_of_last_two(), is_any_hot, now) {
            self.reset_load_history();
        }
    }

    /// Sheds queues from all hot workers, the hottest first, and returns the moves. As many as
    /// necessary during an alert, otherwise one after a pause.
    pub(crate) fn shed(&mut self, now: Time) -> Vec<Move> {
        let loads = self.loads();
        let high = self.spec.water_marks.high;
        if self.shed_pacing.is_alert_permitted(now) {
            let round = Round { view: View::Latest, threshold: high, unrestricted_max: usize::MAX };
            let shed = self.shed_in(round, &loads, |_| true, now);
            if !shed.is_empty() && self.shed_pacing.handle_alert_shed(now) {
                self.workers.values_mut().for_each(|worker_state| worker_state.last_hot_at = now);
            }
            return shed;
        }
        if self.shed_pacing.allows_further_shed(now) {
            let round = Round {
                view: View::Usual,
                threshold: FURTHER_SHED_LOAD_MIN.max(high),
                unrestricted_max: 0,
            };
            return self.shed_in(round, &loads, |_| true, now);
        }
        if self.shed_pacing.next_shed_at() > now {
            return Vec::new();
        }
        for view in [View::Latest, View::Usual] {
            let is_telling =
                |worker_state: &WorkerState| view == View::Usual || worker_state.is_newly_hot;
            let round = Round { view, threshold: high, unrestricted_max: 1 };
            let shed = self.shed_in(round, &loads, is_telling, now);
            if !shed.is_empty() {
                self.shed_pacing.handle_paced_shed(now);
                return shed;
            }
        }
        Vec::new()
    }

    fn shed_in(
        &mut self,
        round: Round,
        loads: &BTreeMap<WorkerId, RecentLoads>,
        is_wanted: impl Fn(&WorkerState) -> bool,
        now: Time,
    ) -> Vec<Move> {
        let mut hot: Vec<(Load, WorkerId)> = loads
            .iter()
            .map(|(id, load)| (round.view.heat(*load), *id))
            .filter(|(heat, id)| *heat > round.threshold && self.order.contains(id))
            .filter(|(_, id)| self.workers.get(id).is_some_and(&is_wanted))
            .collect();
        if hot.is_empty() {
            return Vec::new();
        }
        hot.sort_unstable_by(|first, second| second.cmp(first));
        let mut draft = self.shedding_draft(round.view, loads, now);
        let mut moves = Vec::new();
        for (_, id) in hot {
            let other_load = self
                .workers
                .get(&id)
                .map_or(Load::ZERO, |worker_state| round.view.heat(worker_state.other_load));
            if other_load > self.spec.water_marks.high {
                moves.extend(self.evacuate(&mut draft, id, other_load, now));
            } else {
                let saturated = loads.get(&id).is_some_and(|load| round.view.is_saturated(*load));
                let anywhere = round.unrestricted_max.saturating_sub(moves.len());
                moves.extend(self.shed_one_by_one(&mut draft, id, saturated, anywhere, now));
            }
        }
        moves
    }

    fn shedding_draft(
        &self,
        view: View,
        loads: &BTreeMap<WorkerId, RecentLoads>,
        now: Time,
    ) -> TrialPlacement {
        if view == View::Usual {
            let is_full =
                |id: &WorkerId| loads.get(id).is_some_and(|load| view.is_saturated(*load));
            let demand = |queue: &Queue| {
                let usual = queue.load.running_mean();
                if is_full(&queue.worker) { usual.doubled() } else { usual }
            };
            let measured = |queue: &Queue| queue.load.running_mean();
            return self.trial_placement(
                demand,
                measured,
                |worker_state: &WorkerState| worker_state.other_load.running_mean(),
                now,
            );
        }
        // A single saturated measurement is enough to give a worker no further queues. While
        // queues come and go, the load of the current queues is less than the measured one.
        let is_full = |id: &WorkerId| {
            let is_saturated = loads.get(id).is_some_and(|load| load.latest() >= SATURATION_LOAD);
            is_saturated
                || self
                    .workers
                    .get(id)
                    .is_some_and(|worker_state| worker_state.busy.latest() >= SATURATION_LOAD)
        };
        let demand = |queue: &Queue| {
            if is_full(&queue.worker) {
                queue.load.latest().doubled()
            } else {
                queue.load.mean_of_last_two()
            }
        };
        let measured = |queue: &Queue| queue.load.mean_of_last_two();
        self.trial_placement(
            demand,
            measured,
            |worker_state: &WorkerState| worker_state.other_load.mean_of_last_two(),
            now,
        )
    }

    /// Returns true if a move of the queue would reduce the load of its hot worker, even if the
    /// budget or a pause prevents the move.
    pub(crate) fn has_better_worker(&self, id: QueueId, queue: &Queue, now: Time) -> bool {
        let loads = self.loads();
        let view = View::Latest;
        let draft = self.shedding_draft(view, &loads, now);
        let saturated = loads.get(&queue.worker).is_some_and(|load| view.is_saturated(*load));
        let item = draft.queues_on(queue.worker).into_iter().find(|item| item.queue == id);
        item.is_some_and(|item| {
            item.load >= SHED_QUEUE_LOAD_MIN
                && destination(&draft, &item, saturated, self.spec.water_marks).is_some()
        })
    }

    /// Moves all queues of worker `id`, which has a high load of other work (`other_load`), to
    /// other workers, if they all fit. Returns the moves, none if a queue does not fit or the
    /// budget is used up.
    fn evacuate(
        &mut self,
        draft: &mut TrialPlacement,
        id: WorkerId,
        other_load: Load,
        now: Time,
    ) -> Vec<Move> {
        let mut trial = draft.clone();
        for item in trial.queues_on(id) {
            if !self.is_known(item.queue) {
                trial.pin(item.queue);
            }
        }
        let shed_to = self.spec.water_marks.shed_target();
        let choose = |draft: &TrialPlacement, item: &TrialQueue| {
            let candidates = [draft.least_loaded(item), draft.worker_to_add(item)];
            let fitting = candidates.into_iter().flatten().find(|(after, _)| *after <= shed_to);
            fitting.map(|(_, to)| to)
        };
        let Some(steps) = vacate(&mut trial, id, choose) else { return Vec::new() };
        let cost = steps.iter().filter(|step| !self.is_return_prepaid(step.queue)).count();
        if !self.move_budget.take(u32::try_from(cost).unwrap_or(u32::MAX), now) {
            return Vec::new();
        }
        *draft = trial;
        let mut moves = Vec::new();
        for step in steps {
            draft.pin(step.queue);
            self.note_shed(step.queue);
            moves.push(self.commit(&step, MoveReason::OverloadedByOtherWork { other_load }, now));
        }
        moves
    }

    /// Moves queues away from worker `id` one after another until its predicted load is at most the
    /// level at which shedding ends, or no further move improves it. Returns the moves. `anywhere`
    /// is the number of queues that may move to workers without room.
    fn shed_one_by_one(
        &mut self,
        draft: &mut TrialPlacement,
        id: WorkerId,
        saturated: bool,
        anywhere: usize,
        now: Time,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        while let Some((item, to)) = self.shed_candidate(draft, id, saturated) {
            if moves.len() >= anywhere && !has_room(draft, &item, to, self.spec.water_marks) {
                break;
            }
            // Each queue is considered once, which bounds the loop.
            draft.pin(item.queue);
            if !self.is_return_prepaid(item.queue) && !self.move_budget.take(1, now) {
                continue;
            }
            let Some(step) = draft.move_queue(item.queue, to) else { continue };
            self.note_shed(item.queue);
            let reason =
                MoveReason::Overloaded { queue_load: item.load, is_worker_saturated: saturated };
            moves.push(self.commit(&step, reason, now));
        }
        moves
    }

    /// Returns the smallest queue whose move solves the overload, otherwise the largest one for
    /// which there is a better worker, and its destination. `None` if there is no such queue or the
    /// worker is not overloaded.
    fn shed_candidate(
        &self,
        draft: &TrialPlacement,
        id: WorkerId,
        saturated: bool,
    ) -> Option<(TrialQueue, WorkerId)> {
        let before = draft.worker(id)?.load();
        let shed_to = self.spec.water_marks.shed_target();
        if before <= shed_to {
            return None;
        }
        let may_leave = |item: &&TrialQueue| item.may_move && self.is_known(item.queue);
        let items = draft.queues_on(id);
        let required = before - shed_to;
        let solving = items.iter().filter(may_leave).rfind(|item| item.load >= required);
        let remaining =
            items.iter().filter(may_leave).filter(|item| item.load >= SHED_QUEUE_LOAD_MIN);
        solving.into_iter().chain(remaining).find_map(|item| {
            destination(draft, item, saturated, self.spec.water_marks).map(|to| (*item, to))
        })
    }

    pub(crate) fn is_return_prepaid(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|record| record.is_return_prepaid)
    }

    /// Returns true if enough measurements of the queue on its worker exist.
    fn is_known(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(Queue::is_load_known)
    }

    fn note_shed(&mut self, queue: QueueId) {
        if let Some(record) = self.queues.get_mut(&queue) {
            if !core::mem::take(&mut record.is_return_prepaid) {
                self.shed_pacing.record_unprepaid_shed();
            }
        }
    }
}

/// Returns the worker to which `item` of a hot worker should move, or `None` if none is better. In
/// order of preference: a worker in use with ample room; a new one or one in use with some room;
/// one that would be less loaded than the hot one is now; one where the queue gets a larger share.
/// The third must hold for both the assumed demand and the measured load, because the demand on a
/// saturated worker is unknown.
fn destination(
    draft: &TrialPlacement,
    item: &TrialQueue,
    saturated: bool,
    water_marks: WaterMarks,
) -> Option<WorkerId> {
    let emptiest = draft.least_loaded(item);
    if let Some((after, id)) = emptiest {
        if after <= water_marks.pack_limit() {
            return Some(id);
        }
    }
    let candidates = [draft.worker_to_add(item), emptiest];
    let fitting =
        candidates.into_iter().flatten().find(|(after, _)| *after <= water_marks.shed_target());
    if let Some((_, id)) = fitting {
        return Some(id);
    }
    let (after, id) = candidates.into_iter().flatten().min_by_key(|(after, _)| *after)?;
    let (from, to) = (draft.worker(item.worker)?, draft.worker(id)?);
    let is_less_full = after + LOAD_REDUCTION_MIN <= from.load()
        && to.measured_load() + item.measured_load <= from.measured_load();
    if is_less_full {
        return Some(id);
    }
    if saturated { gets_more(draft, item) } else { None }
}

/// Returns true if worker `to` stays at or below the level at which shedding ends with the measured
/// load of `item`.
fn has_room(
    draft: &TrialPlacement,
    item: &TrialQueue,
    to: WorkerId,
    water_marks: WaterMarks,
) -> bool {
    draft.worker(to).is_some_and(|worker_state| {
        worker_state.measured_load() + item.measured_load <= water_marks.shed_target()
    })
}

/// Returns the worker on which a queue with unmet demand would get the largest equal share, if that
/// is at least a quarter more than the queue gets now. The other queues on that worker keep at
/// least the same share.
fn gets_more(draft: &TrialPlacement, item: &TrialQueue) -> Option<WorkerId> {
    if item.load <= item.measured_load {
        return None;
    }
    let (share, id) = draft.largest_share(item)?;
    (share >= item.measured_load + item.measured_load.halved().halved()).then_some(id)
}
