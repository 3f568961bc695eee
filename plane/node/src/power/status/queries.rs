//! Queries of the status.

use suimon_contract::{PowerCpuStatus, PowerEffect, PowerStatus, TopPower};
use suimon_power::{Cpu, HostPowerSettings};

use super::allowed_states;
use crate::power::effect::overall_effect;
use crate::power::spec::{data_plane, data_plane_status};
use crate::shared::Shared;

impl Shared {
    /// Returns the status of the plan, the CPUs and the energy counters, read now.
    pub(crate) fn power_status(&self) -> PowerStatus {
        let config = self.desired().config.power.clone();
        let mut inner = self.power.lock();
        let machine = inner.settings_writer.host.settings();
        let settings = config.as_ref().map(|power| inner.setting_statuses(power, &machine));
        let settings = settings.unwrap_or_default();
        PowerStatus {
            effect: if config.is_some() { overall_effect(&settings) } else { PowerEffect::Off },
            data_plane: data_plane_status(data_plane(config.as_ref())),
            settings,
            cpus: machine.cpus.iter().map(|cpu| cpu_status(cpu, &machine)).collect(),
            changed_settings: inner.changed(&machine),
            energy: inner.read_energy(self.plane.now()),
            config,
        }
    }

    /// Returns the values for `suimon top`: plan, effect and energy.
    pub(crate) fn top_power(&self) -> TopPower {
        let plan = self.desired().config.power.as_ref().map(|power| power.plan.to_string());
        let mut inner = self.power.lock();
        let energy = inner.read_energy(self.plane.now());
        let counted = energy.zones.iter().filter(|zone| zone.is_in_host_sum);
        let sum = counted.fold(0_u64, |sum, zone| sum.saturating_add(zone.energy_uj));
        TopPower {
            plan,
            effect: inner.effect,
            energy_uj: energy.unavailable_reason.is_none().then_some(sum),
            read_monotonic_ns: inner.meter.read_at().map_or(0, suimon_quantity::Time::as_ns),
            unavailable_reason: energy.unavailable_reason,
        }
    }
}

fn cpu_status(cpu: &Cpu, machine: &HostPowerSettings) -> PowerCpuStatus {
    let policy = machine.policies.iter().find(|policy| policy.cpus.contains(&cpu.number));
    PowerCpuStatus {
        cpu: cpu.number,
        online: cpu.online,
        driver: policy.map(|policy| policy.driver.clone()),
        governor: policy.and_then(|policy| policy.governor.clone()),
        energy_preference: policy.and_then(|policy| policy.preference.clone()),
        khz_min: policy.and_then(|policy| policy.khz_min),
        khz_max: policy.and_then(|policy| policy.khz_max),
        idle_states: allowed_states(cpu),
    }
}
