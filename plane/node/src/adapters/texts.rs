//! Events of SR-IOV adapters.

use suimon_contract::{EventKind, PfConfig};
use suimon_ports::{PfProperties, VfSettingsChange};
use suimon_quantity::CountedNoun;

use super::label;
use super::setting::changed_keys;
use crate::events::EventDraft;

fn subject(pf: &PfConfig) -> String {
    format!("pf/{}", pf.name)
}

pub(super) fn vf_count_changed_event(
    pf: &PfConfig,
    properties: &PfProperties,
    from: usize,
    to: usize,
) -> EventDraft {
    let text = format!(
        "{} has {} now; before it had {from}.",
        label(properties),
        CountedNoun::new(to, "VF")
    );
    EventDraft::new(EventKind::VfsEnabled, subject(pf), text)
        .with("address", properties.address)
        .with("from", from)
        .with("to", to)
}

pub(super) fn vf_settings_changed_event(
    pf: &PfConfig,
    properties: &PfProperties,
    index: u16,
    change: &VfSettingsChange,
) -> EventDraft {
    let changes = changed_keys(change);
    let listed: Vec<_> = changes.iter().map(|(key, value)| format!("{key} {value}")).collect();
    let text =
        format!("VF {index} of {} was configured: {}.", label(properties), listed.join(", "));
    let draft = EventDraft::new(EventKind::VfSet, subject(pf), text)
        .with("address", properties.address)
        .with("vf", index);
    changes.into_iter().fold(draft, |draft, (key, value)| draft.with(key, value))
}

pub(super) fn pf_failed_event(pf: &PfConfig, reason: &str) -> EventDraft {
    let text = format!(
        "The configuration of the adapter could not be applied and the daemon retries: {reason}"
    );
    EventDraft::new(EventKind::PfFailed, subject(pf), text).with("reason", reason)
}

pub(super) fn pf_recovered_event(pf: &PfConfig) -> EventDraft {
    EventDraft::new(
        EventKind::PfRecovered,
        subject(pf),
        "The configuration of the adapter is in effect again.",
    )
}
