//! Store on a worker: its scheduler, or the worker's access to the shared budget, and the number of
//! its queued requests on the worker.

mod completion_batch;
mod observation;
mod sharing;
pub(crate) mod status;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use core::time::Duration;
use suimon_quantity::{StoreId, Time};
use suimon_recording::{RecordSink, Recorded};
use suimon_storage_qos::{
    BatchSubmitOutcome, Borrower, CompletedRequests, Completion, ConfigStep, DiskSlot,
    DiskUnscheduledTime, IoKind, NextAction, RequestPhase, SAMPLE_INTERVAL, StoreScheduler,
    StoreSpec, SubmitError, SubmitOutcome,
};

use crate::scheduling::store::completion_batch::CompletionBatch;
use crate::shared_budget::state::SamplingState;
use crate::shared_budget::sync::StdPrimitives;
use crate::shared_budget::{BudgetMembership, SharedBudget};

/// Maximum number of queued requests per disk queue, if the store's limit permits this number for
/// each queue. Further requests remain in the disk queue.
const WAITING_PER_QUEUE_MAX: u32 = 64;

/// Way in which this worker takes part in the scheduling of a store: alone, or with a budget that
/// several workers share.
pub(crate) enum SchedulingMode {
    Sole(Box<Recorded<StoreScheduler>>),
    Shared(Box<BudgetAccess>),
    /// Temporary value while the mode is replaced.
    Replacing,
}

/// Access of this worker to a budget that other workers use, too.
pub(crate) struct BudgetAccess {
    pub(crate) budget: SharedBudget,
    pub(crate) membership: BudgetMembership<StdPrimitives>,
    pub(crate) borrower: Borrower,
}

impl SchedulingMode {
    /// Returns the borrower of this worker; `None` if it uses the store alone.
    #[inline(never)]
    fn borrower(&mut self) -> Option<&mut Borrower> {
        match self {
            Self::Shared(sharing) => Some(&mut sharing.borrower),
            Self::Sole(_) | Self::Replacing => None,
        }
    }
}

/// State of a store on this worker.
pub(crate) struct WorkerStore {
    pub(crate) id: StoreId,
    pub(crate) spec: StoreSpec,
    pub(crate) mode: SchedulingMode,
    /// True if this worker becomes the only user of the store as soon as all grants are returned.
    pub(crate) becomes_sole_user: bool,
    /// True if the store will be removed from this worker when its disks and requests there have
    /// ended and its grants are returned.
    pub(crate) is_leaving: bool,
    /// Number of disks of the store on this worker.
    pub(crate) disks: u32,
    queues: u32,
    /// Maximum number of queued requests per disk queue.
    pub(crate) queued_per_queue_max: u32,
    /// Number of queued requests of this worker, including those in
    /// [`WorkerStore::uncharged_bytes`].
    pub(crate) waiting: u32,
    /// Number of requests that were dispatched and have not completed.
    pub(crate) in_flight: u32,
    /// Completions that were not passed to the scheduler yet, in [`SchedulingMode::Sole`]. They are
    /// passed before the scheduler is polled next.
    completion_batch: CompletionBatch,
    /// Bytes of requests that started without waiting for the scheduler, oldest first. Each is
    /// charged when the scheduler dispatches its placeholder. Placeholders precede the slot's other
    /// requests in the scheduler's queue.
    pub(crate) uncharged_bytes: BTreeMap<DiskSlot, VecDeque<u32>>,
    /// Disk queues that are not read because the store has no room for further queued requests, in
    /// the order in which they are resumed.
    pub(crate) paused_for_room: VecDeque<usize>,
    /// Sampling of delivered operations, in [`SchedulingMode::Sole`]. Those of a budget are sampled
    /// by the exchange with it.
    pub(crate) sampling: SamplingState,
}

