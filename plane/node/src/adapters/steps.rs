//! Application and rollback of adapter configurations.

use std::collections::BTreeMap;

use suimon_contract::{ApiError, HostConfig, PfConfig, VfConfig};
use suimon_ports::{DeviceError, DeviceErrorKind, PfProperties, SriovHost, VfProperties};
use suimon_quantity::CountedNoun;

use super::setting::{changed_keys, difference, rollback_change};
use super::users::vf_user_texts;
use super::{find, texts};
use crate::control::Controller;
use crate::errors::error_code;
use crate::events::EventDraft;

/// Step of a change that configures one adapter.
pub(crate) struct PfStep {
    pf: PfConfig,
    before: Option<PfConfig>,
}

/// State of an adapter before a step.
pub(crate) struct PfUndo(PfProperties);

/// Returns the steps of a change. Adapters that are removed from the configuration stay unchanged,
/// so that users of their VFs are not affected.
pub(crate) fn pf_steps(from: &HostConfig, to: &HostConfig) -> Vec<PfStep> {
    let changed = to.pfs.iter().filter(|pf| !from.pfs.contains(pf));
    let step = |pf: &PfConfig| {
        let before = from.pfs.iter().find(|before| before.name == pf.name);
        // The previous keys do not apply to a different adapter.
        let before = before.filter(|before| before.device == pf.device).cloned();
        PfStep { pf: pf.clone(), before }
    };
    changed.map(step).collect()
}

impl std::fmt::Display for PfStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "set up pf/{}", self.pf.name)
    }
}

impl Controller {
    /// Configures an adapter. Returns its state before the step, also if the step fails.
    pub(crate) fn execute_pf_step(
        &mut self,
        step: &PfStep,
        to: &HostConfig,
    ) -> (Option<PfUndo>, Result<(), ApiError>) {
        let PfStep { pf, before } = step;
        let host = self.shared.sriov.host.clone();
        let previous = host.adapters().and_then(|adapters| find(adapters, pf)).map(PfUndo).ok();
        let outcome = apply(host.as_ref(), to, pf, before.as_ref());
        let outcome = outcome.map(|drafts| {
            self.shared.sriov.record_result(&pf.name, None);
            self.drafts.extend(drafts);
        });
        let to_api_error = |error: DeviceError| {
            ApiError::new(error_code(error.kind), error.detail)
                .with_resource(format!("pf/{}", pf.name))
                .with_field(error.field)
        };
        (previous, outcome.map_err(to_api_error))
    }

    /// Restores an adapter's previous state. A failure is logged.
    pub(crate) fn roll_back_pf(&mut self, undo: &PfUndo) {
        if let Err(error) = reclaim(self.shared.sriov.host.as_ref(), &undo.0) {
            tracing::error!(
                pf = %undo.0.address,
                %error,
                "cannot restore the former settings of an adapter"
            );
        }
    }

    /// Applies the configuration of adapters that differ from it. Called at the daemon's start and
    /// periodically.
    pub(crate) fn check_adapters(&mut self) {
        let state = self.shared.desired();
        self.shared.sriov.retain_configured(&state.config);
        if state.config.pfs.is_empty() {
            return;
        }
        let host = self.shared.sriov.host.clone();
        let adapters = host.adapters();
        for pf in &state.config.pfs {
            let adapter = adapters.as_ref().map_err(Clone::clone);
            let outcome =
                adapter.and_then(|adapters| find(adapters.clone(), pf)).and_then(|properties| {
                    match first_difference(&properties, pf) {
                        None => Ok(Vec::new()),
                        Some(_) => apply(host.as_ref(), &state.config, pf, None),
                    }
                });
            match outcome {
                Ok(drafts) => {
                    self.drafts.extend(drafts);
                    if self.shared.sriov.record_result(&pf.name, None).is_some() {
                        self.drafts.push(texts::pf_recovered_event(pf));
                    }
                }
                Err(error) => {
                    let reason = error.detail;
                    let before = self.shared.sriov.record_result(&pf.name, Some(reason.clone()));
                    if before.as_ref() != Some(&reason) {
                        self.drafts.push(texts::pf_failed_event(pf, &reason));
                    }
                }
            }
        }
    }
}

