//! Draft placement on which moves are evaluated before they are made.

use std::collections::BTreeMap;

use suimon_quantity::{ProcessorId, QueueId};

use crate::marks::SHED_MIN;
use crate::{Figures, Load};

/// Queue in a draft.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub queue: QueueId,
    pub at: ProcessorId,
    /// Assumed demand of the queue.
    pub load: Load,
    /// Measured load of the queue, which is below the demand on a saturated processor.
    pub seen: Load,
    pub may_move: bool,
}

/// Processor in a draft.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftSeat {
    pub rank: Option<usize>,
    pub core: u32,
    /// Load of other work on the processor.
    pub other: Load,
    /// Assumed demand of its queues.
    pub own: Load,
    /// Measured load of its queues.
    pub own_seen: Load,
    pub queues: usize,
    /// True while the processor is being emptied: it accepts no queues and does not count as used.
    pub is_closed: bool,
    /// True if queues moved here got less than expected.
    pub disappoints: bool,
}

impl DraftSeat {
    pub(crate) fn load(&self) -> Load {
        self.other + self.own
    }

    pub(crate) fn seen(&self) -> Load {
        self.other + self.own_seen
    }

    fn is_used(&self) -> bool {
        self.rank.is_some() && self.queues > 0 && !self.is_closed
    }

    fn is_free(&self) -> bool {
        self.rank.is_some() && self.queues == 0 && !self.is_closed
    }
}

/// Move in a draft.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub queue: QueueId,
    pub from: ProcessorId,
    pub to: ProcessorId,
    pub predicted: Figures,
}

/// Draft placement. See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    seats: BTreeMap<ProcessorId, DraftSeat>,
    items: BTreeMap<QueueId, Item>,
    processors_max: usize,
}

impl Draft {
    pub(crate) fn new(
        seats: impl Iterator<Item = (ProcessorId, DraftSeat)>,
        items: impl Iterator<Item = Item>,
        processors_max: u16,
    ) -> Self {
        let mut seats: BTreeMap<_, _> = seats.collect();
        let items: BTreeMap<_, _> = items.map(|item| (item.queue, item)).collect();
        for item in items.values() {
            if let Some(seat) = seats.get_mut(&item.at) {
                seat.own = seat.own + item.load;
                seat.own_seen = seat.own_seen + item.seen;
                seat.queues += 1;
            }
        }
        Self { seats, items, processors_max: processors_max.into() }
    }

    pub(crate) fn seat(&self, id: ProcessorId) -> Option<&DraftSeat> {
        self.seats.get(&id)
    }

    /// Returns the queues of a processor, highest load first.
    pub(crate) fn items_at(&self, id: ProcessorId) -> Vec<Item> {
        self.items_astray(|at| *at != id)
    }

    /// Returns the queues of processors for which `stays` is false, highest load first.
    pub(crate) fn items_astray(&self, stays: impl Fn(&ProcessorId) -> bool) -> Vec<Item> {
        let mut items: Vec<Item> =
            self.items.values().filter(|item| !stays(&item.at)).copied().collect();
        items.sort_by_key(|item| (core::cmp::Reverse(item.load), item.queue));
        items
    }

    /// Returns the processors in use, in the order of use.
    pub(crate) fn used(&self) -> Vec<ProcessorId> {
        let mut used: Vec<_> = self
            .seats
            .iter()
            .filter(|(_, seat)| seat.is_used())
            .map(|(id, seat)| (seat.rank, *id))
            .collect();
        used.sort_unstable();
        used.into_iter().map(|(_, id)| id).collect()
    }

