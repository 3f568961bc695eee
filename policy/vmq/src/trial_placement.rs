//! Copy of the placement on which moves are tried before they are decided.

use std::collections::BTreeMap;

use suimon_quantity::{QueueId, WorkerId};

use crate::thresholds::SHED_QUEUE_LOAD_MIN;
use crate::{Load, MoveLoads};

/// Queue in a draft placement, with its worker and load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialQueue {
    pub queue: QueueId,
    pub worker: WorkerId,
    /// Demand that is assumed for the queue; above `measured` on a saturated worker.
    pub load: Load,
    /// Measured load of the queue, which is less than its demand on a saturated worker.
    pub measured_load: Load,
    pub may_move: bool,
}

/// Worker in a draft placement, with its load and the number of its queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialWorker {
    pub rank: Option<usize>,
    pub core: u32,
    /// Measured load of the worker except that of its queues.
    pub other_load: Load,
    /// Sum of the assumed demands of the worker's queues.
    pub queues_load: Load,
    /// Sum of the measured loads of the worker's queues.
    pub measured_queues_load: Load,
    pub queues: usize,
    /// True while the worker is being emptied. It then accepts no queues and does not count as
    /// used.
    pub is_being_emptied: bool,
    /// True if a queue that was moved here for a larger share got a smaller one.
    pub has_unequal_shares: bool,
}

impl TrialWorker {
    pub(crate) fn load(&self) -> Load {
        self.other_load + self.queues_load
    }

    pub(crate) fn measured_load(&self) -> Load {
        self.other_load + self.measured_queues_load
    }

    fn is_used(&self) -> bool {
        self.rank.is_some() && self.queues > 0 && !self.is_being_emptied
    }

    fn is_free(&self) -> bool {
        self.rank.is_some() && self.queues == 0 && !self.is_being_emptied
    }
}

/// Move of one queue in a draft placement, with the predicted loads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialMove {
    pub queue: QueueId,
    pub from: WorkerId,
    pub to: WorkerId,
    pub predicted: MoveLoads,
}

/// Placement of all queues on workers, on which moves are tried. See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct TrialPlacement {
    workers: BTreeMap<WorkerId, TrialWorker>,
    items: BTreeMap<QueueId, TrialQueue>,
    workers_max: usize,
}

impl TrialPlacement {
    pub(crate) fn new(
        workers: impl Iterator<Item = (WorkerId, TrialWorker)>,
        items: impl Iterator<Item = TrialQueue>,
        workers_max: u16,
    ) -> Self {
        let mut workers: BTreeMap<_, _> = workers.collect();
        let items: BTreeMap<_, _> = items.map(|item| (item.queue, item)).collect();
        for item in items.values() {
            if let Some(worker_state) = workers.get_mut(&item.worker) {
                worker_state.queues_load = worker_state.queues_load + item.load;
                worker_state.measured_queues_load =
                    worker_state.measured_queues_load + item.measured_load;
                worker_state.queues += 1;
            }
        }
        Self { workers, items, workers_max: workers_max.into() }
    }

    pub(crate) fn worker(&self, id: WorkerId) -> Option<&TrialWorker> {
        self.workers.get(&id)
    }

    /// Returns the queues of worker `id`, highest assumed demand first.
    pub(crate) fn queues_on(&self, id: WorkerId) -> Vec<TrialQueue> {
        self.queues_on_disallowed(|worker| *worker != id)
    }

    /// Returns the queues whose worker is not allowed by `is_allowed`, highest assumed demand
    /// first.
    pub(crate) fn queues_on_disallowed(
        &self,
        is_allowed: impl Fn(&WorkerId) -> bool,
    ) -> Vec<TrialQueue> {
        let mut items: Vec<TrialQueue> =
            self.items.values().filter(|item| !is_allowed(&item.worker)).copied().collect();
        items.sort_by_key(|item| (core::cmp::Reverse(item.load), item.queue));
        items
    }

    /// Returns the workers that have queues and are not being emptied, in the order of use.
    pub(crate) fn used_workers(&self) -> Vec<WorkerId> {
        let mut used: Vec<_> = self
            .workers
            .iter()
            .filter(|(_, worker_state)| worker_state.is_used())
            .map(|(id, worker_state)| (worker_state.rank, *id))
            .collect();
        used.sort_unstable();
        used.into_iter().map(|(_, id)| id).collect()
    }

    pub(crate) fn mark_being_emptied(&mut self, id: WorkerId) {
        if let Some(worker_state) = self.workers.get_mut(&id) {
            worker_state.is_being_emptied = true;
        }
    }

    /// Excludes a queue from further moves.
    pub(crate) fn pin(&mut self, queue: QueueId) {
        if let Some(item) = self.items.get_mut(&queue) {
            item.may_move = false;
        }
    }

