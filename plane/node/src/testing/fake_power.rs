//! Simulated CPUs: frequencies, idle states and energy counters as values.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use suimon_ports::{PowerError, PowerHost};
use suimon_power::{
    Cpu, FrequencyPolicy, HostPowerSettings, IdleState, SettingId, Turbo, TurboFile, ZoneReading,
};

#[derive(Default)]
pub(crate) struct PowerWorld {
    pub(crate) machine: HostPowerSettings,
    /// Settings that the driver rejects.
    pub(crate) refuses: BTreeSet<SettingId>,
    /// All writes, in order.
    pub(crate) writes: Vec<(SettingId, String)>,
    pub(crate) zones: Vec<ZoneReading>,
}

#[derive(Clone, Default)]
pub(crate) struct FakePower(Arc<Mutex<PowerWorld>>);

impl FakePower {
    /// Returns two CPUs with ACPI idle states and default settings.
    pub(crate) fn with_two_cpus() -> Self {
        let cpu = |number| Cpu {
            number,
            online: true,
            idle_states: [("POLL", 0), ("C1", 1), ("C6", 130)]
                .into_iter()
                .zip(0..)
                .map(|((name, latency_us), number)| IdleState {
                    number,
                    name: name.to_owned(),
                    latency_us,
                    disabled: false,
                })
                .collect(),
        };
        let words_of = |text: &str| text.split(' ').map(str::to_owned).collect();
        let policy = |number| FrequencyPolicy {
            number,
            cpus: vec![number],
            driver: "acpi-cpufreq".to_owned(),
            governors: words_of("conservative ondemand performance schedutil"),
            governor: Some("ondemand".to_owned()),
            khz_range: Some((1_500_000, 3_400_000)),
            khz_min: Some(2_200_000),
            khz_max: Some(3_400_000),
            ..FrequencyPolicy::default()
        };
        let power = Self::default();
        power.lock().machine = HostPowerSettings {
            cpus: vec![cpu(0), cpu(1)],
            policies: vec![policy(0), policy(1)],
            turbo: Some(Turbo { file: TurboFile::Boost, on: true }),
        };
        power
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PowerWorld> {
        self.0.lock().unwrap()
    }

    pub(crate) fn machine(&self) -> HostPowerSettings {
        self.lock().machine.clone()
    }

    /// Sets a CPU offline, or online with its driver's initial governor `schedutil`.
    pub(crate) fn set_online(&self, number: u16, online: bool) {
        let mut world = self.lock();
        let cpu = world.machine.cpus.iter_mut().find(|cpu| cpu.number == number).unwrap();
        cpu.online = online;
        if online {
            let mut policy_state =
                Self::with_two_cpus().machine().policies.remove(usize::from(number));
            policy_state.governor = Some("schedutil".to_owned());
            world.machine.policies.insert(usize::from(number), policy_state);
        } else {
            world.machine.policies.retain(|policy| policy.number != number);
        }
    }
}

impl PowerWorld {
    fn set(&mut self, id: SettingId, value: &str) {
        let machine = &mut self.machine;
        match id {
            SettingId::Turbo(file) => {
                let is_on = (value == "1") == (file == TurboFile::Boost);
                machine.turbo = Some(Turbo { file, on: is_on });
            }
            SettingId::Boost(cpu_number) => policy(machine, cpu_number).boost = Some(value == "1"),
            SettingId::Governor(cpu_number) => {
                policy(machine, cpu_number).governor = Some(value.to_owned());
            }
            SettingId::Preference(cpu_number) => {
                policy(machine, cpu_number).preference = Some(value.to_owned());
            }
            SettingId::FrequencyMax(cpu_number) => {
                policy(machine, cpu_number).khz_max = Some(nearest(value));
            }
            SettingId::FrequencyMin(cpu_number) => {
                policy(machine, cpu_number).khz_min = Some(nearest(value));
            }
            SettingId::IdleStateDisable { cpu, state } => {
                let cpu =
                    machine.cpus.iter_mut().find(|cpu_entry| cpu_entry.number == cpu).unwrap();
                let state = cpu
                    .idle_states
                    .iter_mut()
                    .find(|idle_state| idle_state.number == state)
                    .unwrap();
                state.disabled = value == "1";
            }
        }
    }
}

fn policy(machine: &mut HostPowerSettings, number: u16) -> &mut FrequencyPolicy {
    machine.policies.iter_mut().find(|policy| policy.number == number).unwrap()
}

/// Returns the nearest of the driver's three frequencies, in kHz.
fn nearest(value: &str) -> u32 {
    let khz: u32 = value.parse().unwrap();
    [1_500_000, 2_200_000, 3_400_000]
        .into_iter()
        .min_by_key(|candidate| khz.abs_diff(*candidate))
        .unwrap()
}

impl PowerHost for FakePower {
    fn settings(&self) -> HostPowerSettings {
        Self::machine(self)
    }

    fn online_cpus(&self) -> String {
        format!("{:?}", self.lock().machine.online())
    }

    fn write_setting(&self, id: SettingId, value: &str) -> Result<(), PowerError> {
        let mut world = self.lock();
        if world.refuses.contains(&id) {
            let (value, detail) = (value.to_owned(), "Device or resource busy".to_owned());
            return Err(PowerError::Refused { file: id.file(), value, detail });
        }
        if world.machine.value(id).is_none() {
            return Err(PowerError::Missing { file: id.file() });
        }
        world.writes.push((id, value.to_owned()));
        world.set(id, value);
        Ok(())
    }

    fn energy(&self) -> Vec<ZoneReading> {
        self.lock().zones.clone()
    }

    fn energy_unavailable_reason(&self) -> Option<String> {
        self.lock().zones.is_empty().then(|| "there are no counters".to_owned())
    }
}