impl WorkerStore {
    /// Creates a store that only this worker uses. Decisions of its scheduler are recorded if there
    /// is a sink.
    pub(crate) fn new(
        now: Time,
        id: StoreId,
        spec: StoreSpec,
        sink: Option<&Arc<dyn RecordSink>>,
    ) -> Self {
        let scheduler = scheduler(now, id, &spec, sink);
        Self {
            id,
            spec,
            mode: SchedulingMode::Sole(Box::new(scheduler)),
            becomes_sole_user: false,
            is_leaving: false,
            disks: 0,
            queues: 0,
            queued_per_queue_max: WAITING_PER_QUEUE_MAX,
            waiting: 0,
            in_flight: 0,
            completion_batch: CompletionBatch::default(),
            uncharged_bytes: BTreeMap::new(),
            paused_for_room: VecDeque::new(),
            sampling: SamplingState { sampled_at: Time::ZERO, has_new_requests: false },
        }
    }

    pub(crate) fn new_borrower(&self) -> Borrower {
        Borrower::new(self.spec.normalization, self.spec.waiting_max)
    }

    /// Returns a new scheduler without disks.
    pub(crate) fn new_scheduler(
        &self,
        now: Time,
        sink: Option<&Arc<dyn RecordSink>>,
    ) -> Recorded<StoreScheduler> {
        scheduler(now, self.id, &self.spec, sink)
    }

    /// Submits a disk's request to the scheduler or borrower; `tag` identifies the disk when the
    /// request is dispatched later. Inlined, as is the completion: each has a single call that all
    /// requests pass.
    #[inline(always)]
    pub(crate) fn submit(
        &mut self,
        now: Time,
        slot: DiskSlot,
        bytes: u32,
        tag: u32,
    ) -> Result<SubmitOutcome, SubmitError> {
        self.sampling.has_new_requests = true;
        let submitted = match &mut self.mode {
            SchedulingMode::Sole(scheduler) => scheduler.submit(now, slot, bytes, tag),
            mode => match mode.borrower() {
                Some(borrower) => borrower.submit(now, slot, bytes, tag),
                None => Err(SubmitError::NoDisk(slot)),
            },
        };
        match submitted {
            Ok(SubmitOutcome::Dispatch) => self.in_flight += 1,
            Ok(SubmitOutcome::Queued) => self.waiting += 1,
            Err(_) => {}
        }
        submitted
    }

    /// Submits several requests of a disk in one call. Returns `None`, with nothing submitted, if
    /// each must be submitted separately.
    #[inline]
    pub(crate) fn submit_batch(
        &mut self,
        now: Time,
        slot: DiskSlot,
        sizes: &[u32],
        tag: u32,
    ) -> Option<BatchSubmitOutcome> {
        let SchedulingMode::Sole(scheduler) = &mut self.mode else { return None };
        let batch = scheduler.submit_batch(now, slot, sizes, tag).ok()?;
        self.sampling.has_new_requests = true;
        self.in_flight += u32::try_from(batch.dispatched).unwrap_or(u32::MAX);
        self.waiting += u32::try_from(batch.queued_count).unwrap_or(u32::MAX);
        Some(batch)
    }

