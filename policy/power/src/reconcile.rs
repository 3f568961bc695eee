//! Determines the writes that apply a power plan or restore the previous values.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{HostPowerSettings, RequiredSetting, SettingId};

/// Record of a setting that the daemon changes, persisted before the first write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// Value before the daemon's first write, to be restored.
    #[serde(rename = "before")]
    pub original_value: String,
    /// Value written or about to be written.
    #[serde(rename = "written")]
    pub written_value: String,
    /// Value read after the write, which a driver may have rounded; `None` if it has not been read
    /// yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "found")]
    pub read_back_value: Option<String>,
}

impl SettingRecord {
    /// Returns true if `value` results from the daemon's write. If the daemon crashed between write
    /// and read, the value that the driver rounded to is unknown; any value then counts for a
    /// setting that drivers round.
    fn is_ours(&self, id: SettingId, value: &str) -> bool {
        let is_unread =
            self.read_back_value.is_none() && id.may_be_rounded() && value != self.original_value;
        self.written_value == value || self.read_back_value.as_deref() == Some(value) || is_unread
    }

    /// Returns true if the setting, which now has the value `now`, fulfils `required`: the driver
    /// may have rounded the written value to the nearest supported frequency.
    pub fn fulfils(&self, id: SettingId, required: &str, now: &str) -> bool {
        self.written_value == required && self.is_ours(id, now)
    }
}

/// Records of all settings that the daemon has changed.
pub type SettingRecords = BTreeMap<SettingId, SettingRecord>;

/// Which external changes are overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverwritePolicy {
    /// No external change is overwritten.
    Nothing,
    /// Every external change is overwritten: the operator has just set a plan.
    All,
    /// Changes of settings of these CPUs, which came online, are overwritten: the kernel has reset
    /// them.
    Cpus(BTreeSet<u16>),
}

/// Setting that another program changed after the daemon had written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalChange {
    /// Setting that another program changed.
    pub id: SettingId,
    /// Value before the plan was applied.
    pub original_value: String,
    /// Value written for the plan.
    pub written_by_daemon: String,
    /// Current value of the setting.
    pub current_value: String,
}

/// Result of a reconciliation: records, writes and exceptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Records that the caller must persist before it writes anything.
    pub records: SettingRecords,
    /// Writes, in the order in which the caller must carry them out.
    pub writes: Vec<RequiredSetting>,
    /// Settings whose write restores the original value. The caller drops the record once the write
    /// has succeeded.
    pub restored: BTreeSet<SettingId>,
    /// Settings changed by external agents and left alone. If the plan does not require the
    /// setting, its record is dropped.
    pub external_changes: Vec<ExternalChange>,
    /// Settings that do not exist at present, such as those of offline CPUs; their records are
    /// kept.
    pub unavailable_settings: BTreeSet<SettingId>,
}

/// Returns the writes after which all `required` settings are in effect and all other recorded
/// settings are restored. `assert` determines which external changes are overwritten.
pub fn reconcile(
    required: &[RequiredSetting],
    machine: &HostPowerSettings,
    records: &SettingRecords,
    assert: &OverwritePolicy,
) -> Reconciliation {
    let required: BTreeMap<SettingId, &str> =
        required.iter().map(|setting| (setting.id, setting.value.as_str())).collect();
    let ids: BTreeSet<SettingId> = required.keys().chain(records.keys()).copied().collect();
    let mut outcome = Reconciliation::default();
    for id in ids {
        let record = records.get(&id);
        match (machine.value(id), required.get(&id), record) {
            (None, _, Some(record)) => {
                outcome.records.insert(id, record.clone());
                outcome.unavailable_settings.insert(id);
            }
            (None, _, None) => {}
            (Some(now), Some(value), record) => {
                let treatment = treatment(assert, machine, id);
                outcome.require((id, value), now, record, treatment);
            }
            (Some(now), None, Some(record)) => {
                let treatment = match treatment(assert, machine, id) {
                    Treatment::OverwriteOnly => Treatment::OverwriteOnly,
                    Treatment::LeaveAlone | Treatment::OverwriteAndRestore => Treatment::LeaveAlone,
                };
                outcome.restore(id, now, record, treatment);
            }
            (Some(_), None, None) => {}
        }
    }
    order(&mut outcome.writes, machine);
    outcome
}

