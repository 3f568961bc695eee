//! Shedding: a processor above the high mark gives queues away.

use std::collections::BTreeMap;

use suimon_quantity::{ProcessorId, QueueId, Time};

use crate::draft::{Draft, Item};
use crate::load::LastTwo;
use crate::marks::{FIT, GAIN_MIN, HIGH, SATURATED, SHED_MIN, SHED_TO};
use crate::queue::Queue;
use crate::seat::Seat;
use crate::vacate::vacate;
use crate::{Load, Move, Reason, Vmq};

impl Vmq {
    /// Sheds from all hot processors, the hottest first.
    pub(crate) fn shed(&mut self, now: Time) -> Vec<Move> {
        let loads = self.loads();
        let mut hot: Vec<(Load, ProcessorId)> = loads
            .iter()
            .filter(|(id, load)| load.smaller() > HIGH && self.order.contains(id))
            .map(|(id, load)| (load.smaller(), *id))
            .collect();
        if hot.is_empty() {
            return Vec::new();
        }
        hot.sort_unstable_by(|one, other| other.cmp(one));
        let mut draft = self.shedding_draft(&loads, now);
        let mut moves = Vec::new();
        for (_, id) in hot {
            let crowding = self.seats.get(&id).map_or(Load::ZERO, |seat| seat.other.smaller());
            if crowding > HIGH {
                moves.extend(self.flee(&mut draft, id, crowding, now));
            } else {
                moves.extend(self.relieve(&mut draft, id, is_saturated(&loads, id), now));
            }
        }
        moves
    }

    fn shedding_draft(&self, loads: &BTreeMap<ProcessorId, LastTwo>, now: Time) -> Draft {
        // One measurement is enough for not giving a processor more. As long as queues come
        // and go, what those that are here now cost is less than what was measured of it.
        let is_full = |id: &ProcessorId| {
            let own = loads.get(id).is_some_and(|load| load.latest() >= SATURATED);
            own || self.seats.get(id).is_some_and(|seat| seat.busy.latest() >= SATURATED)
        };
        let wants = |queue: &Queue| {
            if is_full(&queue.at) { queue.load.latest().doubled() } else { queue.load.mean() }
        };
        self.draft(wants, |seat: &Seat| seat.other.mean(), now)
    }

    /// Whether a move would help that is not made for other reasons.
    pub(crate) fn has_better_place(&self, id: QueueId, queue: &Queue, now: Time) -> bool {
        let loads = self.loads();
        let draft = self.shedding_draft(&loads, now);
        let saturated = is_saturated(&loads, queue.at);
        let item = draft.items_at(queue.at).into_iter().find(|item| item.queue == id);
        item.is_some_and(|item| {
            item.load >= SHED_MIN && better_place(&draft, &item, saturated).is_some()
        })
    }

    /// Other work takes the processor, so that its queues go somewhere else, if they all
    /// fit there.
    fn flee(&mut self, draft: &mut Draft, id: ProcessorId, other: Load, now: Time) -> Vec<Move> {
        let mut trial = draft.clone();
        for item in trial.items_at(id) {
            if self.rests(item.queue, now) {
                trial.pin(item.queue);
            }
        }
        let place = |draft: &Draft, item: &Item| {
            let candidates = [draft.emptiest(item), draft.fresh(item)];
            let fitting = candidates.into_iter().flatten().find(|(after, _)| *after <= SHED_TO);
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
            self.handle_shed(step.queue, now);
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
        now: Time,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        while let Some((item, to)) = self.relief(draft, id, saturated, now) {
            // Once for each queue, so that there is an end.
            draft.pin(item.queue);
            if !self.is_way_back_paid(item.queue) && !self.allowance.take(1, now) {
                continue;
            }
            let Some(step) = draft.shift(item.queue, to) else { continue };
            self.handle_shed(item.queue, now);
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
        now: Time,
    ) -> Option<(Item, ProcessorId)> {
        let before = draft.seat(id)?.load();
        if before <= SHED_TO {
            return None;
        }
        let may_leave = |item: &&Item| item.may_move && !self.rests(item.queue, now);
        let items = draft.items_at(id);
        let needed = before - SHED_TO;
        let solving = items.iter().filter(may_leave).rfind(|item| item.load >= needed);
        let others = items.iter().filter(may_leave).filter(|item| item.load >= SHED_MIN);
        solving
            .into_iter()
            .chain(others)
            .find_map(|item| better_place(draft, item, saturated).map(|to| (*item, to)))
    }

    pub(crate) fn is_way_back_paid(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some_and(|of| of.is_way_back_paid)
    }

    /// Whether a queue was shed too often to be shed now.
    fn rests(&self, queue: QueueId, now: Time) -> bool {
        self.queues.get(&queue).is_some_and(|of| !of.is_way_back_paid && of.rest_until > now)
    }

    fn handle_shed(&mut self, queue: QueueId, now: Time) {
        if let Some(of) = self.queues.get_mut(&queue) {
            if !core::mem::take(&mut of.is_way_back_paid) {
                of.tire(now);
            }
        }
    }
}

/// Where `item` is to go from a hot processor: with much room among those in use; with
/// some room, on one that is begun to be used or on one in use; or at least so that no
/// processor is as full as this one was, or the queue gets more. The former must be so by
/// what is expected and by what was measured, because what a saturated processor's queues
/// want is not known.
fn better_place(draft: &Draft, item: &Item, saturated: bool) -> Option<ProcessorId> {
    let emptiest = draft.emptiest(item);
    if let Some((after, id)) = emptiest {
        if after <= FIT {
            return Some(id);
        }
    }
    let candidates = [draft.fresh(item), emptiest];
    let fitting = candidates.into_iter().flatten().find(|(after, _)| *after <= SHED_TO);
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

/// Where a queue that wants more than it gets gets most, all sharing alike with it, if that
/// is a quarter more at the least. The others there get no less than it gets then.
fn gets_more(draft: &Draft, item: &Item) -> Option<ProcessorId> {
    if item.load <= item.seen {
        return None;
    }
    let (share, id) = draft.largest_share(item)?;
    (share >= item.seen + item.seen.halved().halved()).then_some(id)
}

/// Whether the processor did all it could, so that what its queues want cannot be seen.
fn is_saturated(loads: &BTreeMap<ProcessorId, LastTwo>, id: ProcessorId) -> bool {
    loads.get(&id).is_some_and(|load| load.smaller() >= SATURATED)
}
