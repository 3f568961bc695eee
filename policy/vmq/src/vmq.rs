//! The state machine: what it is told, and what it tells.

use std::collections::BTreeMap;

use core::time::Duration;

use suimon_quantity::{PortId, ProcessorId, QueueId, Time};

use crate::alert::Alert;
use crate::allowance::Allowance;
use crate::draft::{Draft, DraftSeat, Item, Step};
use crate::effect::Watch;
use crate::load::LastTwo;
use crate::marks::{PARKED_MAX, RETRY};
use crate::order::order;
use crate::patience::Patience;
use crate::queue::Queue;
use crate::seat::Seat;
use crate::spec::VmqMode;
use crate::{Load, Move, NicSpec, Processor, QueueError, Reason, SpecError, VmqSpec, Why};

/// What came of a queue that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The processor that is to own it.
    pub at: ProcessorId,
    /// What has to make room: the default queue may bring the base processor into use
    /// while as many are used as may be.
    pub moves: Vec<Move>,
}

/// Which processor works off which queue of one team or uplink.
#[derive(Clone, Debug)]
pub struct Vmq {
    pub(crate) spec: VmqSpec,
    pub(crate) seats: BTreeMap<ProcessorId, Seat>,
    /// Processors that may be used, in the order of use; at least one.
    pub(crate) order: Vec<ProcessorId>,
    pub(crate) nics: BTreeMap<PortId, NicSpec>,
    pub(crate) queues: BTreeMap<QueueId, Queue>,
    /// Of the measurement that is being added up.
    pub(crate) period: Duration,
    pub(crate) allowance: Allowance,
    pub(crate) patience: Patience,
    pub(crate) alert: Alert,
    /// The last move of each queue whose effect is not known yet.
    pub(crate) watches: BTreeMap<QueueId, Watch>,
}

impl Vmq {
    /// Without NICs and queues.
    ///
    /// # Errors
    /// What contradicts itself or the processors, and what would be accepted.
    pub fn new(spec: VmqSpec, processors: &[Processor], now: Time) -> Result<Self, SpecError> {
        let mut vmq = Self {
            order: order(&spec, processors)?,
            spec,
            seats: BTreeMap::new(),
            nics: BTreeMap::new(),
            queues: BTreeMap::new(),
            period: Duration::ZERO,
            allowance: Allowance::full(0, now),
            patience: Patience::new(now),
            alert: Alert::new(now),
            watches: BTreeMap::new(),
        };
        vmq.seat(processors, now);
        Ok(vmq)
    }

    /// What was specified last.
    pub const fn spec(&self) -> &VmqSpec {
        &self.spec
    }

    /// Changes what the operator wants. Queues that may not be where they are leave at
    /// once. Unless it is what was specified already, all holds, rests and used-up
    /// allowances are forgotten: it is another situation.
    ///
    /// # Errors
    /// What contradicts itself or the processors; nothing was changed.
    pub fn set_spec(&mut self, spec: VmqSpec, now: Time) -> Result<Vec<Move>, SpecError> {
        let processors: Vec<Processor> = self.seats.values().map(|seat| seat.processor).collect();
        self.configure(spec, &processors, now)
    }

    /// Changes what processors there are; see [`Vmq::set_spec`].
    ///
    /// # Errors
    /// What contradicts the specification; nothing was changed.
    pub fn set_processors(
        &mut self,
        processors: &[Processor],
        now: Time,
    ) -> Result<Vec<Move>, SpecError> {
        self.configure(self.spec.clone(), processors, now)
    }

    /// Both at once, where one is not possible without the other.
    ///
    /// # Errors
    /// What contradicts itself; nothing was changed.
    pub fn configure(
        &mut self,
        spec: VmqSpec,
        processors: &[Processor],
        now: Time,
    ) -> Result<Vec<Move>, SpecError> {
        let order = order(&spec, processors)?;
        let is_other = spec != self.spec || order != self.order;
        self.spec = spec;
        self.order = order;
        self.seat(processors, now);
        if is_other {
            self.forget_history(now);
        }
        let mut moves = self.settle(now);
        if is_other && self.spec.mode == VmqMode::Static {
            moves.extend(self.balance(now));
        }
        Ok(moves)
    }