    pub(crate) fn close(&mut self, id: ProcessorId) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.is_closed = true;
        }
    }

    /// Fixes a queue on its processor.
    pub(crate) fn pin(&mut self, queue: QueueId) {
        if let Some(item) = self.items.get_mut(&queue) {
            item.may_move = false;
        }
    }

    /// Returns the load of `to` with `item`. Half of the load of a sibling thread counts too,
    /// because siblings share the core.
    pub(crate) fn after(&self, item: &Item, to: ProcessorId, seat: &DraftSeat) -> Load {
        let siblings = self.seats.iter().filter(|(id, of)| of.core == seat.core && **id != to);
        let siblings: Load = siblings
            .map(|(id, of)| if *id == item.at { of.load() - item.load } else { of.load() })
            .sum();
        seat.load() + item.load + siblings.halved()
    }

    /// Returns the processor in use with the lowest load including `item`, and that load.
    pub(crate) fn emptiest(&self, item: &Item) -> Option<(Load, ProcessorId)> {
        self.candidates(item, DraftSeat::is_used)
            .map(|(id, seat)| (self.after(item, id, seat), seat.rank, id))
            .min()
            .map(|(after, _, id)| (after, id))
    }

    /// Returns the processor, in use or free for use, on which `item` gets the largest share if all
    /// active queues there share equally, and the share.
    pub(crate) fn largest_share(&self, item: &Item) -> Option<(Load, ProcessorId)> {
        let fresh = self.fresh(item).map(|(_, id)| id);
        self.candidates(item, |_| true)
            .filter(|(id, seat)| (seat.is_used() && !seat.disappoints) || fresh == Some(*id))
            .map(|(id, seat)| (self.share(id, seat), seat.rank, id))
            .max_by_key(|(share, rank, _)| (*share, core::cmp::Reverse(*rank)))
            .map(|(share, _, id)| (share, id))
    }

    fn share(&self, id: ProcessorId, seat: &DraftSeat) -> Load {
        let here = self.items.values().filter(|of| of.at == id && of.seen >= SHED_MIN);
        (Load::WHOLE - seat.other).shared_by(here.count().saturating_add(1))
    }

    /// Returns the first processor in use on which the load including `item` is at most `limit`.
    pub(crate) fn first_fit(&self, item: &Item, limit: Load) -> Option<ProcessorId> {
        self.candidates(item, DraftSeat::is_used)
            .filter(|(id, seat)| self.after(item, *id, seat) <= limit)
            .min_by_key(|(_, seat)| seat.rank)
            .map(|(id, _)| id)
    }

    /// Returns the unused processor to bring into use for `item`, if one more is permitted: the
    /// first in order, unless another is less loaded by a tenth.
    pub(crate) fn fresh(&self, item: &Item) -> Option<(Load, ProcessorId)> {
        let used = self.seats.iter().filter(|(id, seat)| {
            let leaves_none = **id == item.at && seat.queues == 1;
            seat.is_used() && !leaves_none
        });
        if used.count() >= self.processors_max {
            return None;
        }
        self.candidates(item, DraftSeat::is_free)
            .map(|(id, seat)| (self.after(item, id, seat), seat.rank, id))
            .min_by_key(|(after, rank, _)| (after.ppm() / Load::percent(10).ppm(), *rank))
            .map(|(after, _, id)| (after, id))
    }

    fn candidates(
        &self,
        item: &Item,
        is_candidate: impl Fn(&DraftSeat) -> bool,
    ) -> impl Iterator<Item = (ProcessorId, &DraftSeat)> {
        let from = item.at;
        let all = self.seats.iter().map(|(id, seat)| (*id, seat));
        all.filter(move |(id, seat)| *id != from && is_candidate(seat))
    }

    /// Moves a queue in the draft. The predicted loads exclude sibling threads.
    pub(crate) fn shift(&mut self, queue: QueueId, to: ProcessorId) -> Option<Step> {
        let item = self.items.get_mut(&queue)?;
        let Item { at: from, load, seen, .. } = *item;
        item.at = to;
        let mut predicted = Figures::default();
        if let Some(seat) = self.seats.get_mut(&from) {
            predicted.from_before = seat.load();
            seat.own = seat.own - load;
            seat.own_seen = seat.own_seen - seen;
            seat.queues = seat.queues.saturating_sub(1);
            predicted.from_after = seat.load();
        }
        if let Some(seat) = self.seats.get_mut(&to) {
            predicted.to_before = seat.load();
            seat.own = seat.own + load;
            seat.own_seen = seat.own_seen + seen;
            seat.queues += 1;
            predicted.to_after = seat.load();
        }
        Some(Step { queue, from, to, predicted })
    }
}
