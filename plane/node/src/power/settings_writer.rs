//! Writes the settings of a plan and records their previous values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_ports::{PowerHost, StateStore, StateStoreError};
use suimon_power::{
    ExternalChange, HostPowerSettings, OverwritePolicy, PowerSpec, Reconciliation, RequiredSetting,
    SettingId, SettingKind, SettingRecords, plan_requirements, reconcile,
};

use super::records;
use crate::state::load_boot_id;

/// Maximum number of rounds of writes. Turbo determines the available frequencies: one round for
/// turbo, one for the other settings, one to verify, and one for drivers that adjust values.
const ROUNDS_MAX: usize = 4;

/// Writer of power settings, with the records of their previous values.
pub(super) struct SettingsWriter {
    pub(super) host: Arc<dyn PowerHost>,
    store: Arc<dyn StateStore>,
    pub(super) records: SettingRecords,
    /// Reasons why settings were rejected by the last [`SettingsWriter::apply`].
    pub(super) refused: BTreeMap<SettingId, String>,
    /// External changes of settings that differ from the plan, by setting.
    pub(super) external_changes: BTreeMap<SettingId, ExternalChange>,
}

/// Result of [`SettingsWriter::apply`]. Settings that the plan requires and that were rejected are
/// in [`SettingsWriter::refused`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ApplyResult {
    /// Number of settings restored to their former values.
    pub(super) restored_count: usize,
    /// Externally changed settings that were left unchanged. Contains only those that the previous
    /// call did not report.
    pub(super) external_changes: Vec<ExternalChange>,
    /// Settings that could not be restored, with the reason.
    pub(super) not_restored: Vec<(SettingId, String)>,
    /// Number of settings that wait for their CPUs to be online.
    pub(super) waiting_count: usize,
    /// Reason why the state store rejected the records; then no further settings were written.
    pub(super) store_error: Option<String>,
}

/// Result of [`restore_power`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerRestoration {
    /// Number of settings restored to their former values.
    pub restored_count: usize,
    /// Externally changed settings that were left unchanged, as text.
    pub externally_changed: Vec<String>,
    /// Settings that could not be restored, as text.
    pub failed: Vec<String>,
}

/// Restores settings that an ended daemon has changed and not restored since the boot with this
/// `boot_id`.
///
/// # Errors
/// The state store is damaged or cannot be written. Settings that could be read were restored.
pub fn restore_power(
    store: &Arc<dyn StateStore>,
    host: &Arc<dyn PowerHost>,
    boot_id: &str,
) -> Result<PowerRestoration, StateStoreError> {
    let mut keeper = SettingsWriter::load(Arc::clone(host), Arc::clone(store))?;
    keeper.delete_records_of_other_boots(boot_id)?;
    let apply_result = keeper.apply(None, &OverwritePolicy::Nothing);
    if let Some(detail) = apply_result.store_error {
        return Err(StateStoreError::new(detail));
    }
    let external_changes = apply_result.external_changes.iter().map(external_change_text).collect();
    let not_restored = keeper.records.keys().map(|id| {
        let reason = keeper.refused.get(id).map_or("its file does not exist now", String::as_str);
        format!("{id}: {reason}")
    });
    Ok(PowerRestoration {
        restored_count: apply_result.restored_count,
        externally_changed: external_changes,
        failed: not_restored.collect(),
    })
}

/// Returns a text about an externally changed setting that is left unchanged: its present value,
/// the value that the daemon wrote, and the value before.
pub(super) fn external_change_text(external_changes: &ExternalChange) -> String {
    let ExternalChange {
        id,
        original_value: before,
        written_by_daemon: written,
        current_value: now,
    } = external_changes;
    format!("{id} is {now}; the daemon had written {written}, and the value before was {before}")
}

impl SettingsWriter {
    pub(super) fn load(
        host: Arc<dyn PowerHost>,
        store: Arc<dyn StateStore>,
    ) -> Result<Self, StateStoreError> {
        let records = records::load(store.as_ref())?;
        Ok(Self {
            host,
            store,
            records,
            refused: BTreeMap::new(),
            external_changes: BTreeMap::new(),
        })
    }

    /// Deletes all records if the host has been booted since the last daemon: its settings were
    /// reset.
    pub(super) fn delete_records_of_other_boots(
        &mut self,
        boot_id: &str,
    ) -> Result<(), StateStoreError> {
        if load_boot_id(self.store.as_ref())?.is_some_and(|boot| boot != boot_id) {
            self.record(SettingRecords::new())?;
        }
        Ok(())
    }

