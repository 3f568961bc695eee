//! Explanation of the placement of queues, for operators.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{PortId, QueueId, Time, WorkerId};

use crate::queue::Queue;
use crate::spec::VmqMode;
use crate::{Load, PlacementReason, Vmq, WaterMarks};

/// Reason for which a queue stays on its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stays", rename_all = "snake_case")]
pub enum StayReason {
    /// The move of the queue to its worker is in progress.
    #[serde(rename = "on_its_way")]
    MoveInProgress,
    /// The queue is a NIC's default queue, which stays on the base worker.
    DefaultQueue,
    /// The queue is assigned statically.
    #[serde(rename = "assigned")]
    AssignedStatically,
    /// The worker is above the high mark, but the queue is its only one, so that a move would only
    /// shift the overload.
    #[serde(rename = "alone")]
    OnlyQueueOfWorker,
    /// The worker is above the high mark and a move would help, but a queue was shed recently and
    /// the load is unchanged since.
    #[serde(rename = "rests")]
    ShedRecently {
        /// Time until the next move is permitted.
        #[serde(rename = "left")]
        remaining: Duration,
    },
    /// The worker is momentarily above the high mark, but its usual load is below it.
    #[serde(rename = "momentary")]
    OnlyMomentarilyHot,
    /// The worker is above the high mark and a move would help, but the budget for moves is used
    /// up.
    #[serde(rename = "allowance_used_up")]
    MoveBudgetUsedUp {
        /// Minimum time until the budget permits a move.
        #[serde(rename = "left")]
        remaining: Duration,
    },
    /// The worker is above the high mark, but no other worker is better for this queue.
    #[serde(rename = "no_better_place")]
    NoBetterWorker,
    /// The worker is under-used and will be emptied, so that it parks, if its queues still fit on
    /// other workers then.
    #[serde(rename = "packable")]
    WorkerToBeEmptied {
        /// Time until the worker is emptied.
        #[serde(rename = "left")]
        remaining: Duration,
    },
    /// The worker is below the high mark and not under-used, or its queues do not fit on other
    /// workers.
    #[serde(rename = "calm")]
    NoReasonToMove,
    /// The worker is below the high mark and has all queues, so that emptying it would park none.
    #[serde(rename = "only_one")]
    OnlyUsedWorker,
    /// The worker is below the high mark, and parking is disabled.
    #[serde(rename = "unparked")]
    ParkingDisabled,
}

/// Explanation of the placement of all queues of one NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// NIC that the queues belong to.
    pub nic: PortId,
    /// Explanations of the NIC's queues.
    pub queues: Vec<QueueExplanation>,
}

/// Explanation of the placement of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueExplanation {
    /// Queue whose placement is explained.
    pub queue: QueueId,
    /// Worker that services the queue.
    #[serde(rename = "processor")]
    pub worker: WorkerId,
    /// Time since the placement was decided.
    #[serde(rename = "for_time")]
    pub placed_for: Duration,
    /// Reason for which the queue is on its worker.
    #[serde(rename = "why")]
    pub reason: PlacementReason,
    /// Load of the queue, as a fraction of one worker.
    pub load: Load,
    /// Load of the queue's worker, including other work.
    #[serde(rename = "processor_load")]
    pub worker_load: Load,
    /// Part of `worker_load` that is not caused by queues.
    pub other_load: Load,
    /// Reason for which the queue stays on its worker.
    #[serde(rename = "stays")]
    pub stay_reason: StayReason,
    /// Water marks that the placement uses.
    #[serde(rename = "water")]
    pub water_marks: WaterMarks,
}

impl Vmq {
    /// Returns the explanation of a NIC's queues; `None` if the NIC is unknown.
    pub fn explain(&self, nic: PortId, now: Time) -> Option<Explanation> {
        self.nics.get(&nic)?;
        let of_nic = self.queues.iter().filter(|(id, _)| id.port == nic);
        let queues = of_nic.map(|(id, queue)| self.explain_queue(*id, queue, now)).collect();
        Some(Explanation { nic, queues })
    }

    fn explain_queue(&self, id: QueueId, queue: &Queue, now: Time) -> QueueExplanation {
        let worker_state = self.workers.get(&queue.worker);
        QueueExplanation {
            queue: id,
            worker: queue.worker,
            placed_for: now.since(queue.placed_at),
            reason: queue.reason,
            load: queue.load.mean_of_last_two(),
            worker_load: self
                .loads()
                .get(&queue.worker)
                .map_or(Load::ZERO, |load| load.mean_of_last_two()),
            other_load: worker_state
                .map_or(Load::ZERO, |worker_state| worker_state.other_load.mean_of_last_two()),
            stay_reason: self.stays(id, queue, now),
            water_marks: self.spec.water_marks,
        }
    }

