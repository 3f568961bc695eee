//! A store on a processor: who decides when its requests go, and what waits for that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use core::time::Duration;
use suimon_quantity::{ProcessorId, StoreId, Time};
use suimon_recording::{Recorded, Sink};
use suimon_storage_qos::{
    Borrower, CapabilityEstimate, Change, Completed, Completion, DiskFlow, DiskSlot, Event, Next,
    Operation, Phase, SAMPLE, StoreBudget, StoreScheduler, StoreSpec, SubmitError, Submitted,
    Together, Unscheduled,
};

use crate::ended::Ended;

/// Requests of a queue that wait for their store at most, if all queues of the store can
/// have so many. What comes more stays in the queue.
const WAITING_PER_QUEUE_MAX: u32 = 64;

/// How a processor takes part in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRole {
    /// No other processor has disks of it.
    Sole,
    /// Its budget is here, and others borrow from it.
    Home,
    /// Its budget is on this processor.
    Away(ProcessorId),
}

/// What a store does on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// How the processor takes part. Until it has been settled what other processors
    /// have, one that is to be alone is [`StoreRole::Home`].
    pub role: StoreRole,
    /// This processor's requests that wait.
    pub waiting: u32,
    /// This processor's requests that were let go and not answered.
    pub under_way: u32,
    /// Requests of all workers in the device, as far as they were reported; 0 where the budget is
    /// elsewhere, as the next two.
    pub in_flight: u32,
    /// Requests that the device may have.
    pub depth: u32,
    /// What the device takes for a request, in nanoseconds.
    pub latency_ns: u64,
    /// What the store did when requests last waited for it; `None` where the budget is
    /// elsewhere.
    pub estimate: Option<CapabilityEstimate>,
}

/// Who decides.
pub(crate) enum Mode {
    Sole(Box<Recorded<StoreScheduler>>),
    Home {
        budget: Box<Recorded<StoreBudget>>,
        own: Box<Borrower>,
    },
    Away {
        home: ProcessorId,
        own: Box<Borrower>,
    },
    /// Only while one becomes another.
    Between,
}

impl Mode {
    /// What borrows for this processor, where several use the store.
    #[inline(never)]
    fn borrower(&mut self) -> Option<&mut Borrower> {
        match self {
            Self::Home { own, .. } | Self::Away { own, .. } => Some(own),
            Self::Sole(_) | Self::Between => None,
        }
    }
}

/// A store on a processor.
pub(crate) struct StoreUse {
    pub(crate) id: StoreId,
    pub(crate) spec: StoreSpec,
    pub(crate) mode: Mode,
    /// No other processor uses it any more, or is to.
    pub(crate) is_to_be_sole: bool,
    /// It is removed when nothing of it is left here.
    pub(crate) is_leaving: bool,
    /// Disks and queues of it on this processor.
    pub(crate) disks: u32,
    queues: u32,
    /// Requests of each queue that may wait.
    pub(crate) each: u32,
    /// Requests that wait here, and what is [`StoreUse::owed`].
    pub(crate) waiting: u32,
    /// Requests that were let go and not answered.
    pub(crate) under_way: u32,
    /// What the scheduler has yet to hear of, where this processor has the store to itself: it does
    /// before it is asked what goes next.
    ended: Ended,
    /// Bytes of requests that were let through out of turn, and are paid for when their
    /// turn comes; oldest first. As long as there are any, they are all that waits, or
    /// before all that waits, of the disk in this slot.
    pub(crate) owed: BTreeMap<DiskSlot, VecDeque<u32>>,
    /// Queues that are not read because as many requests wait as may wait.
    pub(crate) starved: VecDeque<usize>,
    /// Something came since it was looked at.
    is_used: bool,
    observed: Time,
}

impl StoreUse {
    /// Recorded where there is somewhere to.
    pub(crate) fn new(
        now: Time,
        id: StoreId,
        spec: StoreSpec,
        role: StoreRole,
        sink: Option<&Arc<dyn Sink>>,
    ) -> Self {
        let mode = match role {
            StoreRole::Away(home) => Mode::Away { home, own: Box::new(borrower(&spec)) },
            StoreRole::Sole | StoreRole::Home => {
                let begins = (now, &*id.0.to_string());
                Mode::Sole(Box::new(Recorded::scheduler(sink, begins, spec.clone())))
            }
        };
        Self {
            id,
            spec,
            mode,
            is_to_be_sole: false,
            is_leaving: false,
            disks: 0,
            queues: 0,
            each: WAITING_PER_QUEUE_MAX,
            waiting: 0,
            under_way: 0,
            ended: Ended::default(),
            owed: BTreeMap::new(),
            starved: VecDeque::new(),
            is_used: false,
            observed: Time::ZERO,
        }
    }

    pub(crate) fn borrower(&self) -> Box<Borrower> {
        Box::new(borrower(&self.spec))
    }