    /// Applies the plan's settings; restores previous values if `spec` is `None` or omits a
    /// setting.
    pub(super) fn apply(
        &mut self,
        spec: Option<&PowerSpec>,
        assert: &OverwritePolicy,
    ) -> ApplyResult {
        let mut apply_result = ApplyResult::default();
        self.refused.clear();
        let reported_before: BTreeSet<SettingId> = self.external_changes.keys().copied().collect();
        let mut machine = self.host.settings();
        for round in 0..ROUNDS_MAX {
            // External changes are overwritten once. A different value in a later round results
            // from the kernel's adjustment.
            let assert = if round == 0 { assert } else { &OverwritePolicy::Nothing };
            let required = spec.map(|spec| settings(spec, &machine)).unwrap_or_default();
            let mut todo = reconcile(&required, &machine, &self.records, assert);
            todo.writes.retain(|setting| !self.refused.contains_key(&setting.id));
            self.turbo_first(&mut todo);
            if let Err(error) = self.record(todo.records.clone()) {
                apply_result.store_error = Some(error.to_string());
                break;
            }
            self.external_changes =
                todo.external_changes.iter().map(|change| (change.id, change.clone())).collect();
            apply_result.waiting_count = todo.unavailable_settings.len();
            apply_result.external_changes.extend(todo.external_changes.iter().cloned());
            if todo.writes.is_empty() {
                break;
            }
            machine = self.write_all(&todo, &machine, &mut apply_result);
        }
        apply_result.external_changes.sort_by_key(|change| change.id);
        apply_result.external_changes.dedup_by_key(|change| change.id);
        apply_result.external_changes.retain(|change| !reported_before.contains(&change.id));
        self.delete_unapplied_records(&machine);
        apply_result
    }

    /// If turbo is to be written, removes all other writes from the round, because the other
    /// settings depend on turbo.
    fn turbo_first(&self, todo: &mut Reconciliation) {
        if !todo.writes.iter().any(is_turbo) {
            return;
        }
        for setting in todo.writes.iter().filter(|setting| !is_turbo(setting)) {
            match self.records.get(&setting.id) {
                Some(record) => todo.records.insert(setting.id, record.clone()),
                None => todo.records.remove(&setting.id),
            };
        }
        todo.writes.retain(is_turbo);
    }

    /// Executes the writes of a round, reads the machine again and records the results.
    fn write_all(
        &mut self,
        todo: &Reconciliation,
        before: &HostPowerSettings,
        apply_result: &mut ApplyResult,
    ) -> HostPowerSettings {
        let is_of_turbo = todo.writes.iter().any(is_turbo);
        let mut records = self.records.clone();
        let mut written = BTreeSet::new();
        for setting in &todo.writes {
            let is_back = todo.restored.contains(&setting.id);
            match self.host.write_setting(setting.id, &setting.value) {
                Ok(()) if is_back => {
                    records.remove(&setting.id);
                    apply_result.restored_count += 1;
                }
                Ok(()) => {
                    written.insert(setting.id);
                }
                Err(error) => {
                    let reason = error.to_string();
                    if is_back {
                        apply_result.not_restored.push((setting.id, reason.clone()));
                    }
                    self.refused.insert(setting.id, reason);
                }
            }
        }
        let after = self.host.settings();
        for (id, record) in &mut records {
            let was_ours = before.value(*id).is_some_and(|previous| {
                is_of_turbo && record.fulfils(*id, &record.written_value, &previous)
            });
            if written.contains(id) || was_ours {
                record.read_back_value = after.value(*id).or(record.read_back_value.take());
            }
        }
        if let Err(error) = self.record(records) {
            apply_result.store_error = Some(error.to_string());
        }
        after
    }

    /// Deletes the records of rejected settings that still have their previous value.
    fn delete_unapplied_records(&mut self, machine: &HostPowerSettings) {
        let mut records = self.records.clone();
        records.retain(|id, record| {
            !self.refused.contains_key(id)
                || machine.value(*id).as_ref() != Some(&record.original_value)
        });
        if let Err(error) = self.record(records) {
            tracing::warn!(%error, "a setting that was never changed is still recorded");
        }
    }

    fn record(&mut self, records: SettingRecords) -> Result<(), StateStoreError> {
        records::save(self.store.as_ref(), &self.records, &records)?;
        self.records = records;
        Ok(())
    }

    /// Returns true if a setting has the required value, or the value to which the driver adjusted
    /// it.
    pub(super) fn is_in_effect(&self, setting: &RequiredSetting, now: Option<&String>) -> bool {
        let Some(now) = now else { return false };
        let record = self.records.get(&setting.id);
        *now == setting.value
            || record.is_some_and(|record| record.fulfils(setting.id, &setting.value, now))
    }
}

fn is_turbo(setting: &RequiredSetting) -> bool {
    setting.id.kind() == SettingKind::Turbo
}

/// Returns the settings that a plan requires on this machine.
fn settings(spec: &PowerSpec, machine: &HostPowerSettings) -> Vec<RequiredSetting> {
    plan_requirements(spec, machine).into_iter().flat_map(|target| target.settings).collect()
}
