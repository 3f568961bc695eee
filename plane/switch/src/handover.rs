//! Where each egress queue is, as one processor knows it, while queues move.
//!
//! A queue is owned by exactly one processor. Frames for a queue elsewhere go to
//! its owner's mailbox, which is first in, first out for each sender. When a
//! queue moves from A to B, nothing may be lost and no sender's frames may
//! overtake each other, although senders learn of the move at different times:
//!
//! 1. Every processor adopts the tables that name B as the owner. From then on it
//!    sends to B, and puts a *fence* into A's mailbox behind the last frame it
//!    sent there. B, whose own frames are for itself now, does the same.
//! 2. A keeps the queue, and delivers what is still in its mailbox, until the
//!    fences of all the others are there. Then it gives the queue to B.
//! 3. B *holds* frames for the queue until the queue itself arrives, delivers
//!    them first, and goes on. It may have to hold some before it has adopted the
//!    tables itself, from senders that were quicker.
//!
//! ```text
//! A:  Here ──adopt──► Leaving ──all fences──► At(B)
//! B:  At(A) (holds) ──adopt──► Arriving (holds) ──queue arrives──► Here
//! C:  At(A) ──adopt──► At(B)                (a fence to A)
//! ```
//!
//! Ingress queues need none of this: the owner stops polling, then puts the queue
//! into the new owner's mailbox, behind everything it sent there before; and
//! whatever it sent to third parties is in their mailboxes already.
//!
//! This module is the state machine alone, without threads or frames, so that
//! its test can run it through every interleaving it can think of.

use std::collections::BTreeMap;

use suimon_quantity::{ProcessorId, QueueId};

/// Where to take a frame for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The queue is here.
    Here,
    /// Into that processor's mailbox.
    At(ProcessorId),
    /// Hold it: the queue is on its way here.
    Hold,
    /// Nobody has such a queue.
    Nowhere,
}

/// A fence to put into a processor's mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FenceDue {
    pub to: ProcessorId,
    pub queue: QueueId,
}

#[derive(Debug)]
enum State<Held> {
    Here,
    At(ProcessorId),
    Arriving { held: Vec<Held> },
    Leaving { to: ProcessorId, fences_due: usize },
}

/// One processor's knowledge of all egress queues.
#[derive(Debug)]
pub(crate) struct Routes<Held> {
    me: ProcessorId,
    states: BTreeMap<QueueId, State<Held>>,
    /// Fences that came before this processor had adopted the same tables.
    early_fences: BTreeMap<QueueId, usize>,
    /// What came for queues that are elsewhere, as far as this processor knows.
    early_mail: BTreeMap<QueueId, Vec<Held>>,
}

/// What is to be done after new tables were adopted.
#[derive(Debug)]
pub(crate) struct Adopted<Held> {
    pub fences: Vec<FenceDue>,
    /// Queues to give away at once.
    pub departing: Vec<(QueueId, ProcessorId)>,
    /// What was held for queues that are no more.
    pub orphans: Vec<Held>,
}

impl<Held> Routes<Held> {
    pub(crate) fn new(me: ProcessorId) -> Self {
        Self {
            me,
            states: BTreeMap::new(),
            early_fences: BTreeMap::new(),
            early_mail: BTreeMap::new(),
        }
    }