    /// Returns the load that `to`, whose state is `worker_state`, would have with `item`. Half of
    /// the load of sibling threads is added, because siblings share the core.
    pub(crate) fn load_with(
        &self,
        item: &TrialQueue,
        to: WorkerId,
        worker_state: &TrialWorker,
    ) -> Load {
        let siblings =
            self.workers.iter().filter(|(id, other)| other.core == worker_state.core && **id != to);
        let siblings: Load = siblings
            .map(
                |(id, other)| {
                    if *id == item.worker { other.load() - item.load } else { other.load() }
                },
            )
            .sum();
        worker_state.load() + item.load + siblings.halved()
    }

    /// Returns the worker in use whose load would be lowest with `item`, and that load; `None` if
    /// no other worker is in use.
    pub(crate) fn least_loaded(&self, item: &TrialQueue) -> Option<(Load, WorkerId)> {
        self.candidates(item, TrialWorker::is_used)
            .map(|(id, worker_state)| {
                (self.load_with(item, id, worker_state), worker_state.rank, id)
            })
            .min()
            .map(|(after, _, id)| (after, id))
    }

    /// Returns the largest share of a worker that `item` would get if all active queues shared it
    /// equally, and that worker: one in use, or one to bring into use. `None` if there is none.
    pub(crate) fn largest_share(&self, item: &TrialQueue) -> Option<(Load, WorkerId)> {
        let unused = self.worker_to_add(item).map(|(_, id)| id);
        self.candidates(item, |_| true)
            .filter(|(id, worker_state)| {
                (worker_state.is_used() && !worker_state.has_unequal_shares) || unused == Some(*id)
            })
            .map(|(id, worker_state)| (self.share(id, worker_state), worker_state.rank, id))
            .max_by_key(|(share, rank, _)| (*share, core::cmp::Reverse(*rank)))
            .map(|(share, _, id)| (share, id))
    }

    fn share(&self, id: WorkerId, worker_state: &TrialWorker) -> Load {
        let sharing = self
            .items
            .values()
            .filter(|entry| entry.worker == id && entry.measured_load >= SHED_QUEUE_LOAD_MIN);
        (Load::FULL - worker_state.other_load).divided_by(sharing.count().saturating_add(1))
    }

    /// Returns the first worker in the order of use that is in use and whose load with `item` would
    /// be at most `limit`.
    pub(crate) fn first_fit(&self, item: &TrialQueue, limit: Load) -> Option<WorkerId> {
        self.candidates(item, TrialWorker::is_used)
            .filter(|(id, worker_state)| self.load_with(item, *id, worker_state) <= limit)
            .min_by_key(|(_, worker_state)| worker_state.rank)
            .map(|(id, _)| id)
    }

    /// Returns the unused worker to bring into use for `item`, and its load with `item`; `None` if
    /// no further worker is permitted. It is the first in the order of use, unless another is less
    /// loaded by a tenth of a worker.
    pub(crate) fn worker_to_add(&self, item: &TrialQueue) -> Option<(Load, WorkerId)> {
        let used = self.workers.iter().filter(|(id, worker_state)| {
            let leaves_none = **id == item.worker && worker_state.queues == 1;
            worker_state.is_used() && !leaves_none
        });
        if used.count() >= self.workers_max {
            return None;
        }
        self.candidates(item, TrialWorker::is_free)
            .map(|(id, worker_state)| {
                (self.load_with(item, id, worker_state), worker_state.rank, id)
            })
            .min_by_key(|(after, rank, _)| (after.ppm() / Load::percent(10).ppm(), *rank))
            .map(|(after, _, id)| (after, id))
    }

    fn candidates(
        &self,
        item: &TrialQueue,
        is_candidate: impl Fn(&TrialWorker) -> bool,
    ) -> impl Iterator<Item = (WorkerId, &TrialWorker)> {
        let from = item.worker;
        let workers = self.workers.iter().map(|(id, worker_state)| (*id, worker_state));
        workers.filter(move |(id, worker_state)| *id != from && is_candidate(worker_state))
    }

    /// Moves a queue in the draft and returns the move; `None` if the queue is unknown. The
    /// predicted loads exclude sibling threads.
    pub(crate) fn move_queue(&mut self, queue: QueueId, to: WorkerId) -> Option<TrialMove> {
        let item = self.items.get_mut(&queue)?;
        let TrialQueue { worker: measured, load, measured_load, .. } = *item;
        item.worker = to;
        let mut predicted = MoveLoads::default();
        if let Some(worker_state) = self.workers.get_mut(&measured) {
            predicted.from_before = worker_state.load();
            worker_state.queues_load = worker_state.queues_load - load;
            worker_state.measured_queues_load = worker_state.measured_queues_load - measured_load;
            worker_state.queues = worker_state.queues.saturating_sub(1);
            predicted.from_after = worker_state.load();
        }
        if let Some(worker_state) = self.workers.get_mut(&to) {
            predicted.to_before = worker_state.load();
            worker_state.queues_load = worker_state.queues_load + load;
            worker_state.measured_queues_load = worker_state.measured_queues_load + measured_load;
            worker_state.queues += 1;
            predicted.to_after = worker_state.load();
        }
        Some(TrialMove { queue, from: measured, to, predicted })
    }
}
