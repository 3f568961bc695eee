//! Events of changes: committed, and rolled back.

use suimon_contract::{ApiError, EventKind, PlanAction, PlanStep, ResourceKind};

use crate::Edit;
use crate::change::ValidatedChange;
use crate::events::EventDraft;

/// Returns the events of a committed change: one for each step of the plan, then one for the
/// change.
pub(crate) fn change_committed_events(change: &ValidatedChange, edit: &Edit) -> Vec<EventDraft> {
    let mut drafts: Vec<EventDraft> = change.plan.steps.iter().filter_map(step_event).collect();
    drafts.extend(change.forced_errors.iter().map(|error| {
        let subject = error.resource.as_deref().unwrap_or("host");
        let text = format!(
            "A forced change made the minimums on the store exceed 90 % of its capacity: {}",
            error.message
        );
        EventDraft::new(EventKind::PromiseForced, subject, text)
    }));
    let mut text = format!("The configuration was changed ({}).", edit.kind());
    let waiting: Vec<String> = change.plan.steps.iter().filter_map(read_at_start).collect();
    // The daemon applies the host file at its start before it reads these sections.
    let is_at_start = change.options.keeps_faulty_disks;
    if !waiting.is_empty() && !is_at_start {
        text = format!("{text} {} takes effect when the daemon is restarted.", waiting.join(", "));
    }
    drafts.push(
        EventDraft::new(EventKind::DesiredStateChanged, edit.subject(), text)
            .with("revision", change.state.revision)
            .with("operation", edit.kind()),
    );
    drafts
}

/// Returns the event of a change that was rolled back.
pub(crate) fn change_rolled_back_event(edit: &Edit, error: &ApiError) -> EventDraft {
    let text = format!(
        "The change ({}) failed and was rolled back; the former configuration is in effect: \
         {error}",
        edit.kind()
    );
    let mut draft = EventDraft::new(EventKind::ChangeRolledBack, edit.subject(), text)
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

/// Returns the section of the host file that a step changes, if the daemon reads it only at its
/// start.
fn read_at_start(step: &PlanStep) -> Option<String> {
    let sections = [ResourceKind::Api, ResourceKind::Console, ResourceKind::Lab];
    let is_read = sections.iter().any(|kind| step.resource == kind.noun());
    is_read.then(|| format!("[{}]", step.resource))
}

fn step_event(step: &PlanStep) -> Option<EventDraft> {
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
    // The note of a VM lists the keys that take effect at its next start.
    let note = step.note.as_ref().filter(|_| event == EventKind::VmChanged);
    let changed = note.map(|note| format!("was changed; {note}"));
    let predicate = match step.action {
        PlanAction::Create => "was created",
        PlanAction::ChangeLive => changed.as_deref().unwrap_or("was changed live"),
        PlanAction::Replace => "was replaced; its traffic or I/O was interrupted",
        PlanAction::Delete => "was deleted",
    };
    let text = format!("{} {predicate}.", step.resource);
    let mut draft = EventDraft::new(event, &step.resource, text).with("action", step.action);
    for change in &step.changes {
        let value =
            change.new_value.as_ref().map_or_else(|| "default".to_owned(), ToString::to_string);
        draft = draft.with(&change.field, value);
    }
    Some(draft)
}
