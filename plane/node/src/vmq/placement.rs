//! Queues of one uplink or team: placement by the policy, and actual owners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use suimon_quantity::{QueueId, Time, WorkerId};
use suimon_recording::{RecordSink, Recorded};
use suimon_switch::QueueView;
use suimon_vmq::{
    Measurements, Move, MoveEffect, PlacementReason, QueueBusy, Vmq, VmqMode, VmqSpecError,
    WorkerBusy,
};

use crate::vmq::numbering::Numbering;
use crate::vmq::plan::{VmqPlan, vmq_spec};

/// Queue to be moved to another worker. `to` is the configuration's number of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueMoveTask {
    /// Move decided by the policy.
    Move(Move),
    /// Queue that was attached to a worker other than its initial one.
    PlaceInitially { queue: QueueId, to: WorkerId },
}

impl QueueMoveTask {
    pub(super) const fn queue(&self) -> QueueId {
        match self {
            Self::Move(queue_move) => queue_move.queue,
            Self::PlaceInitially { queue, .. } => *queue,
        }
    }

    pub(super) const fn target(&self) -> WorkerId {
        match self {
            Self::Move(queue_move) => queue_move.to,
            Self::PlaceInitially { to, .. } => *to,
        }
    }
}

/// Counters of a queue at the last measurement.
#[derive(Clone, Copy)]
struct QueueSample {
    busy_ns: u64,
    frames: u64,
}

/// Placement of the queues of one uplink or team. Workers have the configuration's numbers.
pub(super) struct Placement {
    plan: VmqPlan,
    pub(super) vmq: Recorded<Vmq>,
    samples: BTreeMap<QueueId, QueueSample>,
    tasks: Vec<QueueMoveTask>,
    /// True before the first measurement: queues found by it already existed.
    is_new: bool,
}

impl Placement {
    /// Creates a placement without queues. Its inputs and decisions are recorded if there is a
    /// `sink`.
    ///
    /// # Errors
    /// The configuration does not fit the workers.
    pub(super) fn new(
        plan: VmqPlan,
        numbering: &Numbering,
        now: Time,
        sink: Option<&Arc<dyn RecordSink>>,
    ) -> Result<Self, VmqSpecError> {
        let spec = vmq_spec(&plan.config, plan.data_plane);
        let origin = (now, plan.uplink.as_str());
        let mut vmq = Recorded::record_vmq(sink, origin, spec, &numbering.workers())?;
        for (port, (_, nic)) in &plan.ports {
            vmq.set_nic(*port, *nic, nic.queues, now)?;
        }
        Ok(Self { plan, vmq, samples: BTreeMap::new(), tasks: Vec::new(), is_new: true })
    }

    pub(super) const fn plan(&self) -> &VmqPlan {
        &self.plan
    }

    /// Applies a changed configuration or set of workers. Existing workers keep their numbers.
    ///
    /// # Errors
    /// The configuration does not fit the workers.
    pub(super) fn change(
        &mut self,
        plan: VmqPlan,
        numbering: &Numbering,
        now: Time,
    ) -> Result<(), VmqSpecError> {
        let moves = self.vmq.configure(
            vmq_spec(&plan.config, plan.data_plane),
            &numbering.workers(),
            now,
        )?;
        self.tasks.extend(moves.into_iter().map(QueueMoveTask::Move));
        if plan.team != self.plan.team {
            self.vmq.reset_pacing_and_history(now);
        }
        for port in self.plan.ports.keys().filter(|port| !plan.ports.contains_key(port)) {
            self.vmq.remove_nic(*port, now);
            self.samples.retain(|queue, _| queue.port != *port);
        }
        for (port, (_, nic)) in &plan.ports {
            if self.plan.ports.get(port).is_none_or(|(_, before)| before != nic) {
                let moves = self.vmq.set_nic(*port, *nic, nic.queues, now)?;
                self.tasks.extend(moves.into_iter().map(QueueMoveTask::Move));
            }
        }
        self.plan = plan;
        Ok(())
    }