    fn stays(&self, id: QueueId, queue: &Queue, now: Time) -> StayReason {
        if queue.moving_from.is_some() {
            return StayReason::MoveInProgress;
        }
        if self.uses_default_queue(id) {
            return StayReason::DefaultQueue;
        }
        if self.spec.mode == VmqMode::Static {
            return StayReason::AssignedStatically;
        }
        let is_hot = self
            .loads()
            .get(&queue.worker)
            .is_some_and(|load| load.smaller_of_last_two() > self.spec.water_marks.high);
        if is_hot {
            return self.stays_at_hot(id, queue, now);
        }
        let packable_since =
            self.workers.get(&queue.worker).and_then(|worker_state| worker_state.emptiable_since);
        match packable_since {
            Some(packable_since) => {
                let cost = if queue.is_return_prepaid { 1 } else { 2 };
                let ready_at = self.pack_due_at(packable_since);
                let ready_at = ready_at.max(self.move_budget.ready_at(cost, now));
                StayReason::WorkerToBeEmptied { remaining: ready_at.since(now) }
            }
            None if !self.spec.parking => StayReason::ParkingDisabled,
            None if self.queues.values().all(|other| other.worker == queue.worker) => {
                StayReason::OnlyUsedWorker
            }
            None => StayReason::NoReasonToMove,
        }
    }

    fn stays_at_hot(&self, id: QueueId, queue: &Queue, now: Time) -> StayReason {
        if self.queues.values().filter(|other| other.worker == queue.worker).count() == 1 {
            return StayReason::OnlyQueueOfWorker;
        }
        if !self.has_better_worker(id, queue, now) {
            return StayReason::NoBetterWorker;
        }
        let ready_at = self.move_budget.ready_at(1, now);
        if !queue.is_return_prepaid && ready_at > now {
            return StayReason::MoveBudgetUsedUp { remaining: ready_at.since(now) };
        }
        if self.shed_pacing.is_alert_permitted(now) {
            return StayReason::NoBetterWorker;
        }
        match self.shed_pacing.next_shed_at().since(now) {
            Duration::ZERO => StayReason::OnlyMomentarilyHot,
            left => StayReason::ShedRecently { remaining: left },
        }
    }
}

impl StayReason {
    /// Returns the reason as text that follows "it stays: ". `water_marks` are those of the
    /// placement.
    pub fn describe(self, water_marks: WaterMarks) -> String {
        let (high, fit_mark) = (water_marks.high, water_marks.pack_limit());
        match self {
            Self::MoveInProgress => "its move is in progress".to_owned(),
            Self::DefaultQueue => "the default queue is not moved".to_owned(),
            Self::AssignedStatically => "in static mode queues are not moved".to_owned(),
            Self::OnlyQueueOfWorker => format!(
                "the worker is above {high}, but has no other queue, so that any other worker \
                 would become as loaded"
            ),
            Self::ShedRecently { remaining: left } => format!(
                "the worker is above {high}, but queues were already moved for this load, which \
                 has not changed since; the next move is possible in {:.1} s",
                left.as_secs_f32()
            ),
            Self::OnlyMomentarilyHot => {
                format!("the worker is above {high} now, but was not for most of the time")
            }
            Self::MoveBudgetUsedUp { remaining: left } => format!(
                "the worker is above {high}, but the rate limit of moves is reached; the next \
                 move is possible in {:.1} s",
                left.as_secs_f32()
            ),
            Self::NoBetterWorker => {
                format!("the worker is above {high}, but no other worker has room for this queue")
            }
            Self::WorkerToBeEmptied { remaining: left } => format!(
                "all queues of the worker fit on other workers; they are moved in {:.1} s if they \
                 still fit",
                left.as_secs_f32()
            ),
            Self::NoReasonToMove => format!(
                "the worker is not overloaded (limit {high}), and it is not emptied, because its \
                 queues would load another worker above the limit for packing ({fit_mark}), or its load \
                 and that of the other workers is above the low mark ({})",
                water_marks.low
            ),
            Self::OnlyUsedWorker => format!(
                "the worker is not overloaded (limit {high}), and it is not emptied, because no \
                 other worker has queues of this uplink or team"
            ),
            Self::ParkingDisabled => {
                format!("the worker is not above {high}, and parking of workers is off")
            }
        }
    }
}

impl fmt::Display for QueueExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            queue, worker, placed_for: for_time, reason, load, worker_load, other_load, ..
        } = self;
        let stay_reason = self.stay_reason.describe(self.water_marks);
        write!(
            f,
            "{} queue {} takes {load} of worker {worker}, whose load is {worker_load} \
             ({other_load} from other work). The queue has been there for {:.1} s: {reason}. It is \
             not moved: {stay_reason}.",
            queue.direction,
            queue.index,
            for_time.as_secs_f32()
        )
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.queues.is_empty() {
            return write!(f, "NIC {} has no queue on this team or uplink.", self.nic.0);
        }
        for (index, queue) in self.queues.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            queue.fmt(f)?;
        }
        Ok(())
    }
}