    /// Forgets all holds, rests and used-up allowances. For when the load becomes another
    /// one by somebody's will, as when the team's mode changes.
    pub fn forget_history(&mut self, now: Time) {
        self.allowance = Allowance::full(self.queues.len(), now);
        self.patience = Patience::new(now);
        self.rouse();
        for queue in self.queues.values_mut() {
            queue.is_way_back_paid = true;
        }
        for seat in self.seats.values_mut() {
            seat.packable_since = None;
        }
    }

    /// The load or the placement is another one: what was learned of the former is of no use.
    pub(crate) fn rouse(&mut self) {
        self.alert.rouse();
        for seat in self.seats.values_mut() {
            seat.disappoints = false;
        }
    }

    fn seat(&mut self, processors: &[Processor], now: Time) {
        let mut before = core::mem::take(&mut self.seats);
        for processor in processors {
            let known = before.remove(&processor.number);
            let mut seat = known.unwrap_or_else(|| Seat::new(*processor, now));
            seat.processor = *processor;
            seat.rank = self.order.iter().position(|of| *of == processor.number);
            self.seats.insert(processor.number, seat);
        }
    }

    /// Adds a NIC or changes it. Its queues leave at once if they become the default queue;
    /// in static mode they are assigned anew if its weight changed.
    /// `queues_max` is how many the device has for it.
    ///
    /// # Errors
    /// What would be accepted instead; nothing was changed.
    pub fn set_nic(
        &mut self,
        nic: PortId,
        spec: NicSpec,
        queues_max: u16,
        now: Time,
    ) -> Result<Vec<Move>, SpecError> {
        spec.check(nic, queues_max)?;
        let before = self.nics.insert(nic, spec);
        let mut moves = self.settle(now);
        let is_other = before.is_some_and(|before| before.vmq_weight != spec.vmq_weight);
        if is_other && self.spec.mode == VmqMode::Static {
            moves.extend(self.reassign(nic, now));
        }
        Ok(moves)
    }

    /// Removes a NIC and its queues.
    pub fn remove_nic(&mut self, nic: PortId, now: Time) {
        self.nics.remove(&nic);
        self.queues.retain(|queue, _| queue.port != nic);
        self.watches.retain(|queue, _| queue.port != nic);
        self.allowance.resize(self.queues.len(), now);
    }

    /// Adds a queue, which counts as where it is to be.
    ///
    /// # Errors
    /// Why that is not possible; nothing was changed.
    pub fn add_queue(&mut self, queue: QueueId, now: Time) -> Result<Added, QueueError> {
        let nic = self.nics.get(&queue.port).ok_or(QueueError::UnknownNic(queue.port))?;
        if self.queues.contains_key(&queue) {
            return Err(QueueError::Duplicate(queue));
        }
        if queue.index >= nic.queues {
            return Err(QueueError::IndexTooHigh { queue, queues: nic.queues });
        }
        let (at, why) = self.first_place(*nic);
        self.queues.insert(queue, Queue::new(at, why, now));
        self.allowance.resize(self.queues.len(), now);
        Ok(Added { at, moves: self.settle(now) })
    }

    /// Where a queue of this NIC is to be if it is added now; `None` if the NIC is not
    /// known.
    pub fn home_of(&self, nic: PortId) -> Option<ProcessorId> {
        self.nics.get(&nic).map(|nic| self.first_place(*nic).0)
    }

    fn first_place(&self, nic: NicSpec) -> (ProcessorId, Why) {
        if !self.spec.enabled || nic.uses_default_queue() {
            (self.base(), Why::DefaultQueue)
        } else if self.spec.mode == VmqMode::Static {
            (self.lightest(), Why::Assigned { weight: nic.vmq_weight })
        } else {
            (self.home(), Why::Home)
        }
    }

    /// Removes a queue; says whether it was there.
    pub fn remove_queue(&mut self, queue: QueueId, now: Time) -> bool {
        let is_known = self.queues.remove(&queue).is_some();
        self.watches.remove(&queue);
        self.allowance.resize(self.queues.len(), now);
        is_known
    }

    /// Whether a queue was added.
    pub fn holds(&self, queue: QueueId) -> bool {
        self.queues.contains_key(&queue)
    }