/// Returns the first difference between an adapter and its configuration, as text.
pub(super) fn first_difference(properties: &PfProperties, pf: &PfConfig) -> Option<String> {
    let number = properties.vfs.len();
    if number != usize::from(pf.vf_count) {
        return Some(format!(
            "it has {} instead of {}",
            CountedNoun::new(number, "VF"),
            pf.vf_count
        ));
    }
    let by_index: BTreeMap<u16, &VfProperties> =
        properties.vfs.iter().map(|vf| (vf.index, vf)).collect();
    pf.vf_settings.iter().filter(|vf| is_written(vf)).find_map(|vf| {
        let index = vf.index;
        let Some(current) = by_index.get(&index).and_then(|vf| vf.settings.as_ref()) else {
            return Some(format!("its driver does not report the settings of VF {index}"));
        };
        let missing = changed_keys(&difference(current, vf, None));
        let missing: Vec<_> = missing.iter().map(|(key, value)| format!("{key} {value}")).collect();
        (!missing.is_empty()).then(|| format!("VF {index} lacks {}", missing.join(", ")))
    })
}

fn is_written(vf: &VfConfig) -> bool {
    *vf != VfConfig::new(vf.index)
}

/// Applies the configuration of an adapter, reads it back and returns the events.
///
/// # Errors
/// VFs to be removed are in use, the driver rejects a change, or the adapter still differs
/// afterwards.
fn apply(
    host: &dyn SriovHost,
    config: &HostConfig,
    pf: &PfConfig,
    before: Option<&PfConfig>,
) -> Result<Vec<EventDraft>, DeviceError> {
    let mut properties = find(host.adapters()?, pf)?;
    let mut drafts = Vec::new();
    let number = properties.vfs.len();
    if number != usize::from(pf.vf_count) {
        let users = vf_user_texts(config, &properties);
        if !users.is_empty() {
            let detail = format!(
                "it has {} instead of {}, and the number cannot change while VFs are in use: {}",
                CountedNoun::new(number, "VF"),
                pf.vf_count,
                users.join("; ")
            );
            return Err(DeviceError { kind: DeviceErrorKind::Busy, field: "vfs", detail });
        }
        host.set_vf_count(properties.address, pf.vf_count)?;
        properties = find(host.adapters()?, pf)?;
        drafts.push(texts::vf_count_changed_event(pf, &properties, number, properties.vfs.len()));
    }
    let previous_vfs = before.map(PfConfig::vf_by_index).unwrap_or_default();
    let desired = pf.vf_by_index();
    for vf in &properties.vfs {
        let nothing = VfConfig::new(vf.index);
        let vf_config = desired.get(&vf.index).copied().unwrap_or(&nothing);
        // Settings that the driver does not report are detected by `first_difference` below.
        let Some(current) = &vf.settings else { continue };
        let change = difference(current, vf_config, previous_vfs.get(&vf.index).copied());
        if !change.is_empty() {
            host.change_vf(properties.address, vf.index, &change)?;
            drafts.push(texts::vf_settings_changed_event(pf, &properties, vf.index, &change));
        }
    }
    let properties = find(host.adapters()?, pf)?;
    match first_difference(&properties, pf) {
        None => Ok(drafts),
        Some(difference) => {
            let detail = format!("the adapter's driver accepted the settings, but {difference}");
            Err(DeviceError { kind: DeviceErrorKind::Unsupported, field: "vf", detail })
        }
    }
}

fn reclaim(host: &dyn SriovHost, previous_properties: &PfProperties) -> Result<(), DeviceError> {
    let number = u16::try_from(previous_properties.vfs.len()).unwrap_or(u16::MAX);
    host.set_vf_count(previous_properties.address, number)?;
    let adapters = host.adapters()?;
    let now = adapters.iter().find(|properties| properties.address == previous_properties.address);
    let settings = |properties: &PfProperties| -> BTreeMap<u16, _> {
        properties.vfs.iter().filter_map(|vf| Some((vf.index, vf.settings.clone()?))).collect()
    };
    let (now, was_set) = (now.map(settings).unwrap_or_default(), settings(previous_properties));
    for (index, was_set) in was_set {
        let Some(current) = now.get(&index) else { continue };
        let change = rollback_change(current, &was_set);
        if !change.is_empty() {
            host.change_vf(previous_properties.address, index, &change)?;
        }
    }
    Ok(())
}
