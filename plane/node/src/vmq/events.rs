//! Events of VMQ.

use suimon_contract::{EventKind, Name};
use suimon_quantity::{QueueId, WorkerId};
use suimon_vmq::{Move, MoveEffect, MoveLoads, PlacementReason};

use crate::events::EventDraft;
use crate::ports::queue_name;
use crate::shared::Shared;
use crate::vmq::numbering::Numbering;
use crate::vmq::placement::QueueMoveTask;

/// Move of a queue between two workers. Workers have the plane's ids.
pub(super) struct QueueHandover<'a> {
    pub(super) uplink: &'a Name,
    pub(super) queue: QueueId,
    pub(super) from: WorkerId,
    pub(super) to: WorkerId,
}

impl QueueHandover<'_> {
    /// Returns an event with the queue and the workers in its fields; `None` if the port was
    /// removed.
    fn draft(
        &self,
        shared: &Shared,
        kind: EventKind,
        text: impl FnOnce(&str) -> String,
    ) -> Option<EventDraft> {
        let port = shared.ports.find_id(self.queue.port)?;
        let name = queue_name(&shared.port_labels(), &port.key, self.queue);
        let draft = EventDraft::new(kind, &port.key, text(&name)).with("queue", &name);
        let draft = draft.with("from", self.from).with("to", self.to);
        Some(draft.with("uplink", self.uplink))
    }

    /// Returns the loads of both workers before and after the move as text.
    fn loads(&self, figures: &MoveLoads) -> String {
        let (from, to) = (self.from, self.to);
        let MoveLoads { from_before, from_after, to_before, to_after } = figures;
        format!("worker {from} {from_before} → {from_after}, worker {to} {to_before} → {to_after}")
    }
}

/// Returns the event of a queue that was moved.
pub(super) fn queue_moved_event(
    shared: &Shared,
    numbering: &Numbering,
    hand_over: &QueueHandover<'_>,
    task: &QueueMoveTask,
    reason: Option<PlacementReason>,
) -> Option<EventDraft> {
    let QueueHandover { from, to, .. } = hand_over;
    let (because, predicted) = match task {
        QueueMoveTask::Move(Move { reason, predicted, .. }) => {
            (reason.to_string(), Some(predicted))
        }
        QueueMoveTask::PlaceInitially { .. } => {
            let reason = reason.map(|reason| with_plane_ids(reason, numbering).to_string());
            (reason.unwrap_or_else(|| "the first worker of the queue".to_owned()), None)
        }
    };
    let draft = hand_over.draft(shared, EventKind::QueueMoved, |name| {
        let expected =
            predicted.map(|figures| format!(" Predicted loads: {}.", hand_over.loads(figures)));
        format!(
            "VMQ moved queue {name} from worker {from} to worker {to}: {because}.{}",
            expected.unwrap_or_default()
        )
    })?;
    let draft = draft.with("reason", "vmq").with("because", because);
    Some(match predicted {
        Some(figures) => with_figures(draft, "expected", figures),
        None => draft,
    })
}

/// Returns the event of a queue that could not be moved.
pub(super) fn move_failed_event(
    shared: &Shared,
    hand_over: &QueueHandover<'_>,
    task: &QueueMoveTask,
    error: &str,
) -> Option<EventDraft> {
    let QueueHandover { from, to, .. } = hand_over;
    let draft = hand_over.draft(shared, EventKind::QueueMoveFailed, |name| {
        format!(
            "VMQ could not move queue {name} from worker {from} to worker {to}: {error}. The \
             queue stays on its worker; VMQ retries. If the event repeats, check both workers."
        )
    })?;
    let draft = draft.with("error", error);
    Some(match task {
        QueueMoveTask::Move(queue_move) => draft.with("because", queue_move.reason),
        QueueMoveTask::PlaceInitially { .. } => draft,
    })
}

/// Returns the event of a move's measured effect; `None` if a worker was stopped in the meantime.
pub(super) fn move_effect_event(
    shared: &Shared,
    numbering: &Numbering,
    uplink: &Name,
    effect: &MoveEffect,
) -> Option<EventDraft> {
    let MoveEffect { queue, from, to, predicted, measured } = effect;
    // A stopped worker has no number.
    let (from, to) = (numbering.id(*from)?, numbering.id(*to)?);
    let hand_over = QueueHandover { uplink, queue: *queue, from, to };
    let draft = hand_over.draft(shared, EventKind::QueueMoveMeasured, |name| {
        format!(
            "Loads after queue {name} was moved from worker {from} to worker {to}: {}. Predicted \
             loads: {}.",
            hand_over.loads(measured),
            hand_over.loads(predicted)
        )
    })?;
    Some(with_figures(with_figures(draft, "expected", predicted), "measured", measured))
}

fn with_figures(draft: EventDraft, prefix: &str, figures: &MoveLoads) -> EventDraft {
    let MoveLoads { from_before, from_after, to_before, to_after } = figures;
    let loads = [
        ("from_before", from_before),
        ("from_after", from_after),
        ("to_before", to_before),
        ("to_after", to_after),
    ];
    loads
        .into_iter()
        .fold(draft, |draft, (name, load)| draft.with(&format!("{prefix}_{name}_ppm"), load.ppm()))
}

/// Returns the reason with the plane's worker ids, which the API and events use.
pub(super) fn with_plane_ids(reason: PlacementReason, numbering: &Numbering) -> PlacementReason {
    let id = |number| numbering.id(number).unwrap_or(number);
    match reason {
        PlacementReason::Moved { from: source, reason, predicted } => {
            PlacementReason::Moved { from: id(source), reason, predicted }
        }
        PlacementReason::NotMoved { preferred } => {
            PlacementReason::NotMoved { preferred: id(preferred) }
        }
        PlacementReason::InitialPlacement
        | PlacementReason::DefaultQueue
        | PlacementReason::AssignedStatically { .. }
        | PlacementReason::MovedExternally => reason,
    }
}
