//! Observed state of power management.

mod queries;

use suimon_contract::{
    ChangedPowerSetting, PowerConfig, PowerEnergyStatus, PowerSettingStatus, PowerZoneStatus,
};
use suimon_power::{
    Cpu, HostPowerSettings, PlanRequirement, RequiredSetting, Scope, SettingId, SettingKind,
    plan_requirements,
};

use super::settings_writer::external_change_text;
use super::spec::power_spec;
use super::table::Inner;

impl Inner {
    /// Reads the energy counters and updates the meter.
    fn read_energy(&mut self, now: suimon_quantity::Time) -> PowerEnergyStatus {
        let readings = self.settings_writer.host.energy();
        self.meter.observe(now, &readings);
        let zones: Vec<PowerZoneStatus> = self
            .meter
            .zones()
            .into_iter()
            .map(|zone| PowerZoneStatus {
                zone: zone.zone,
                name: zone.name,
                energy_uj: zone.energy_uj,
                milliwatts: zone.milliwatts,
                is_in_host_sum: zone.is_in_host_total,
            })
            .collect();
        let counted: Option<Vec<u64>> =
            zones.iter().filter(|zone| zone.is_in_host_sum).map(|zone| zone.milliwatts).collect();
        let milliwatts = counted.filter(|readings| !readings.is_empty());
        PowerEnergyStatus {
            milliwatts: milliwatts
                .map(|readings| readings.into_iter().fold(0, u64::saturating_add)),
            unavailable_reason: if readings.is_empty() {
                self.settings_writer.host.energy_unavailable_reason()
            } else {
                None
            },
            zones,
        }
    }

    /// Returns the status of each setting of a plan.
    pub(super) fn setting_statuses(
        &self,
        power: &PowerConfig,
        machine: &HostPowerSettings,
    ) -> Vec<PowerSettingStatus> {
        let targets = plan_requirements(&power_spec(power), machine);
        targets.iter().map(|target| self.setting_status(target, machine)).collect()
    }

    fn setting_status(
        &self,
        target: &PlanRequirement,
        machine: &HostPowerSettings,
    ) -> PowerSettingStatus {
        let mismatch = target.settings.iter().find(|setting| {
            let now = machine.value(setting.id);
            !self.settings_writer.is_in_effect(setting, now.as_ref())
        });
        let reason = match (&target.unavailable, mismatch) {
            (Some(reason), _) => Some(reason.to_string()),
            (None, Some(setting)) => Some(self.mismatch_reason(setting)),
            (None, None) => self.rounding(target, machine),
        };
        PowerSettingStatus {
            cpus: match &target.scope {
                Scope::Host => Vec::new(),
                Scope::Cpus(cpus) => cpus.clone(),
            },
            setting: target.kind.as_str().to_owned(),
            required: target.description.clone(),
            in_effect: target.unavailable.is_none() && mismatch.is_none(),
            current: current_value_text(target, machine),
            reason,
        }
    }

    fn mismatch_reason(&self, setting: &RequiredSetting) -> String {
        if let Some(reason) = self.settings_writer.refused.get(&setting.id) {
            return reason.clone();
        }
        if let Some(external_changes) = self.settings_writer.external_changes.get(&setting.id) {
            return format!(
                "changed by another program: {}",
                external_change_text(external_changes)
            );
        }
        "changed by another program; `suimon power set` sets it again".to_owned()
    }

    /// Returns a note if the driver has adjusted a frequency to another value than the plan's.
    fn rounding(&self, target: &PlanRequirement, machine: &HostPowerSettings) -> Option<String> {
        let setting = target.settings.first()?;
        let now = machine.value(setting.id)?;
        let is_other = now != setting.value;
        is_other.then(|| format!("{now} kHz is the nearest frequency that the driver supports"))
    }

    fn changed(&self, machine: &HostPowerSettings) -> Vec<ChangedPowerSetting> {
        let changed = self.settings_writer.records.iter().map(|(id, record)| ChangedPowerSetting {
            file: id.file(),
            original: record.original_value.clone(),
            written_by_daemon: record.written_value.clone(),
            current: machine.value(*id),
        });
        changed.collect()
    }
}

/// Returns the current value of a target as text; `None` if it cannot be read.
fn current_value_text(target: &PlanRequirement, machine: &HostPowerSettings) -> Option<String> {
    if let (SettingKind::IdleStates, Scope::Cpus(cpus)) = (target.kind, &target.scope) {
        let cpu = machine.cpus.iter().find(|cpu| cpus.contains(&cpu.number))?;
        let allowed = allowed_states(cpu);
        return (!cpu.idle_states.is_empty()).then(|| allowed.join(" "));
    }
    let id = target.settings.first()?.id;
    let value = machine.value(id)?;
    Some(match id {
        SettingId::FrequencyMax(_) | SettingId::FrequencyMin(_) => {
            let khz = value.parse::<u32>().unwrap_or_default();
            format!("{} MHz", khz / 1000)
        }
        SettingId::Turbo(suimon_power::TurboFile::NoTurbo) => on_off(value == "0"),
        SettingId::Turbo(_) | SettingId::Boost(_) => on_off(value == "1"),
        _ => value,
    })
}

fn on_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

fn allowed_states(cpu: &Cpu) -> Vec<String> {
    let allowed = cpu.idle_states.iter().filter(|state| !state.disabled);
    allowed.map(|state| state.name.clone()).collect()
}