    /// A disk's request came; `tag` is the disk's number. In line, as is what is told of an answer: each
    /// is called in one place, for every request.
    #[inline(always)]
    pub(crate) fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<Submitted, SubmitError> {
        self.is_used = true;
        let submitted = match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.submit(now, slot, bytes, tag),
            of => match of.borrower() {
                Some(own) => own.submit(now, slot, bytes, tag),
                None => Err(SubmitError::NoDisk(slot)),
            },
        };
        match submitted {
            Ok(Submitted::Dispatch) => self.under_way += 1,
            Ok(Submitted::Waits) => self.waiting += 1,
            Err(_) => {}
        }
        submitted
    }

    /// Requests of a disk came at once, of so many bytes each. `None`: each is to be submitted by
    /// itself.
    #[inline]
    pub(crate) fn submit_together(
        &mut self,
        now: Time,
        slot: DiskSlot,
        sizes: &[u32],
        tag: u32,
    ) -> Option<Together> {
        let Mode::Sole(scheduler) = &mut self.mode else { return None };
        let of = scheduler.submit_together(now, slot, sizes, tag).ok()?;
        self.is_used = true;
        self.under_way += u32::try_from(of.dispatched).unwrap_or(u32::MAX);
        self.waiting += u32::try_from(of.waiting).unwrap_or(u32::MAX);
        Some(of)
    }

    /// What goes next.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Next {
        match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.poll(now),
            of => of.borrower().map_or(Next::Idle, |own| own.poll(now)),
        }
    }

    /// A request that was let go was answered. `is_alone`: nothing else of its queue is under way that
    /// could end in this turn, so it need not be collected.
    #[inline(always)]
    pub(crate) fn handle_answered(
        &mut self,
        now: Time,
        slot: DiskSlot,
        of: Completed,
        is_alone: bool,
    ) {
        self.under_way = self.under_way.saturating_sub(1);
        match &mut self.mode {
            Mode::Sole(scheduler) if is_alone && self.ended.is_empty() => {
                scheduler.handle_completed(now, slot, of);
            }
            Mode::Sole(scheduler) => self.ended.add(scheduler, now, slot, of),
            _ => self.complete(now, slot, of),
        }
    }

    /// The scheduler hears of all that ended.
    #[inline]
    pub(crate) fn tell_ended(&mut self, now: Time) {
        if let Mode::Sole(scheduler) = &mut self.mode {
            self.ended.tell(scheduler, now);
        }
    }

    /// This processor's worker was runnable and not running while a disk had requests.
    pub(crate) fn handle_unscheduled(&mut self, now: Time, of: Unscheduled) {
        match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.handle_unscheduled(of),
            mode => {
                if let Some(own) = mode.borrower() {
                    own.handle_unscheduled(now, of);
                }
            }
        }
    }

    /// A request in flight of a disk enters another phase.
    pub(crate) fn handle_phase(&mut self, now: Time, slot: DiskSlot, from: Phase, to: Phase) {
        match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.handle_phase(now, slot, from, to),
            mode => {
                if let Some(own) = mode.borrower() {
                    own.handle_phase(now, slot, from, to);
                }
            }
        }
    }

    fn complete(&mut self, now: Time, slot: DiskSlot, of: Completed) {
        match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.handle_completed(now, slot, of),
            Mode::Home { own, .. } | Mode::Away { own, .. } => {
                let Completed { operation, bytes, latency_ns, .. } = of;
                let latency = latency_ns.map(Duration::from_nanos);
                own.handle_completion(now, Completion { disk: slot, operation, bytes, latency });
            }
            Mode::Between => {}
        }
    }

    /// Something that waits was let go: whether it was only owed.
    #[inline]
    pub(crate) fn handle_let_go(&mut self, now: Time, slot: DiskSlot) -> bool {
        self.waiting = self.waiting.saturating_sub(1);
        let paid = self.owed.get_mut(&slot).and_then(VecDeque::pop_front);
        let Some(bytes) = paid else {
            self.under_way += 1;
            return false;
        };
        let operation = Operation::Other;
        let of = Completed { operation, bytes, requests: 1, latency_ns: None };
        self.complete(now, slot, of);
        if self.owed.get(&slot).is_some_and(VecDeque::is_empty) {
            self.owed.remove(&slot);
        }
        true
    }

    /// So many queues came, or went.
    pub(crate) fn add_queues(&mut self, count: i32) {
        self.queues = self.queues.saturating_add_signed(count);
        let each = self.spec.waiting_max / self.queues.max(1);
        self.each = each.clamp(1, WAITING_PER_QUEUE_MAX);
    }

    /// Whether a slot's disk owes for what was let through out of turn.
    #[inline]
    pub(crate) fn is_owed(&self, slot: DiskSlot) -> bool {
        !self.owed.is_empty() && self.owed.contains_key(&slot)
    }

    /// Requests that may come, from all queues together.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.spec.waiting_max.saturating_sub(self.waiting) as usize
    }

    /// Whether so many may come, of whichever disks.
    pub(crate) fn has_room(&self, requests: usize) -> bool {
        self.owed.is_empty() && requests <= self.room()
    }

    /// When something may go, or must be told, although nothing comes and nothing ends.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let lets_go = match &self.mode {
            // What waits may go for what ended.
            Mode::Sole(_) if self.waiting > 0 && !self.ended.is_empty() => Some(Time::ZERO),
            Mode::Sole(scheduler) if self.waiting > 0 => scheduler.next_deadline(),
            Mode::Sole(_) | Mode::Between => None,
            Mode::Home { budget, own } => {
                budget.next_deadline().into_iter().chain(own.next_deadline()).min()
            }
            Mode::Away { own, .. } => own.next_deadline(),
        };
        let observes = self.is_busy().then(|| self.observed + SAMPLE);
        lets_go.into_iter().chain(observes).min()
    }

    fn is_busy(&self) -> bool {
        let in_flight = match &self.mode {
            Mode::Sole(_) => self.under_way,
            Mode::Home { budget, .. } => budget.in_flight(),
            Mode::Away { .. } | Mode::Between => return false,
        };
        self.is_used || in_flight > 0 || self.waiting > 0
    }

    /// Looks at what was delivered, if it is time to.
    pub(crate) fn observe(&mut self, now: Time) -> Vec<Event> {
        if now < self.observed + SAMPLE || !self.is_busy() {
            return Vec::new();
        }
        self.observed = now;
        self.is_used = false;
        match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.observe(now),
            Mode::Home { budget, .. } => budget.observe(now),
            Mode::Away { .. } | Mode::Between => Vec::new(),
        }
    }

    /// What a disk gets, where the budget is.
    pub(crate) fn view(&self, now: Time, slot: DiskSlot) -> Option<DiskFlow> {
        match &self.mode {
            Mode::Sole(scheduler) => scheduler.view(now, slot),
            Mode::Home { budget, .. } => budget.view(now, slot),
            Mode::Away { .. } | Mode::Between => None,
        }
    }

    pub(crate) fn status(&self) -> StoreStatus {
        let (role, budget) = match &self.mode {
            Mode::Sole(of) => {
                let of = (of.in_flight(), of.depth(), of.latency_ns(), of.estimate());
                (StoreRole::Sole, of)
            }
            Mode::Home { budget: of, .. } => {
                let of = (of.in_device(), of.depth(), of.latency_ns(), of.estimate());
                (StoreRole::Home, of)
            }
            Mode::Away { home, .. } => (StoreRole::Away(*home), (0, 0, 0, None)),
            Mode::Between => (StoreRole::Home, (0, 0, 0, None)),
        };
        let (in_flight, depth, latency_ns, estimate) = budget;
        let (waiting, under_way) = (self.waiting, self.under_way);
        StoreStatus { role, waiting, under_way, in_flight, depth, latency_ns, estimate }
    }

    /// Carries out a step of a change. Whether requests of a slot that wait here will not
    /// be let go any more; they are not counted as waiting.
    pub(crate) fn apply(&mut self, now: Time, change: Change) -> bool {
        self.tell_ended(now);
        match &mut self.mode {
            Mode::Sole(scheduler) => {
                scheduler.apply(now, change);
            }
            Mode::Home { budget, own } => {
                budget.apply(now, change);
                follow(own, change);
            }
            Mode::Away { own, .. } => follow(own, change),
            Mode::Between => {}
        }
        let Change::RemoveDisk(slot) = change else { return false };
        let owed = self.owed.remove(&slot).map_or(0, |owed| owed.len());
        self.waiting = self.waiting.saturating_sub(u32::try_from(owed).unwrap_or(u32::MAX));
        true
    }

    /// Whether a disk's place is known.
    pub(crate) fn has(&self, slot: DiskSlot) -> bool {
        match &self.mode {
            Mode::Sole(scheduler) => scheduler.disk(slot).is_some(),
            Mode::Home { budget, .. } => budget.disk(slot).is_some(),
            // Its home knows.
            Mode::Away { .. } | Mode::Between => true,
        }
    }

    /// Requests of a disk will come here.
    pub(crate) fn expect(&mut self, slot: DiskSlot) {
        if let Mode::Home { own, .. } | Mode::Away { own, .. } = &mut self.mode {
            own.add(slot);
        }
    }
}

/// What was recorded is handed on.
impl Drop for StoreUse {
    fn drop(&mut self) {
        match &mut self.mode {
            Mode::Sole(of) => of.flush(),
            Mode::Home { budget, .. } => budget.flush(),
            Mode::Away { .. } | Mode::Between => {}
        }
    }
}

fn borrower(spec: &StoreSpec) -> Borrower {
    Borrower::new(spec.normalization, spec.waiting_max)
}

/// What a change means to a processor that borrows.
fn follow(own: &mut Borrower, change: Change) {
    match change {
        Change::Disk { slot, .. } => own.add(slot),
        Change::RemoveDisk(slot) => while own.withdraw(slot).is_some() {},
        _ => {}
    }
}
