//! Writes the settings of a plan and records their previous values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_ports::{PowerHost, StateStore, StoreError};
use suimon_power::{
    Assert, Foreign, Machine, PowerSpec, Reconciliation, Records, SettingId, SettingKind, Wanted,
    decide, reconcile,
};

use super::records;
use crate::state::load_boot;

/// Maximum number of rounds of writes. Turbo determines the available frequencies: one round for
/// turbo, one for the other settings, one to verify, and one for drivers that adjust values.
const ROUNDS_MAX: usize = 4;

/// Writer of settings.
pub(super) struct Keeper {
    pub(super) host: Arc<dyn PowerHost>,
    store: Arc<dyn StateStore>,
    pub(super) records: Records,
    /// Reasons why settings were rejected by the last [`Keeper::settle`].
    pub(super) refused: BTreeMap<SettingId, String>,
    /// Settings whose external changes differ from the plan.
    pub(super) foreign: BTreeMap<SettingId, Foreign>,
}

/// Result of [`Keeper::settle`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// Number of restored settings.
    pub(super) restored: usize,
    /// Externally changed settings that were left unchanged. Contains only those that the previous
    /// call did not report.
    pub(super) foreign: Vec<Foreign>,
    /// Settings that could not be restored, with the reason.
    pub(super) not_restored: Vec<(SettingId, String)>,
    /// Number of settings that wait for their CPUs to be online.
    pub(super) waiting: usize,
    /// Reason why the state store rejected the records; then no further settings were written.
    pub(super) not_kept: Option<String>,
}

/// Result of [`restore_power`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerRestoration {
    /// Number of restored settings.
    pub restored: usize,
    /// Externally changed settings that were left unchanged, as text.
    pub left: Vec<String>,
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
) -> Result<PowerRestoration, StoreError> {
    let mut keeper = Keeper::load(Arc::clone(host), Arc::clone(store))?;
    keeper.forget_other_boots(boot_id)?;
    let settled = keeper.settle(None, &Assert::Nothing);
    if let Some(detail) = settled.not_kept {
        return Err(StoreError::new(detail));
    }
    let left = settled.foreign.iter().map(left_in_words).collect();
    let waits = keeper.records.keys().map(|id| {
        let why = keeper.refused.get(id).map_or("its file does not exist now", String::as_str);
        format!("{id}: {why}")
    });
    Ok(PowerRestoration { restored: settled.restored, left, failed: waits.collect() })
}

/// Returns the description of an externally changed setting that is left unchanged.
pub(super) fn left_in_words(foreign: &Foreign) -> String {
    let Foreign { id, before, written, now } = foreign;
    format!("{id} is {now}; the daemon had written {written}, and the value before was {before}")
}

impl Keeper {
    pub(super) fn load(
        host: Arc<dyn PowerHost>,
        store: Arc<dyn StateStore>,
    ) -> Result<Self, StoreError> {
        let records = records::load(store.as_ref())?;
        Ok(Self { host, store, records, refused: BTreeMap::new(), foreign: BTreeMap::new() })
    }

    /// Deletes all records if the host has been booted since the last daemon: its settings were
    /// reset.
    pub(super) fn forget_other_boots(&mut self, boot_id: &str) -> Result<(), StoreError> {
        if load_boot(self.store.as_ref())?.is_some_and(|boot| boot != boot_id) {
            self.keep(Records::new())?;
        }
        Ok(())
    }