    /// Updates queues and their owners. Returns the working time of each queue since the last call.
    pub(super) fn update_queues(
        &mut self,
        views: &[QueueView],
        numbering: &Numbering,
        now: Time,
    ) -> Vec<QueueBusy> {
        let own_queues = views.iter().filter(|view| self.plan.ports.contains_key(&view.id.port));
        let own_queues: BTreeMap<QueueId, &QueueView> =
            own_queues.map(|view| (view.id, view)).collect();
        let removed: Vec<QueueId> =
            self.samples.keys().filter(|queue| !own_queues.contains_key(queue)).copied().collect();
        removed.into_iter().for_each(|queue| self.forget(queue, now));
        let mut busy = Vec::new();
        for (queue, view) in own_queues {
            let Some(worker) = numbering.number(view.worker) else { continue };
            let sample = QueueSample { busy_ns: view.busy_ns, frames: view.frames };
            match self.samples.get(&queue).copied() {
                Some(before)
                    if before.busy_ns <= sample.busy_ns && before.frames <= sample.frames =>
                {
                    self.vmq.handle_moved_externally(queue, worker, now);
                    busy.push(QueueBusy { queue, busy_ns: sample.busy_ns - before.busy_ns });
                }
                // Lower counters: the queue was detached and attached again.
                Some(_) => {
                    self.forget(queue, now);
                    self.add_queue(queue, worker, now);
                }
                None => self.add_queue(queue, worker, now),
            }
            if self.vmq.contains_queue(queue) {
                self.samples.insert(queue, sample);
            }
        }
        self.is_new = false;
        busy
    }

    fn add_queue(&mut self, queue: QueueId, worker: WorkerId, now: Time) {
        match self.vmq.add_queue(queue, now) {
            Ok(added) => {
                if self.is_new && self.vmq.spec().mode == VmqMode::Dynamic {
                    // An existing queue may have been moved because of load.
                    self.vmq.handle_moved_externally(queue, worker, now);
                } else if added.worker != worker {
                    self.tasks.push(QueueMoveTask::PlaceInitially { queue, to: added.worker });
                }
                self.tasks.extend(added.moves.into_iter().map(QueueMoveTask::Move));
            }
            // A device that is about to be replaced may have more queues than its NIC is configured
            // for.
            Err(error) => tracing::debug!(?queue, %error, "VMQ cannot place a queue"),
        }
    }

    fn forget(&mut self, queue: QueueId, now: Time) {
        self.samples.remove(&queue);
        self.vmq.remove_queue(queue, now);
        self.tasks.retain(|task| task.queue() != queue);
    }

    /// Passes a measurement to the policy. Returns the measured effects of earlier moves.
    pub(super) fn observe(
        &mut self,
        period: Duration,
        queues: Vec<QueueBusy>,
        workers: &[WorkerBusy],
        now: Time,
    ) -> Vec<MoveEffect> {
        let measurements = Measurements { period, queues, workers: workers.to_vec() };
        let observed = self.vmq.observe(&measurements, now);
        self.tasks.extend(observed.moves.into_iter().map(QueueMoveTask::Move));
        observed.effects
    }

    /// Returns the tasks to execute now.
    pub(super) fn take_tasks(&mut self) -> Vec<QueueMoveTask> {
        self.vmq.flush();
        std::mem::take(&mut self.tasks)
    }

    /// Reports the result of a task to the policy. `worker`: the queue's worker now; `None` if the
    /// queue does not exist, which the policy then forgets until it is found again.
    pub(super) fn handle_task_result(
        &mut self,
        task: &QueueMoveTask,
        worker: Option<WorkerId>,
        now: Time,
    ) {
        let queue = task.queue();
        match (task, worker) {
            (_, None) => self.forget(queue, now),
            (QueueMoveTask::Move(_), Some(worker)) => self.vmq.handle_moved(queue, worker, now),
            (QueueMoveTask::PlaceInitially { .. }, Some(worker)) => {
                self.vmq.handle_moved_externally(queue, worker, now);
            }
        }
    }

    /// Returns the reason why a queue is on its worker; `None` if the policy does not place the
    /// queue.
    pub(super) fn reason(&self, queue: QueueId, now: Time) -> Option<PlacementReason> {
        let explanation = self.vmq.explain(queue.port, now)?;
        explanation
            .queues
            .iter()
            .find(|explained| explained.queue == queue)
            .map(|explained| explained.reason)
    }
}