/// Treatment of a setting that another program has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// The change is left alone.
    LeaveAlone,
    /// The change is overwritten and later restored as the original value.
    OverwriteAndRestore,
    /// The change is overwritten and not recorded: it is the driver's initial value, not chosen by
    /// a user.
    OverwriteOnly,
}

fn treatment(assert: &OverwritePolicy, machine: &HostPowerSettings, id: SettingId) -> Treatment {
    let is_of_them = match assert {
        OverwritePolicy::Nothing => false,
        OverwritePolicy::All => return Treatment::OverwriteAndRestore,
        OverwritePolicy::Cpus(cpus) => match id {
            SettingId::Turbo(_) => false,
            SettingId::IdleStateDisable { cpu, .. } => cpus.contains(&cpu),
            SettingId::Boost(policy)
            | SettingId::Governor(policy)
            | SettingId::Preference(policy)
            | SettingId::FrequencyMax(policy)
            | SettingId::FrequencyMin(policy) => machine
                .policy(policy)
                .is_some_and(|policy| policy.cpus.iter().any(|cpu| cpus.contains(cpu))),
        },
    };
    if is_of_them { Treatment::OverwriteOnly } else { Treatment::LeaveAlone }
}

impl Reconciliation {
    fn require(
        &mut self,
        (id, value): (SettingId, &str),
        now: String,
        record: Option<&SettingRecord>,
        treatment: Treatment,
    ) {
        let Some(record) = record else {
            if now != value {
                self.write(id, value, now);
            }
            return;
        };
        if now == value && now == record.original_value {
            // The setting has its original value, which is the required one: no record is needed.
        } else if now == value || record.fulfils(id, value, &now) {
            let found = Some(now);
            self.records.insert(
                id,
                SettingRecord {
                    written_value: value.to_owned(),
                    read_back_value: found,
                    ..record.clone()
                },
            );
        } else if record.is_ours(id, &now)
            || now == record.original_value
            || treatment == Treatment::OverwriteOnly
        {
            // The setting has the value of another plan, its write was interrupted, or its CPU was
            // reset.
            self.write(id, value, record.original_value.clone());
        } else if treatment == Treatment::OverwriteAndRestore {
            self.write(id, value, now);
        } else {
            self.external_changes.push(external_changes(id, record, now));
            self.records.insert(id, record.clone());
        }
    }

    fn write(&mut self, id: SettingId, value: &str, before: String) {
        let written = value.to_owned();
        self.records.insert(
            id,
            SettingRecord {
                original_value: before,
                written_value: written.clone(),
                read_back_value: None,
            },
        );
        self.writes.push(RequiredSetting { id, value: written });
    }

    fn restore(
        &mut self,
        id: SettingId,
        now: String,
        record: &SettingRecord,
        treatment: Treatment,
    ) {
        if now == record.original_value {
            return;
        }
        if record.is_ours(id, &now) || treatment == Treatment::OverwriteOnly {
            self.records.insert(id, record.clone());
            self.writes.push(RequiredSetting { id, value: record.original_value.clone() });
            self.restored.insert(id);
        } else {
            self.external_changes.push(external_changes(id, record, now));
        }
    }
}

fn external_changes(id: SettingId, record: &SettingRecord, now: String) -> ExternalChange {
    ExternalChange {
        id,
        original_value: record.original_value.clone(),
        written_by_daemon: record.written_value.clone(),
        current_value: now,
    }
}

/// Sorts writes such that the kernel accepts each: turbo, governors, preferences, frequencies, idle
/// states. Of a policy's frequencies the maximum is written first, unless it is lowered below the
/// current minimum.
fn order(writes: &mut [RequiredSetting], machine: &HostPowerSettings) {
    writes.sort();
    let khz = |value: &str| value.parse::<u32>().ok();
    let lowered: BTreeSet<u16> = writes
        .iter()
        .filter_map(|write| {
            let SettingId::FrequencyMax(policy) = write.id else { return None };
            let min_now = machine.policy(policy)?.khz_min?;
            (khz(&write.value)? < min_now).then_some(policy)
        })
        .collect();
    if lowered.is_empty() {
        return;
    }
    writes.sort_by_key(|write| match write.id {
        SettingId::FrequencyMin(policy) if lowered.contains(&policy) => {
            (SettingId::FrequencyMax(0), 0, policy)
        }
        SettingId::FrequencyMax(policy) => (SettingId::FrequencyMax(0), 1, policy),
        id => (id, 2, 0),
    });
}
