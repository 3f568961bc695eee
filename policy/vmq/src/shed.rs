//! Shedding: a processor above the high mark gives queues away.

use std::collections::BTreeMap;

use suimon_quantity::{ProcessorId, QueueId, Time};

use crate::draft::{Draft, Item};
use crate::load::LastTwo;
use crate::marks::{FOLLOWS, GAIN_MIN, SATURATED, SATURATED_USUALLY, SHED_MIN};
use crate::queue::Queue;
use crate::seat::Seat;
use crate::vacate::vacate;
use crate::{Load, Move, Reason, Vmq, WaterMarks};

/// What shedding goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// The last two measurements.
    Latest,
    /// What is usual.
    Usual,
}

impl View {
    fn heat(self, load: LastTwo) -> Load {
        match self {
            Self::Latest => load.smaller(),
            Self::Usual => load.usual(),
        }
    }

    /// Whether the processor did all it could, so that what its queues want cannot be seen.
    fn is_saturated(self, load: LastTwo) -> bool {
        match self {
            Self::Latest => load.smaller() >= SATURATED,
            Self::Usual => load.usual() >= SATURATED_USUALLY,
        }
    }
}

/// How queues are shed.
#[derive(Clone, Copy, Debug)]
struct Round {
    view: View,
    /// From processors that are above this.
    above: Load,
    /// So many queues wherever that is better; more of them only to where there is room.
    anywhere: usize,
}

impl Vmq {
    /// Notes which processors are hot, and whether the load is another one than before.
    pub(crate) fn note_heat(&mut self, now: Time) {
        let loads = self.loads();
        let mut is_any_hot = false;
        let high = self.spec.water.high;
        for (id, seat) in &mut self.seats {
            let load = loads.get(id).copied().unwrap_or_default();
            seat.note_heat(load.smaller() > high, now);
            is_any_hot |= load.larger() > high && self.queues.values().any(|of| of.at == *id);
        }
        let all = |sum: LastTwo, queue: &Queue| sum.with(queue.load);
        let sum = self.queues.values().fold(LastTwo::default(), all);
        if self.alert.handle_measured(sum.smaller(), is_any_hot, now) {
            self.rouse();
        }
    }

    /// Sheds from all hot processors, the hottest first. After a step of load, all that it
    /// takes; otherwise one queue after a rest.
    pub(crate) fn shed(&mut self, now: Time) -> Vec<Move> {
        let loads = self.loads();
        let high = self.spec.water.high;
        if self.alert.is_on(now) {
            let round = Round { view: View::Latest, above: high, anywhere: usize::MAX };
            let shed = self.shed_in(round, &loads, |_| true, now);
            if !shed.is_empty() && self.alert.handle_shed(now) {
                self.seats.values_mut().for_each(|seat| seat.hot_at = now);
            }
            return shed;
        }
        if self.alert.is_followed(now) {
            let round = Round { view: View::Usual, above: FOLLOWS.max(high), anywhere: 0 };
            return self.shed_in(round, &loads, |_| true, now);
        }
        if self.alert.rest_until() > now {
            return Vec::new();
        }
        for view in [View::Latest, View::Usual] {
            let is_telling = |seat: &Seat| view == View::Usual || seat.is_newly_hot;
            let round = Round { view, above: high, anywhere: 1 };
            let shed = self.shed_in(round, &loads, is_telling, now);
            if !shed.is_empty() {
                self.alert.handle_shed_after_rest(now);
                return shed;
            }
        }
        Vec::new()
    }

