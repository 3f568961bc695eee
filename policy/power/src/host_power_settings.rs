//! Kernel settings of a host's CPUs with their current values, as read from sysfs.

use crate::{SettingId, TurboFile};

/// Turbo state of the whole host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turbo {
    /// File in sysfs that enables or disables turbo frequencies.
    pub file: TurboFile,
    /// True if frequencies above the nominal one are enabled.
    pub on: bool,
}

/// Frequency policy `cpufreq/policyN`: CPUs that share one frequency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrequencyPolicy {
    /// Number N of the policy.
    pub number: u16,
    /// Online CPUs of the policy, ascending.
    pub cpus: Vec<u16>,
    /// cpufreq driver, from `scaling_driver`.
    pub driver: String,
    /// Available governors, from `scaling_available_governors`.
    pub governors: Vec<String>,
    /// Current governor, from `scaling_governor`.
    pub governor: Option<String>,
    /// Available preferences, from `energy_performance_available_preferences`.
    pub preferences: Vec<String>,
    /// Current preference, from `energy_performance_preference`.
    pub preference: Option<String>,
    /// Lowest and highest possible frequency in kHz, from `cpuinfo_min_freq` and
    /// `cpuinfo_max_freq`.
    pub khz_range: Option<(u32, u32)>,
    /// Configured minimum frequency in kHz, from `scaling_min_freq`.
    pub khz_min: Option<u32>,
    /// Configured maximum frequency in kHz, from `scaling_max_freq`.
    pub khz_max: Option<u32>,
    /// Turbo state of this policy, from its file `boost`; `None` where the host has one file for
    /// all CPUs.
    pub boost: Option<bool>,
}

/// Idle state `cpuidle/stateN` of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleState {
    /// Number N of the state; higher numbers are deeper.
    pub number: u8,
    /// Name of the state, from `name`.
    pub name: String,
    /// Exit latency in microseconds, from `latency`.
    pub latency_us: u32,
    /// True if disabled by the user, from `disable`.
    pub disabled: bool,
}

/// Logical CPU with its idle states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Number of the logical CPU.
    pub number: u16,
    /// True if the CPU is online.
    pub online: bool,
    /// Idle states in ascending order of numbers.
    pub idle_states: Vec<IdleState>,
}

/// CPUs of the host with their power settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPowerSettings {
    /// CPUs in ascending order of numbers.
    pub cpus: Vec<Cpu>,
    /// Frequency policies in ascending order of numbers.
    pub policies: Vec<FrequencyPolicy>,
    /// Turbo state of the whole host; `None` if there is no file for all CPUs.
    pub turbo: Option<Turbo>,
}

impl HostPowerSettings {
    /// Returns the current value of a setting as its file contains it; `None` if the file does not
    /// exist.
    pub fn value(&self, id: SettingId) -> Option<String> {
        let flag = |enabled: bool| u8::from(enabled).to_string();
        match id {
            SettingId::Turbo(file) => {
                let turbo = self.turbo.filter(|turbo| turbo.file == file)?;
                Some(flag((file == TurboFile::Boost) == turbo.on))
            }
            SettingId::Boost(policy) => self.policy(policy)?.boost.map(flag),
            SettingId::Governor(policy) => self.policy(policy)?.governor.clone(),
            SettingId::Preference(policy) => self.policy(policy)?.preference.clone(),
            SettingId::FrequencyMax(policy) => {
                self.policy(policy)?.khz_max.map(|khz| khz.to_string())
            }
            SettingId::FrequencyMin(policy) => {
                self.policy(policy)?.khz_min.map(|khz| khz.to_string())
            }
            SettingId::IdleStateDisable { cpu, state } => {
                let cpu = self
                    .cpus
                    .iter()
                    .find(|candidate| candidate.number == cpu && candidate.online)?;
                let state = cpu.idle_states.iter().find(|candidate| candidate.number == state)?;
                Some(flag(state.disabled))
            }
        }
    }

    /// Returns the frequency policy with this number, or `None`.
    pub fn policy(&self, number: u16) -> Option<&FrequencyPolicy> {
        self.policies.iter().find(|policy| policy.number == number)
    }

    /// Returns the numbers of the online CPUs in ascending order.
    pub fn online(&self) -> Vec<u16> {
        self.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.number).collect()
    }
}