    /// Applies the plan's settings; restores previous values if `spec` is `None` or omits a
    /// setting.
    pub(super) fn settle(&mut self, spec: Option<&PowerSpec>, assert: &Assert) -> Settled {
        let mut settled = Settled::default();
        self.refused.clear();
        let told: BTreeSet<SettingId> = self.foreign.keys().copied().collect();
        let mut machine = self.host.machine();
        for round in 0..ROUNDS_MAX {
            // External changes are overwritten once. A different value in a later round results
            // from the kernel's adjustment.
            let assert = if round == 0 { assert } else { &Assert::Nothing };
            let wanted = spec.map(|spec| settings(spec, &machine)).unwrap_or_default();
            let mut todo = reconcile(&wanted, &machine, &self.records, assert);
            todo.writes.retain(|of| !self.refused.contains_key(&of.id));
            self.turbo_first(&mut todo);
            if let Err(error) = self.keep(todo.records.clone()) {
                settled.not_kept = Some(error.to_string());
                break;
            }
            self.foreign = todo.foreign.iter().map(|of| (of.id, of.clone())).collect();
            settled.waiting = todo.waiting.len();
            settled.foreign.extend(todo.foreign.iter().cloned());
            if todo.writes.is_empty() {
                break;
            }
            machine = self.write_all(&todo, &machine, &mut settled);
        }
        settled.foreign.sort_by_key(|of| of.id);
        settled.foreign.dedup_by_key(|of| of.id);
        settled.foreign.retain(|of| !told.contains(&of.id));
        self.drop_what_never_was(&machine);
        settled
    }

    /// Restricts a round to turbo if turbo is to be written, because other settings depend on it.
    fn turbo_first(&self, todo: &mut Reconciliation) {
        if !todo.writes.iter().any(is_turbo) {
            return;
        }
        for of in todo.writes.iter().filter(|of| !is_turbo(of)) {
            match self.records.get(&of.id) {
                Some(record) => todo.records.insert(of.id, record.clone()),
                None => todo.records.remove(&of.id),
            };
        }
        todo.writes.retain(is_turbo);
    }

    /// Executes the writes of a round, reads the machine again and records the results.
    fn write_all(
        &mut self,
        todo: &Reconciliation,
        before: &Machine,
        settled: &mut Settled,
    ) -> Machine {
        let is_of_turbo = todo.writes.iter().any(is_turbo);
        let mut records = self.records.clone();
        let mut written = BTreeSet::new();
        for of in &todo.writes {
            let is_back = todo.restored.contains(&of.id);
            match self.host.write(of.id, &of.value) {
                Ok(()) if is_back => {
                    records.remove(&of.id);
                    settled.restored += 1;
                }
                Ok(()) => {
                    written.insert(of.id);
                }
                Err(error) => {
                    let why = error.to_string();
                    if is_back {
                        settled.not_restored.push((of.id, why.clone()));
                    }
                    self.refused.insert(of.id, why);
                }
            }
        }
        let after = self.host.machine();
        for (id, record) in &mut records {
            let was_ours = before
                .value(*id)
                .is_some_and(|was| is_of_turbo && record.has_made(*id, &record.written, &was));
            if written.contains(id) || was_ours {
                record.found = after.value(*id).or(record.found.take());
            }
        }
        if let Err(error) = self.keep(records) {
            settled.not_kept = Some(error.to_string());
        }
        after
    }

    /// Deletes the records of rejected settings that still have their previous value.
    fn drop_what_never_was(&mut self, machine: &Machine) {
        let mut records = self.records.clone();
        records.retain(|id, record| {
            !self.refused.contains_key(id) || machine.value(*id).as_ref() != Some(&record.before)
        });
        if let Err(error) = self.keep(records) {
            tracing::warn!(%error, "a setting that was never changed is still recorded");
        }
    }

    fn keep(&mut self, records: Records) -> Result<(), StoreError> {
        records::save(self.store.as_ref(), &self.records, &records)?;
        self.records = records;
        Ok(())
    }

    /// Returns true if a setting has the wanted value, or the value to which the driver adjusted
    /// it.
    pub(super) fn is_made(&self, of: &Wanted, now: Option<&String>) -> bool {
        let Some(now) = now else { return false };
        let record = self.records.get(&of.id);
        *now == of.value || record.is_some_and(|record| record.has_made(of.id, &of.value, now))
    }
}

fn is_turbo(of: &Wanted) -> bool {
    of.id.kind() == SettingKind::Turbo
}

/// Returns the settings that a plan requires on this machine.
fn settings(spec: &PowerSpec, machine: &Machine) -> Vec<Wanted> {
    decide(spec, machine).into_iter().flat_map(|target| target.settings).collect()
}