    /// A move was carried out, or was not: the queue is at `at` now. Until this is said
    /// the queue counts as where it was to go, and is not moved again.
    pub fn handle_moved(&mut self, queue: QueueId, at: ProcessorId, now: Time) {
        let Some(of) = self.queues.get_mut(&queue) else { return };
        let Some(from) = of.coming_from.take() else { return };
        for id in [from, of.at, at] {
            if let Some(seat) = self.seats.get_mut(&id) {
                seat.is_disturbed = true;
            }
        }
        if of.at == at {
            if let Some(watch) = self.watches.get_mut(&queue) {
                watch.handle_carried_out();
            }
        } else {
            of.why = Why::NotMoved { wanted: of.at };
            of.at = at;
            of.since = now;
            of.retry_at = now + RETRY;
            self.watches.remove(&queue);
            self.alert.handle_not_moved();
        }
    }

    /// Where each queue is, or is on its way to.
    pub fn placement(&self) -> impl Iterator<Item = (QueueId, ProcessorId)> + '_ {
        self.queues.iter().map(|(id, queue)| (*id, queue.at))
    }

    /// Processors that may be used and have nothing to do: no queue, and no other work.
    pub fn parked(&self) -> Vec<ProcessorId> {
        let is_idle = |id: &&ProcessorId| {
            let other = self.seats.get(id).map_or(Load::ZERO, |seat| seat.other.mean());
            other <= PARKED_MAX && self.queues.values().all(|of| self.is_away(of, **id))
        };
        self.order.iter().filter(is_idle).copied().collect()
    }

    /// Whether the queue is not at the processor, and not on its way from there.
    fn is_away(&self, of: &Queue, id: ProcessorId) -> bool {
        of.at != id && of.coming_from != Some(id)
    }

    pub(crate) fn base(&self) -> ProcessorId {
        // The order is never empty.
        self.order.first().copied().unwrap_or(ProcessorId(0))
    }

    pub(crate) fn uses_default_queue(&self, queue: QueueId) -> bool {
        let nic = self.nics.get(&queue.port);
        !self.spec.enabled || nic.is_none_or(NicSpec::uses_default_queue)
    }

    /// What was measured of each processor, as if its queues had been there all the time.
    pub(crate) fn loads(&self) -> BTreeMap<ProcessorId, LastTwo> {
        let mut loads: BTreeMap<ProcessorId, LastTwo> =
            self.seats.iter().map(|(id, seat)| (*id, seat.other)).collect();
        for queue in self.queues.values() {
            if let Some(load) = loads.get_mut(&queue.at) {
                *load = load.with(queue.load);
            }
        }
        loads
    }

    /// By the means of the last two measurements.
    pub(crate) fn draft_of_means(&self, now: Time) -> Draft {
        let mean = |queue: &Queue| queue.load.mean();
        self.draft(mean, mean, |seat| seat.other.mean(), now)
    }

    pub(crate) fn draft(
        &self,
        load: impl Fn(&Queue) -> Load,
        seen: impl Fn(&Queue) -> Load,
        other: impl Fn(&Seat) -> Load,
        now: Time,
    ) -> Draft {
        let seats = self.seats.iter().map(|(id, seat)| {
            let other = other(seat);
            let (rank, core, disappoints) = (seat.rank, seat.processor.core, seat.disappoints);
            let (own, own_seen) = (Load::ZERO, Load::ZERO);
            let (queues, is_closed) = (0, false);
            (*id, DraftSeat { rank, core, other, own, own_seen, queues, is_closed, disappoints })
        });
        let items = self.queues.iter().map(|(id, queue)| Item {
            queue: *id,
            at: queue.at,
            load: load(queue),
            seen: seen(queue),
            may_move: queue.may_move(now) && !self.uses_default_queue(*id),
        });
        Draft::new(seats, items, self.spec.max_processors)
    }

    /// Decides a move.
    pub(crate) fn commit(&mut self, step: &Step, reason: Reason, now: Time) -> Move {
        let Step { queue, from, to, predicted } = *step;
        let decided = Move { queue, from, to, reason, predicted };
        let busy = |id| self.seats.get(&id).map_or(Load::ZERO, |seat: &Seat| seat.busy.mean());
        let seen = self.queues.get(&queue).map_or(Load::ZERO, |of| of.load.mean());
        self.watches.insert(queue, Watch::new(&decided, busy(from), busy(to), seen));
        for id in [from, to] {
            if let Some(seat) = self.seats.get_mut(&id) {
                seat.is_disturbed = true;
            }
        }
        if let Some(of) = self.queues.get_mut(&queue) {
            of.at = to;
            of.coming_from = Some(from);
            of.why = Why::Moved { from, reason, predicted };
            of.since = now;
            of.measured = 0;
        }
        decided
    }
}