    fn shed_in(
        &mut self,
        round: Round,
        loads: &BTreeMap<ProcessorId, LastTwo>,
        is_wanted: impl Fn(&Seat) -> bool,
        now: Time,
    ) -> Vec<Move> {
        let mut hot: Vec<(Load, ProcessorId)> = loads
            .iter()
            .map(|(id, load)| (round.view.heat(*load), *id))
            .filter(|(heat, id)| *heat > round.above && self.order.contains(id))
            .filter(|(_, id)| self.seats.get(id).is_some_and(&is_wanted))
            .collect();
        if hot.is_empty() {
            return Vec::new();
        }
        hot.sort_unstable_by(|one, other| other.cmp(one));
        let mut draft = self.shedding_draft(round.view, loads, now);
        let mut moves = Vec::new();
        for (_, id) in hot {
            let other = self.seats.get(&id).map_or(Load::ZERO, |seat| round.view.heat(seat.other));
            if other > self.spec.water.high {
                moves.extend(self.flee(&mut draft, id, other, now));
            } else {
                let saturated = loads.get(&id).is_some_and(|load| round.view.is_saturated(*load));
                let anywhere = round.anywhere.saturating_sub(moves.len());
                moves.extend(self.relieve(&mut draft, id, saturated, anywhere, now));
            }
        }
        moves
    }

    fn shedding_draft(
        &self,
        view: View,
        loads: &BTreeMap<ProcessorId, LastTwo>,
        now: Time,
    ) -> Draft {
        if view == View::Usual {
            let is_full =
                |id: &ProcessorId| loads.get(id).is_some_and(|load| view.is_saturated(*load));
            let wants = |queue: &Queue| {
                let usual = queue.load.usual();
                if is_full(&queue.at) { usual.doubled() } else { usual }
            };
            let seen = |queue: &Queue| queue.load.usual();
            return self.draft(wants, seen, |seat: &Seat| seat.other.usual(), now);
        }
        // One measurement is enough for not giving a processor more. As long as queues come
        // and go, what those that are here now cost is less than what was measured of it.
        let is_full = |id: &ProcessorId| {
            let own = loads.get(id).is_some_and(|load| load.latest() >= SATURATED);
            own || self.seats.get(id).is_some_and(|seat| seat.busy.latest() >= SATURATED)
        };
        let wants = |queue: &Queue| {
            if is_full(&queue.at) { queue.load.latest().doubled() } else { queue.load.mean() }
        };
        let seen = |queue: &Queue| queue.load.mean();
        self.draft(wants, seen, |seat: &Seat| seat.other.mean(), now)
    }

    /// Whether a move would help that is not made for other reasons.
    pub(crate) fn has_better_place(&self, id: QueueId, queue: &Queue, now: Time) -> bool {
        let loads = self.loads();
        let view = View::Latest;
        let draft = self.shedding_draft(view, &loads, now);
        let saturated = loads.get(&queue.at).is_some_and(|load| view.is_saturated(*load));
        let item = draft.items_at(queue.at).into_iter().find(|item| item.queue == id);
        item.is_some_and(|item| {
            item.load >= SHED_MIN
                && better_place(&draft, &item, saturated, self.spec.water).is_some()
        })
    }

    /// Other work takes the processor, so that its queues go somewhere else, if they all
    /// fit there.
    fn flee(&mut self, draft: &mut Draft, id: ProcessorId, other: Load, now: Time) -> Vec<Move> {
        let mut trial = draft.clone();
        for item in trial.items_at(id) {
            if !self.is_known(item.queue) {
                trial.pin(item.queue);
            }
        }
        let shed_to = self.spec.water.shed_to();
        let place = |draft: &Draft, item: &Item| {
            let candidates = [draft.emptiest(item), draft.fresh(item)];
            let fitting = candidates.into_iter().flatten().find(|(after, _)| *after <= shed_to);
            fitting.map(|(_, to)| to)
        };
        let Some(steps) = vacate(&mut trial, id, place) else { return Vec::new() };
        let owed = steps.iter().filter(|step| !self.is_way_back_paid(step.queue)).count();
        if !self.allowance.take(u32::try_from(owed).unwrap_or(u32::MAX), now) {
            return Vec::new();
        }
        *draft = trial;
        let mut moves = Vec::new();
        for step in steps {
            draft.pin(step.queue);
            self.note_shed(step.queue);
            moves.push(self.commit(&step, Reason::Crowded { other_load: other }, now));
        }
        moves
    }