    /// Returns the next action of the scheduler or borrower: a request to dispatch, or idle.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> NextAction {
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) => scheduler.poll(now),
            mode => mode.borrower().map_or(NextAction::Idle, |borrower| borrower.poll(now)),
        }
    }

    /// Accounts for the completion of a dispatched request. `is_alone`: no other request of its
    /// queue is in flight, so the completion need not be collected with others of this iteration.
    #[inline(always)]
    pub(crate) fn handle_request_completed(
        &mut self,
        now: Time,
        slot: DiskSlot,
        completed: CompletedRequests,
        is_alone: bool,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) if is_alone && self.completion_batch.is_empty() => {
                scheduler.handle_completed_requests(now, slot, completed);
            }
            SchedulingMode::Sole(scheduler) => {
                self.completion_batch.add(scheduler, now, slot, completed);
            }
            _ => self.complete(now, slot, completed),
        }
    }

    /// Accounts for a dispatched request, charged with `bytes` bytes, that ended without being
    /// executed.
    pub(crate) fn handle_not_executed(&mut self, now: Time, slot: DiskSlot, bytes: u32) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) => scheduler.handle_not_executed(now, slot, bytes),
            mode => {
                if let Some(borrower) = mode.borrower() {
                    borrower.handle_not_executed(now, slot, bytes);
                }
            }
        }
    }

    /// Passes all collected completions to the scheduler.
    #[inline]
    pub(crate) fn report_completions(&mut self, now: Time) {
        if let SchedulingMode::Sole(scheduler) = &mut self.mode {
            self.completion_batch.report(scheduler, now);
        }
    }

    /// Reports time in which this worker was runnable but not running while a disk had requests.
    pub(crate) fn handle_unscheduled(&mut self, now: Time, unscheduled: DiskUnscheduledTime) {
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) => scheduler.handle_unscheduled_time(unscheduled),
            mode => {
                if let Some(borrower) = mode.borrower() {
                    borrower.handle_unscheduled_time(now, unscheduled);
                }
            }
        }
    }

    /// Moves one in-flight request of a disk to another phase.
    pub(crate) fn handle_phase(
        &mut self,
        now: Time,
        slot: DiskSlot,
        from: RequestPhase,
        to: RequestPhase,
    ) {
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) => scheduler.handle_phase_change(now, slot, from, to),
            mode => {
                if let Some(borrower) = mode.borrower() {
                    borrower.handle_phase_change(now, slot, from, to);
                }
            }
        }
    }

    fn complete(&mut self, now: Time, slot: DiskSlot, completed: CompletedRequests) {
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) => {
                scheduler.handle_completed_requests(now, slot, completed);
            }
            SchedulingMode::Shared(sharing) => {
                let CompletedRequests { operation, bytes, latency_sum_ns: latency_ns, .. } =
                    completed;
                let latency = latency_ns.map(Duration::from_nanos);
                sharing
                    .borrower
                    .handle_completion(now, Completion { disk: slot, operation, bytes, latency });
            }
            SchedulingMode::Replacing => {}
        }
    }

    /// Accounts for a request that the scheduler has dispatched. Returns true if it was only the
    /// placeholder of a request that was started before ([`WorkerStore::uncharged_bytes`]).
    #[inline]
    pub(crate) fn handle_dispatched(&mut self, now: Time, slot: DiskSlot) -> bool {
        self.waiting = self.waiting.saturating_sub(1);
        let paid = self.uncharged_bytes.get_mut(&slot).and_then(VecDeque::pop_front);
        let Some(bytes) = paid else {
            self.in_flight += 1;
            return false;
        };
        let operation = IoKind::Other;
        let completed = CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: None };
        self.complete(now, slot, completed);
        if self.uncharged_bytes.get(&slot).is_some_and(VecDeque::is_empty) {
            self.uncharged_bytes.remove(&slot);
        }
        true
    }

    /// Adjusts the number of disk queues by `count`.
    pub(crate) fn adjust_queue_count(&mut self, count: i32) {
        self.queues = self.queues.saturating_add_signed(count);
        let per_queue = self.spec.waiting_max / self.queues.max(1);
        self.queued_per_queue_max = per_queue.clamp(1, WAITING_PER_QUEUE_MAX);
    }

    /// Returns true if the slot's disk has requests that started without being charged yet.
    #[inline]
    pub(crate) fn has_uncharged(&self, slot: DiskSlot) -> bool {
        !self.uncharged_bytes.is_empty() && self.uncharged_bytes.contains_key(&slot)
    }

    /// Returns the number of further requests that can be queued, for all disk queues of the worker
    /// together.
    #[inline]
    pub(crate) fn remaining_queue_room(&self) -> usize {
        self.spec.waiting_max.saturating_sub(self.waiting) as usize
    }

    /// Returns true if this number of requests can be queued, whatever their disks are.
    pub(crate) fn has_room(&self, requests: usize) -> bool {
        self.uncharged_bytes.is_empty() && requests <= self.remaining_queue_room()
    }

    /// Returns the time of the next dispatch, report or sample that is due without another event;
    /// `None` if there is none.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let lets_go = match &self.mode {
            // Queued requests may be dispatched after the collected completions.
            SchedulingMode::Sole(_) if self.waiting > 0 && !self.completion_batch.is_empty() => {
                Some(Time::ZERO)
            }
            SchedulingMode::Sole(scheduler) if self.waiting > 0 => scheduler.next_deadline(),
            SchedulingMode::Sole(_) | SchedulingMode::Replacing => None,
            SchedulingMode::Shared(sharing) => {
                let of_client = sharing.membership.next_deadline(self.waiting > 0);
                of_client.into_iter().chain(sharing.borrower.next_deadline()).min()
            }
        };
        let observes = self.is_busy().then(|| self.sampling.sampled_at + SAMPLE_INTERVAL);
        lets_go.into_iter().chain(observes).min()
    }

    /// Applies a change of the store. `is_in_budget`: the shared budget has it already.
    pub(crate) fn apply(&mut self, now: Time, change: ConfigStep, is_in_budget: bool) {
        self.report_completions(now);
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) if !is_in_budget => {
                scheduler.apply(now, change);
            }
            SchedulingMode::Shared(sharing) => {
                if !is_in_budget {
                    let _ = sharing.budget.apply(&[change]);
                }
                follow(&mut sharing.borrower, change);
            }
            SchedulingMode::Sole(_) | SchedulingMode::Replacing => {}
        }
        let ConfigStep::RemoveDisk(slot) = change else { return };
        let uncharged = self.uncharged_bytes.remove(&slot).map_or(0, |uncharged| uncharged.len());
        self.waiting = self.waiting.saturating_sub(u32::try_from(uncharged).unwrap_or(u32::MAX));
    }

    /// Removes the placeholders and the collected completions.
    pub(crate) fn clear_placeholders(&mut self) {
        let uncharged: usize =
            core::mem::take(&mut self.uncharged_bytes).values().map(VecDeque::len).sum();
        self.waiting = self.waiting.saturating_sub(u32::try_from(uncharged).unwrap_or(u32::MAX));
        self.completion_batch = CompletionBatch::default();
    }

    /// Returns true if the slot has a disk. Always true with a shared budget.
    pub(crate) fn has_disk(&self, slot: DiskSlot) -> bool {
        match &self.mode {
            SchedulingMode::Sole(scheduler) => scheduler.disk(slot).is_some(),
            // With a shared budget, the changes may not have been applied to it yet.
            SchedulingMode::Shared(_) | SchedulingMode::Replacing => true,
        }
    }

    /// Prepares for requests of the disk in this slot on this worker.
    pub(crate) fn prepare_for_disk(&mut self, slot: DiskSlot) {
        if let Some(borrower) = self.mode.borrower() {
            borrower.add(slot);
        }
    }
}

impl SchedulingMode {
    /// Flushes the recording of the scheduler.
    pub(crate) fn flush_recording(&mut self) {
        match self {
            Self::Sole(scheduler) => scheduler.flush(),
            Self::Shared(sharing) => sharing.budget.flush_recording(),
            Self::Replacing => {}
        }
    }
}

/// Flushes the recording of the scheduler.
impl Drop for WorkerStore {
    fn drop(&mut self) {
        self.mode.flush_recording();
    }
}

fn scheduler(
    now: Time,
    id: StoreId,
    spec: &StoreSpec,
    sink: Option<&Arc<dyn RecordSink>>,
) -> Recorded<StoreScheduler> {
    Recorded::record_scheduler(sink, (now, &*id.0.to_string()), spec.clone())
}

/// Prepares the borrower for a change that was applied to the budget: adds the disk, or withdraws
/// the requests of a removed disk.
fn follow(borrower: &mut Borrower, change: ConfigStep) {
    match change {
        ConfigStep::SetDisk { slot, .. } => borrower.add(slot),
        ConfigStep::RemoveDisk(slot) => while borrower.withdraw_request(slot).is_some() {},
        _ => {}
    }
}
