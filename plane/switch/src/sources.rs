//! The ingress queues of a processor, and which of them a round has to look at.
//!
//! Queues that wait for their notification are not among those, so that hundreds of
//! idle ones cost a busy one nothing.

use suimon_ports::Wakeup;
use suimon_quantity::QueueId;

use crate::owned::{OwnedSource, Readiness};

/// One queue, and what its owner remembers of polling it.
pub(crate) struct PolledSource {
    pub owned: Box<OwnedSource>,
    /// Polls in a row that brought nothing.
    pub empty_polls: u32,
    /// Whether its token is in [`Sources::active`].
    is_active: bool,
}

/// See the module. A token is a queue's place from [`Sources::insert`] to
/// [`Sources::remove`].
#[derive(Default)]
pub(crate) struct Sources {
    /// By token.
    places: Vec<Option<PolledSource>>,
    /// Tokens of all that do not wait, each once; behind a change perhaps also some
    /// that do, until [`Sources::forget_waiting`].
    active: Vec<usize>,
    /// Whether one of `active` waits.
    is_stale: bool,
    len: usize,
}

impl Sources {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether a queue waits for its notification.
    pub(crate) fn has_waiting(&self) -> bool {
        self.active.len() < self.len
    }

    /// Tokens to look at: those from 0 to below this, by [`Sources::active_token`].
    pub(crate) fn active(&self) -> usize {
        self.active.len()
    }

    pub(crate) fn active_token(&self, nth: usize) -> Option<usize> {
        self.active.get(nth).copied()
    }

    /// Those that are polled or left alone for a while.
    pub(crate) fn iter_active(&self) -> impl Iterator<Item = &OwnedSource> + '_ {
        let sources = self.active.iter().filter_map(|token| self.places.get(*token)?.as_ref());
        sources.map(|source| &*source.owned)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OwnedSource> + '_ {
        self.places.iter_mut().flatten().map(|source| &mut *source.owned)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, token: usize) -> Option<&mut PolledSource> {
        self.places.get_mut(token)?.as_mut()
    }

    pub(crate) fn token_of(&self, queue: QueueId) -> Option<usize> {
        self.places
            .iter()
            .position(|source| matches!(source, Some(source) if source.owned.id == queue))
    }

    /// Takes a queue in, which is polled at first; gives its token.
    pub(crate) fn insert(&mut self, mut owned: Box<OwnedSource>) -> usize {
        owned.readiness = Readiness::Polling;
        let token = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if token == self.places.len() {
            self.places.push(None);
        }
        self.places[token] = Some(PolledSource { owned, empty_polls: 0, is_active: true });
        self.active.push(token);
        self.len += 1;
        token
    }

    pub(crate) fn remove(&mut self, token: usize) -> Option<Box<OwnedSource>> {
        let source = self.places.get_mut(token)?.take()?;
        self.active.retain(|active| *active != token);
        self.len -= 1;
        Some(source.owned)
    }

    /// Lets a queue wait for its notification, unless something just came.
    pub(crate) fn arm(&mut self, token: usize) -> Wakeup {
        let Some(source) = self.get_mut(token) else { return Wakeup::Armed };
        let owned = &mut source.owned;
        // Perhaps all that came since the last frame was dropped by the source.
        owned.count_malformed();
        let wakeup = owned.source.arm();
        match wakeup {
            Wakeup::Armed => {
                owned.readiness = Readiness::Waiting;
                self.is_stale = true;
            }
            Wakeup::Pending => owned.source.disarm(),
        }
        wakeup
    }

    /// Lets all queues wait. `false` if something came meanwhile.
    pub(crate) fn arm_all(&mut self) -> bool {
        let mut all_quiet = true;
        for nth in 0..self.active.len() {
            let Some(token) = self.active_token(nth) else { break };
            let is_polled = self
                .get_mut(token)
                .is_some_and(|source| source.owned.readiness == Readiness::Polling);
            if is_polled && self.arm(token) == Wakeup::Pending {
                all_quiet = false;
            }
        }
        self.forget_waiting();
        all_quiet
    }

    /// A queue that waited is polled again.
    pub(crate) fn wake(&mut self, token: usize) {
        let Some(source) = self.get_mut(token) else { return };
        if source.owned.readiness != Readiness::Waiting {
            return;
        }
        source.owned.source.disarm();
        source.owned.readiness = Readiness::Polling;
        if !std::mem::replace(&mut source.is_active, true) {
            self.active.push(token);
        }
    }

    /// Leaves out those that began to wait since the last time.
    pub(crate) fn forget_waiting(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let places = &mut self.places;
        self.active.retain(|token| {
            let Some(Some(source)) = places.get_mut(*token) else { return false };
            source.is_active = source.owned.readiness != Readiness::Waiting;
            source.is_active
        });
    }
}