    /// One queue after another leaves, until the processor is expected to be below the mark or
    /// nothing is better than what is.
    fn relieve(
        &mut self,
        draft: &mut Draft,
        id: ProcessorId,
        saturated: bool,
        anywhere: usize,
        now: Time,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        while let Some((item, to)) = self.relief(draft, id, saturated) {
            if moves.len() >= anywhere && !has_room(draft, &item, to, self.spec.water) {
                break;
            }
            // Once for each queue, so that there is an end.
            draft.pin(item.queue);
            if !self.is_way_back_paid(item.queue) && !self.allowance.take(1, now) {
                continue;
            }
            let Some(step) = draft.shift(item.queue, to) else { continue };
            self.note_shed(item.queue);
            let reason = Reason::Overloaded { queue_load: item.load, saturated };
            moves.push(self.commit(&step, reason, now));
        }
        moves
    }

    /// The smallest queue that solves it, or else the largest that has a better place.
    fn relief(
        &self,
        draft: &Draft,
        id: ProcessorId,
        saturated: bool,
    ) -> Option<(Item, ProcessorId)> {
        let before = draft.seat(id)?.load();
        let shed_to = self.spec.water.shed_to();
        if before <= shed_to {
            return None;
        }
        let may_leave = |item: &&Item| item.may_move && self.is_known(item.queue);
        let items = draft.items_at(id);
        let needed = before - shed_to;
        let solving = items.iter().filter(may_leave).rfind(|item| item.load >= needed);
        let others = items.iter().filter(may_leave).filter(|item| item.load >= SHED_MIN);
        solving.into_iter().chain(others).find_map(|item| {
            better_place(draft, item, saturated, self.spec.water).map(|to| (*item, to))
        })
    }

    pub(crate) fn is_way_back_paid(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|of| of.is_way_back_paid)
    }

    /// Whether it was measured where it is.
    fn is_known(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(Queue::is_known)
    }

    fn note_shed(&mut self, queue: QueueId) {
        if let Some(of) = self.queues.get_mut(&queue) {
            if !core::mem::take(&mut of.is_way_back_paid) {
                self.alert.note_unpaid();
            }
        }
    }
}

/// Where `item` is to go from a hot processor: with much room among those in use; with
/// some room, on one that is begun to be used or on one in use; or at least so that no
/// processor is as full as this one was, or the queue gets more. The former must be so by
/// what is expected and by what was measured, because what a saturated processor's queues
/// want is not known.
fn better_place(
    draft: &Draft,
    item: &Item,
    saturated: bool,
    water: WaterMarks,
) -> Option<ProcessorId> {
    let emptiest = draft.emptiest(item);
    if let Some((after, id)) = emptiest {
        if after <= water.fit() {
            return Some(id);
        }
    }
    let candidates = [draft.fresh(item), emptiest];
    let fitting = candidates.into_iter().flatten().find(|(after, _)| *after <= water.shed_to());
    if let Some((_, id)) = fitting {
        return Some(id);
    }
    let (after, id) = candidates.into_iter().flatten().min_by_key(|(after, _)| *after)?;
    let (from, to) = (draft.seat(item.at)?, draft.seat(id)?);
    let is_less_full = after + GAIN_MIN <= from.load() && to.seen() + item.seen <= from.seen();
    if is_less_full {
        return Some(id);
    }
    if saturated { gets_more(draft, item) } else { None }
}

/// Whether there is room for what was measured of a queue.
fn has_room(draft: &Draft, item: &Item, to: ProcessorId, water: WaterMarks) -> bool {
    draft.seat(to).is_some_and(|seat| seat.seen() + item.seen <= water.shed_to())
}

/// Where a queue that wants more than it gets gets most, all sharing alike with it, if that
/// is a quarter more at the least. The others there get no less than it gets then.
fn gets_more(draft: &Draft, item: &Item) -> Option<ProcessorId> {
    if item.load <= item.seen {
        return None;
    }
    let (share, id) = draft.largest_share(item)?;
    (share >= item.seen + item.seen.halved().halved()).then_some(id)
}
