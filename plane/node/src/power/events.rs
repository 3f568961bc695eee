//! Events of power management.

use std::collections::BTreeSet;

use suimon_contract::{EventKind, PowerConfig, PowerEffect, PowerSettingStatus};
use suimon_quantity::CountedNoun;

use super::settings_writer::{ApplyResult, external_change_text};
use crate::events::EventDraft;

/// Maximum number of settings and reasons in one event.
const EVENT_ITEMS_MAX: usize = 8;

/// Returns the events about restored, unrestorable and externally changed settings.
pub(super) fn settings_events(apply_result: &ApplyResult) -> Vec<EventDraft> {
    let mut drafts = Vec::new();
    if apply_result.restored_count > 0 {
        let text = format!(
            "{} of CPUs that the daemon had changed were restored to the former values.",
            CountedNoun::new(apply_result.restored_count, "setting")
        );
        let draft = EventDraft::new(EventKind::PowerRestored, "power", text);
        drafts.push(draft.with("settings", apply_result.restored_count));
    }
    if !apply_result.external_changes.is_empty() {
        let text = format!(
            "Another program changed {} of CPUs after the daemon did; the daemon does not restore \
             them. Stop the other program; `suimon power set` then sets them again.",
            CountedNoun::new(apply_result.external_changes.len(), "setting")
        );
        let draft = EventDraft::new(EventKind::PowerSettingLeft, "power", text);
        let items = apply_result.external_changes.iter().take(EVENT_ITEMS_MAX);
        drafts.push(items.fold(draft, |draft, change| {
            draft.with(&change.id.file(), external_change_text(change))
        }));
    }
    if !apply_result.not_restored.is_empty() {
        let text = format!(
            "{} of CPUs could not be restored to the former values; the daemon retries when CPUs \
             come online or at its next start. The fields list up to {EVENT_ITEMS_MAX} of them with \
             the reason; `suimon power show` lists all with their former values.",
            CountedNoun::new(apply_result.not_restored.len(), "setting")
        );
        let draft = EventDraft::new(EventKind::PowerRestoreFailed, "power", text);
        let items = apply_result.not_restored.iter().take(EVENT_ITEMS_MAX);
        drafts.push(items.fold(draft, |draft, (id, reason)| draft.with(&id.file(), reason)));
    }
    drafts
}

/// Returns the event about the extent to which a plan is in effect.
pub(super) fn plan_effect_event(
    power: &PowerConfig,
    effect: PowerEffect,
    settings: &[PowerSettingStatus],
    apply_result: &ApplyResult,
) -> EventDraft {
    let plan = power.plan;
    if effect == PowerEffect::Full && apply_result.store_error.is_none() {
        let text = format!("Power plan {plan} is in effect on all CPUs.");
        return EventDraft::new(EventKind::PowerPlanInEffect, "power", text).with("plan", plan);
    }
    let text = match (&apply_result.store_error, effect) {
        (Some(reason), _) => format!(
            "Power plan {plan} was not applied, because the present CPU settings could not be \
             saved: {reason}"
        ),
        (None, PowerEffect::None) => format!(
            "No setting of power plan {plan} is available on this host's CPUs; only its settings \
             of workers are in effect."
        ),
        (None, _) => format!(
            "Power plan {plan} is in effect in part; the fields list up to {EVENT_ITEMS_MAX} settings \
             that are not, `suimon power show` lists all."
        ),
    };
    let draft = EventDraft::new(EventKind::PowerPlanIncomplete, "power", text).with("plan", plan);
    let lacking = settings.iter().filter(|setting| !setting.in_effect);
    lacking.take(EVENT_ITEMS_MAX).fold(draft, |draft, setting| {
        let reason = setting.reason.as_deref().unwrap_or("the setting has another value");
        let cpu_text = match setting.cpus.as_slice() {
            [] => String::new(),
            [cpu] => format!(" of CPU {cpu}"),
            [first, ..] => format!(" of CPU {first} and others"),
        };
        draft.with(&format!("{}{cpu_text}", setting.setting), reason)
    })
}

/// Returns the event about CPUs that came online or went offline.
pub(super) fn cpus_changed_event(online: &BTreeSet<u16>, added: &BTreeSet<u16>) -> EventDraft {
    let text = match added.len() {
        0 => "CPUs went offline.".to_owned(),
        number => format!("{} came online.", CountedNoun::new(number, "CPU")),
    };
    let list = |cpus: &BTreeSet<u16>| {
        let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        cpus.join(",")
    };
    EventDraft::new(EventKind::PowerCpusChanged, "power", text)
        .with("online", list(online))
        .with("came", list(added))
}