    /// Adopts the tables' owners. `others` is how many other processors do the
    /// same; `is_here` tells whether this processor has a queue in hand.
    pub(crate) fn adopt(
        &mut self,
        owners: &[(QueueId, ProcessorId)],
        others: usize,
        is_here: impl Fn(QueueId) -> bool,
    ) -> Adopted<Held> {
        let mut before = std::mem::take(&mut self.states);
        let mut adopted =
            Adopted { fences: Vec::new(), departing: Vec::new(), orphans: Vec::new() };
        for &(queue, owner) in owners {
            let is_mine = owner == self.me;
            let state = match before.remove(&queue) {
                None if !is_mine => State::At(owner),
                None if is_here(queue) => State::Here,
                None => self.arriving(queue),
                Some(State::At(from)) if from != owner => {
                    adopted.fences.push(FenceDue { to: from, queue });
                    if is_mine { self.arriving(queue) } else { State::At(owner) }
                }
                Some(State::Here) if !is_mine => self.leaving(queue, owner, others, &mut adopted),
                Some(unchanged) => unchanged,
            };
            self.states.insert(queue, state);
        }
        for state in before.into_values() {
            if let State::Arriving { held } = state {
                adopted.orphans.extend(held);
            }
        }
        self.early_fences.retain(|queue, _| self.states.contains_key(queue));
        let is_orphan = |queue: &QueueId| !self.states.contains_key(queue);
        for queue in self.early_mail.keys().copied().filter(is_orphan).collect::<Vec<_>>() {
            adopted.orphans.extend(self.early_mail.remove(&queue).unwrap_or_default());
        }
        adopted
    }

    fn arriving(&mut self, queue: QueueId) -> State<Held> {
        State::Arriving { held: self.early_mail.remove(&queue).unwrap_or_default() }
    }

    fn leaving(
        &mut self,
        queue: QueueId,
        to: ProcessorId,
        others: usize,
        adopted: &mut Adopted<Held>,
    ) -> State<Held> {
        let early = self.early_fences.remove(&queue).unwrap_or(0);
        match others.saturating_sub(early) {
            0 => {
                adopted.departing.push((queue, to));
                State::At(to)
            }
            fences_due => State::Leaving { to, fences_due },
        }
    }

    /// A fence came. Returns the new owner if the queue is to be given to it now.
    pub(crate) fn handle_fence(&mut self, queue: QueueId) -> Option<ProcessorId> {
        match self.states.get_mut(&queue) {
            Some(State::Leaving { to, fences_due }) => {
                *fences_due -= 1;
                if *fences_due > 0 {
                    return None;
                }
                let to = *to;
                self.states.insert(queue, State::At(to));
                Some(to)
            }
            Some(State::Here) => {
                *self.early_fences.entry(queue).or_default() += 1;
                None
            }
            _ => None,
        }
    }

    /// The queue itself came. Returns what was held for it, in order.
    pub(crate) fn handle_arrival(&mut self, queue: QueueId) -> Vec<Held> {
        match self.states.insert(queue, State::Here) {
            Some(State::Arriving { held }) => held,
            _ => Vec::new(),
        }
    }

    /// Holds a frame or parcel until the queue comes. Gives it back if there is no
    /// such queue, it is here, or `held_max` are held already.
    pub(crate) fn hold(&mut self, queue: QueueId, what: Held, held_max: usize) -> Result<(), Held> {
        let held = match self.states.get_mut(&queue) {
            Some(State::Arriving { held }) => held,
            Some(State::At(_)) => self.early_mail.entry(queue).or_default(),
            _ => return Err(what),
        };
        if held.len() >= held_max {
            return Err(what);
        }
        held.push(what);
        Ok(())
    }

    /// Where to take a frame that starts here.
    pub(crate) fn route(&self, queue: QueueId) -> Route {
        match self.states.get(&queue) {
            None => Route::Nowhere,
            Some(State::Here) => Route::Here,
            Some(State::At(owner) | State::Leaving { to: owner, .. }) => Route::At(*owner),
            Some(State::Arriving { .. }) => Route::Hold,
        }
    }

    /// Where to take a frame that came through the mailbox. A queue that is
    /// leaving still takes those; and if the queue is elsewhere, the sender knows
    /// already that it will come here.
    pub(crate) fn route_of_mail(&self, queue: QueueId) -> Route {
        match self.states.get(&queue) {
            Some(State::Leaving { .. }) => Route::Here,
            Some(State::At(_)) => Route::Hold,
            _ => self.route(queue),
        }
    }
}

#[cfg(test)]
#[path = "handover_tests.rs"]
mod tests;
