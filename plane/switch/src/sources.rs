//! Ingress queues of a worker, and the subset that a round polls.
//!
//! Queues that wait for their notification are not polled, so that hundreds of idle queues cost a
//! busy worker nothing.

use suimon_ports::ArmResult;
use suimon_quantity::QueueId;

use crate::owned::{OwnedSource, Readiness};

/// Queue with its polling state.
pub(crate) struct PolledSource {
    pub source: Box<OwnedSource>,
    /// Number of polls since the queue last returned a frame.
    pub empty_polls: u32,
    /// True if its token is in [`Sources::active`].
    is_active: bool,
}

/// Ingress queues of one worker. A token is the index of a queue from [`Sources::insert`] to
/// [`Sources::remove`].
#[derive(Default)]
pub(crate) struct Sources {
    /// Queues by token; `None` for unused tokens.
    slots: Vec<Option<PolledSource>>,
    /// Tokens of all queues that do not wait, each once. After a change it may contain waiting
    /// queues, until [`Sources::remove_waiting_from_active`].
    active: Vec<usize>,
    /// True if `active` contains a waiting queue.
    is_stale: bool,
    len: usize,
}

impl Sources {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns true if a queue is not polled but waits for its notification.
    pub(crate) fn has_waiting(&self) -> bool {
        self.active.len() < self.len
    }

    /// Returns the number of tokens to poll, for [`Sources::active_token`].
    pub(crate) fn active_count(&self) -> usize {
        self.active.len()
    }

    pub(crate) fn active_token(&self, index: usize) -> Option<usize> {
        self.active.get(index).copied()
    }

    /// Returns the queues that are polled or throttled.
    pub(crate) fn iter_active(&self) -> impl Iterator<Item = &OwnedSource> + '_ {
        let sources = self.active.iter().filter_map(|token| self.slots.get(*token)?.as_ref());
        sources.map(|source| &*source.source)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OwnedSource> + '_ {
        self.slots.iter_mut().flatten().map(|source| &mut *source.source)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, token: usize) -> Option<&mut PolledSource> {
        self.slots.get_mut(token)?.as_mut()
    }

    pub(crate) fn token(&self, queue: QueueId) -> Option<usize> {
        self.slots
            .iter()
            .position(|source| matches!(source, Some(source) if source.source.id == queue))
    }

    /// Adds a queue in the polling state. Returns its token.
    pub(crate) fn insert(&mut self, mut owned: Box<OwnedSource>) -> usize {
        owned.readiness = Readiness::Polling;
        let token = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if token == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[token] = Some(PolledSource { source: owned, empty_polls: 0, is_active: true });
        self.active.push(token);
        self.len += 1;
        token
    }

    pub(crate) fn remove(&mut self, token: usize) -> Option<Box<OwnedSource>> {
        let source = self.slots.get_mut(token)?.take()?;
        self.active.retain(|active| *active != token);
        self.len -= 1;
        Some(source.source)
    }

    /// Enables the notification of a queue and stops polling it, unless frames have just arrived.
    pub(crate) fn arm(&mut self, token: usize) -> ArmResult {
        let Some(source) = self.get_mut(token) else { return ArmResult::Armed };
        let owned = &mut source.source;
        // The source may have dropped all frames that arrived since the last poll.
        owned.count_malformed();
        let wakeup = owned.source.arm();
        match wakeup {
            ArmResult::Armed => {
                owned.readiness = Readiness::Waiting;
                self.is_stale = true;
            }
            ArmResult::Pending => owned.source.disarm(),
        }
        wakeup
    }

    /// Enables the notifications of all polled queues. Returns false if frames arrived meanwhile.
    pub(crate) fn arm_all(&mut self) -> bool {
        let mut all_quiet = true;
        for index in 0..self.active.len() {
            let Some(token) = self.active_token(index) else { break };
            let is_polled = self
                .get_mut(token)
                .is_some_and(|source| source.source.readiness == Readiness::Polling);
            if is_polled && self.arm(token) == ArmResult::Pending {
                all_quiet = false;
            }
        }
        self.remove_waiting_from_active();
        all_quiet
    }

    /// Makes a waiting queue polled again.
    pub(crate) fn wake(&mut self, token: usize) {
        let Some(source) = self.get_mut(token) else { return };
        if source.source.readiness != Readiness::Waiting {
            return;
        }
        source.source.source.disarm();
        source.source.readiness = Readiness::Polling;
        if !std::mem::replace(&mut source.is_active, true) {
            self.active.push(token);
        }
    }

    /// Removes the tokens of waiting queues from `active`.
    pub(crate) fn remove_waiting_from_active(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let slots = &mut self.slots;
        self.active.retain(|token| {
            let Some(Some(source)) = slots.get_mut(*token) else { return false };
            source.is_active = source.source.readiness != Readiness::Waiting;
            source.is_active
        });
    }
}
