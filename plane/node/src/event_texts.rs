//! Events of changes, failures and recoveries.

use suimon_contract::{ApiError, EventKind, PlanAction, PlanStep};
use suimon_ports::Placement;
use suimon_quantity::{ProcessorId, QueueId};

use crate::checks::Candidate;
use crate::events::Draft;
use crate::queue_names::queue_name;
use crate::shared::Shared;
use crate::{Edit, PortKey};

/// Returns the events of a committed change: one for each step of the plan, then one for the
/// change.
pub(crate) fn planned_events(to: &Candidate, edit: &Edit) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = to.plan.steps.iter().filter_map(step_event).collect();
    drafts.extend(to.forced.iter().map(|error| {
        let subject = error.resource.as_deref().unwrap_or("host");
        let text = format!(
            "A forced change made the minimums on the store exceed its capacity: {}",
            error.message
        );
        Draft::new(EventKind::PromiseForced, subject, text)
    }));
    let text = format!("The configuration was changed ({}).", edit.kind());
    drafts.push(
        Draft::new(EventKind::DesiredStateChanged, edit.subject(), text)
            .with("revision", to.state.revision)
            .with("operation", edit.kind()),
    );
    drafts
}

/// Returns the event of a change that was rolled back.
pub(crate) fn change_failed(edit: &Edit, error: &ApiError) -> Draft {
    let text = format!(
        "The change ({}) failed and was rolled back; the former configuration is in effect: \
         {error}",
        edit.kind()
    );
    let mut draft = Draft::new(EventKind::ChangeRolledBack, edit.subject(), text)
        .with("operation", edit.kind())
        .with("code", error.code.as_str());
    if let Some(resource) = &error.resource {
        draft = draft.with("resource", resource);
    }
    if let Some(field) = &error.field {
        draft = draft.with("field", field);
    }
    draft
}

fn step_event(step: &PlanStep) -> Option<Draft> {
    let kind = step.resource.split('/').next().unwrap_or_default();
    let event = match (kind, step.action) {
        ("switch", PlanAction::Create) => EventKind::SwitchCreated,
        ("switch", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::SwitchChanged,
        ("switch", PlanAction::Delete) => EventKind::SwitchDeleted,
        ("nic", PlanAction::Create) => EventKind::NicCreated,
        ("nic", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::NicChanged,
        ("nic", PlanAction::Delete) => EventKind::NicDeleted,
        ("uplink", PlanAction::Create) => EventKind::UplinkCreated,
        ("uplink", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::UplinkChanged,
        ("uplink", PlanAction::Delete) => EventKind::UplinkDeleted,
        ("team", PlanAction::Create) => EventKind::TeamCreated,
        ("team", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::TeamChanged,
        ("team", PlanAction::Delete) => EventKind::TeamDeleted,
        ("store", PlanAction::Create) => EventKind::StoreCreated,
        ("store", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::StoreChanged,
        ("store", PlanAction::Delete) => EventKind::StoreDeleted,
        ("qos_policy", PlanAction::Create) => EventKind::QosPolicyCreated,
        ("qos_policy", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::QosPolicyChanged,
        ("qos_policy", PlanAction::Delete) => EventKind::QosPolicyDeleted,
        ("disk", PlanAction::Create) => EventKind::DiskCreated,
        ("disk", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::DiskChanged,
        ("disk", PlanAction::Delete) => EventKind::DiskDeleted,
        ("vm", PlanAction::Create) => EventKind::VmCreated,
        ("vm", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::VmChanged,
        ("vm", PlanAction::Delete) => EventKind::VmDeleted,
        ("pf", PlanAction::Create) => EventKind::PfCreated,
        ("pf", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::PfChanged,
        ("pf", PlanAction::Delete) => EventKind::PfDeleted,
        ("node", PlanAction::Create) => EventKind::NodeCreated,
        ("node", PlanAction::ChangeLive | PlanAction::Replace) => EventKind::NodeChanged,
        ("node", PlanAction::Delete) => EventKind::NodeDeleted,
        // The event of the change covers changes of the host's own settings.
        _ => return None,
    };
    let what = match step.action {
        PlanAction::Create => "was created",
        PlanAction::ChangeLive => "was changed without interruption",
        PlanAction::Replace => "was replaced; its traffic or I/O was interrupted",
        PlanAction::Delete => "was deleted",
    };
    let text = format!("{} {what}.", step.resource);
    let mut draft = Draft::new(event, &step.resource, text).with("action", step.action);
    for change in &step.changes {
        let value = change.to.as_ref().map_or_else(|| "default".to_owned(), ToString::to_string);
        draft = draft.with(&change.field, value);
    }
    Some(draft)
}

/// Returns the event of a failed device.
pub(crate) fn failed(key: &PortKey, reason: &str) -> Draft {
    let kind = match key {
        PortKey::Uplink(_) | PortKey::Team(_) => EventKind::UplinkFailed,
        PortKey::Nic(_) | PortKey::HostNic(_) => EventKind::NicFailed,
    };
    let text = format!("{} failed and the daemon retries: {reason}", noun(key));
    Draft::new(kind, key, text).with("reason", reason)
}

/// Returns the event of a device that works again.
pub(crate) fn recovered(key: &PortKey) -> Draft {
    let kind = match key {
        PortKey::Uplink(_) | PortKey::Team(_) => EventKind::UplinkRecovered,
        PortKey::Nic(_) | PortKey::HostNic(_) => EventKind::NicRecovered,
    };
    Draft::new(kind, key, format!("{} is in service again.", noun(key)))
}

fn noun(key: &PortKey) -> &'static str {
    match key {
        PortKey::Nic(_) => "The NIC",
        PortKey::Uplink(_) => "The uplink",
        PortKey::HostNic(_) => "The host NIC of the switch",
        PortKey::Team(_) => "The team",
    }
}

/// Returns the event of a queue moved by an operator; `None` if its port was removed.
pub(crate) fn queue_moved(
    shared: &Shared,
    queue: QueueId,
    from: Option<ProcessorId>,
    to: ProcessorId,
) -> Option<Draft> {
    let port = shared.ports.find_id(queue.port)?;
    let name = queue_name(&shared.port_labels(), &port.key, queue);
    let from = from.map_or_else(|| "none".to_owned(), |from| from.to_string());
    let text = format!("Queue {name} was moved from worker {from} to worker {to}.");
    let draft = Draft::new(EventKind::QueueMoved, &port.key, text);
    Some(draft.with("queue", name).with("from", from).with("to", to).with("reason", "request"))
}

/// Returns the events of stopped and started workers, each given by its number and placement.
pub(crate) fn processors_changed(was: &[(u16, Placement)], is: &[(u16, Placement)]) -> Vec<Draft> {
    let event = |kind, number: u16, placement: Placement, text: String| {
        let draft = Draft::new(kind, format!("processor/{number}"), text);
        match placement.cpu() {
            Some(cpu) => draft.with("cpu", cpu),
            None => draft,
        }
    };
    let stopped = was.iter().filter(|processor| !is.contains(processor)).map(|(n, at)| {
        let text = format!("Worker {n} on {at} was stopped.");
        event(EventKind::ProcessorStopped, *n, *at, text)
    });
    let started = is.iter().filter(|processor| !was.contains(processor)).map(|(n, at)| {
        let text = format!("Worker {n} was started on {at}.");
        event(EventKind::ProcessorStarted, *n, *at, text)
    });
    stopped.chain(started).collect()
}
