//! Measurement of loads and execution of moves.

use suimon_contract::{HostConfig, Name};
use suimon_quantity::{QueueId, WorkerId};
use suimon_switch::WorkerStatus;
use suimon_vmq::MoveEffect;

use super::Inner;
use crate::events::EventDraft;
use crate::ports::placements;
use crate::shared::Shared;
use crate::vmq::events::{QueueHandover, move_effect_event, move_failed_event, queue_moved_event};
use crate::vmq::numbering::Numbering;
use crate::vmq::placement::{Placement, QueueMoveTask};
use crate::vmq::plan::VmqPlan;

/// Tasks and effects of one uplink or team, handled without the lock.
struct PendingTasks {
    uplink: Name,
    tasks: Vec<QueueMoveTask>,
    effects: Vec<MoveEffect>,
}

impl Shared {
    /// Updates VMQ after tables were published. Queues that must leave their worker are moved when
    /// VMQ is driven next; new queues start on their initial worker.
    pub(crate) fn publish_vmqs(&self, config: &HostConfig) {
        let mut inner = self.vmq_table.lock();
        inner.config = config.clone();
        let numbering = self.numbering(config, &self.plane.workers());
        self.plan_vmqs(&mut inner, numbering);
        self.plane.set_home_workers(inner.homes());
    }

    /// Measures, decides and moves queues. Returns the events.
    pub(crate) fn drive_vmqs(&self) -> Vec<EventDraft> {
        let due = self.decide_vmqs();
        if due.iter().all(|due_tasks| due_tasks.tasks.is_empty() && due_tasks.effects.is_empty()) {
            return Vec::new();
        }
        let mut drafts = Vec::new();
        for PendingTasks { uplink, tasks, effects } in due {
            for task in tasks {
                drafts.extend(self.execute(&uplink, &task));
            }
            let inner = self.vmq_table.lock();
            let measured_events = effects
                .iter()
                .map(|effect| move_effect_event(self, &inner.numbering, &uplink, effect));
            drafts.extend(measured_events.flatten());
        }
        drafts
    }

    fn decide_vmqs(&self) -> Vec<PendingTasks> {
        let mut inner = self.vmq_table.lock();
        if inner.placements.is_empty() {
            return Vec::new();
        }
        let now = self.plane.now();
        // Queues are read before workers, so that their total does not exceed the workers' time.
        let queues = self.plane.queues();
        let workers = self.plane.workers();
        let numbering = self.numbering(&inner.config, &workers);
        if numbering != inner.numbering {
            self.plan_vmqs(&mut inner, numbering);
        }
        let busy = inner.busy(&workers);
        let period =
            inner.looked_at.replace(now).map(|polled_at| now.since(polled_at)).unwrap_or_default();
        let Inner { placements: placings, numbering, .. } = &mut *inner;
        let due = placings.iter_mut().map(|(uplink, placing)| {
            let queues = placing.update_queues(&queues, numbering, now);
            let effects = placing.observe(period, queues, &busy, now);
            PendingTasks { uplink: uplink.clone(), tasks: placing.take_tasks(), effects }
        });
        let due = due.collect();
        self.plane.set_home_workers(inner.homes());
        due
    }

    fn numbering(&self, config: &HostConfig, workers: &[WorkerStatus]) -> Numbering {
        let required = placements(&config.host);
        Numbering::new(&required, workers, &self.cpu_topology)
    }

    fn plan_vmqs(&self, inner: &mut Inner, numbering: Numbering) {
        let now = self.plane.now();
        let plans = VmqPlan::all(&inner.config, &self.ids());
        let mut before = std::mem::take(&mut inner.placements);
        let is_same_count = numbering.agrees_with(&inner.numbering);
        let is_same = numbering == inner.numbering;
        inner.numbering = numbering;
        for plan in plans {
            let uplink = plan.uplink.clone();
            let previous = before.remove(&uplink).filter(|_| is_same_count);
            let placing = match previous {
                Some(placing) if is_same && *placing.plan() == plan => Ok(placing),
                Some(mut placing) => placing.change(plan, &inner.numbering, now).map(|()| placing),
                None => Placement::new(plan, &inner.numbering, now, self.recording.as_ref()),
            };
            match placing {
                Ok(placing) => {
                    inner.placements.insert(uplink, placing);
                }
                // Changes are validated before they are applied. This occurs only if the host has
                // changed while no daemon was running.
                Err(error) => {
                    tracing::error!(
                        %uplink,
                        %error,
                        "the VMQ settings do not fit this host; no queue is moved"
                    );
                }
            }
        }
    }

    fn execute(&self, uplink: &Name, task: &QueueMoveTask) -> Option<EventDraft> {
        let id = self.vmq_table.lock().numbering.id(task.target());
        let queue = task.queue();
        let from = self.owner(queue);
        let outcome = match id {
            Some(to) if from == Some(to) => Ok(()),
            Some(to) => self.plane.move_queue(queue, to).map_err(|error| error.to_string()),
            None => Err(format!("worker {} is not running any more", task.target())),
        };
        let worker = self.owner(queue);
        let now = self.plane.now();
        let mut inner = self.vmq_table.lock();
        let number = worker.and_then(|worker| inner.numbering.number(worker));
        if let Some(placing) = inner.placements.get_mut(uplink) {
            placing.handle_task_result(task, number, now);
        }
        // No event if the queue has disappeared or was already on its worker.
        let (from, worker) = (from?, worker?);
        let hand_over = QueueHandover { uplink, queue, from, to: id.unwrap_or(worker) };
        match outcome {
            Err(error) if from == worker => move_failed_event(self, &hand_over, task, &error),
            Ok(()) if from == worker => None,
            // The queue moves, even if the worker confirms it late.
            result => {
                let reason =
                    inner.placements.get(uplink).and_then(|placement| placement.reason(queue, now));
                let draft = queue_moved_event(self, &inner.numbering, &hand_over, task, reason);
                draft.map(|draft| {
                    result
                        .err()
                        .iter()
                        .fold(draft, |draft, late_error| draft.with("late", late_error))
                })
            }
        }
    }

    fn owner(&self, queue: QueueId) -> Option<WorkerId> {
        let views = self.plane.queues();
        views.iter().find(|view| view.id == queue).map(|view| view.worker)
    }
}
