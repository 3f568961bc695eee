//! Events of queues that an operator moved, and of changes of the set of workers.

use suimon_contract::EventKind;
use suimon_ports::CpuAffinity;
use suimon_quantity::{QueueId, WorkerId};

use crate::events::EventDraft;
use crate::ports::queue_name;
use crate::shared::Shared;

/// Returns the event of a queue moved by an operator; `None` if its port was removed.
pub(crate) fn operator_move_event(
    shared: &Shared,
    queue: QueueId,
    from: Option<WorkerId>,
    to: WorkerId,
) -> Option<EventDraft> {
    let port = shared.ports.find_id(queue.port)?;
    let name = queue_name(&shared.port_labels(), &port.key, queue);
    let from = from.map_or_else(|| "none".to_owned(), |from| from.to_string());
    let text = format!("Queue {name} was moved from worker {from} to worker {to}.");
    let draft = EventDraft::new(EventKind::QueueMoved, &port.key, text);
    Some(draft.with("queue", name).with("from", from).with("to", to).with("reason", "request"))
}

/// Returns the events of stopped and started workers, each given by its number and placement.
pub(crate) fn workers_changed_events(
    previous: &[(u16, CpuAffinity)],
    current: &[(u16, CpuAffinity)],
) -> Vec<EventDraft> {
    let event = |kind, number: u16, placement: CpuAffinity, text: String| {
        let draft = EventDraft::new(kind, format!("processor/{number}"), text);
        match placement.cpu() {
            Some(cpu) => draft.with("cpu", cpu),
            None => draft,
        }
    };
    let stopped =
        previous.iter().filter(|worker| !current.contains(worker)).map(|(n, placement)| {
            let text = format!("Worker {n} on {placement} was stopped.");
            event(EventKind::ProcessorStopped, *n, *placement, text)
        });
    let started =
        current.iter().filter(|worker| !previous.contains(worker)).map(|(n, placement)| {
            let text = format!("Worker {n} was started on {placement}.");
            event(EventKind::ProcessorStarted, *n, *placement, text)
        });
    stopped.chain(started).collect()
}
