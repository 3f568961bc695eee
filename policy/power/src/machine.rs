//! What the kernel offers, and how it stands.

use serde::{Deserialize, Serialize};

use crate::SettingId;

/// The file by which turbo is turned on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TurboFile {
    /// `intel_pstate/no_turbo`, in which 1 means off.
    NoTurbo,
    /// `cpufreq/boost`, in which 1 means on.
    Boost,
}

/// Turbo of the whole host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turbo {
    /// Where it is switched.
    pub file: TurboFile,
    /// Whether it is on.
    pub on: bool,
}

/// CPUs that have one frequency, `cpufreq/policyN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrequencyPolicy {
    /// Its number.
    pub number: u16,
    /// Its CPUs that are online, ascending.
    pub cpus: Vec<u16>,
    /// `scaling_driver`.
    pub driver: String,
    /// `scaling_available_governors`.
    pub governors: Vec<String>,
    /// `scaling_governor`.
    pub governor: Option<String>,
    /// `energy_performance_available_preferences`.
    pub preferences: Vec<String>,
    /// `energy_performance_preference`.
    pub preference: Option<String>,
    /// `cpuinfo_min_freq` and `cpuinfo_max_freq` in kHz.
    pub khz_range: Option<(u32, u32)>,
    /// `scaling_min_freq` in kHz.
    pub khz_min: Option<u32>,
    /// `scaling_max_freq` in kHz.
    pub khz_max: Option<u32>,
    /// `boost` of this policy alone, where the host has no file for all.
    pub boost: Option<bool>,
}

/// One idle state, `cpuidle/stateN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleState {
    /// Its number; deeper ones have higher numbers.
    pub number: u8,
    /// `name`.
    pub name: String,
    /// `latency` in microseconds.
    pub latency_us: u32,
    /// `disable`, as the user has it.
    pub disabled: bool,
}

/// One logical CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: u16,
    /// Whether it is online.
    pub online: bool,
    /// Its idle states by number.
    pub idle_states: Vec<IdleState>,
}

/// The host's CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// All CPUs by number.
    pub cpus: Vec<Cpu>,
    /// All frequency policies by number.
    pub policies: Vec<FrequencyPolicy>,
    /// Turbo of the whole host, where one file has it.
    pub turbo: Option<Turbo>,
}

impl Machine {
    /// The value that a setting's file has; `None` if it has none now.
    pub fn value(&self, id: SettingId) -> Option<String> {
        let flag = |on: bool| u8::from(on).to_string();
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
            SettingId::Idle { cpu, state } => {
                let cpu = self.cpus.iter().find(|of| of.number == cpu && of.online)?;
                let state = cpu.idle_states.iter().find(|of| of.number == state)?;
                Some(flag(state.disabled))
            }
        }
    }

    /// The frequency policy of this number.
    pub fn policy(&self, number: u16) -> Option<&FrequencyPolicy> {
        self.policies.iter().find(|policy| policy.number == number)
    }

    /// CPUs that are online, ascending.
    pub fn online(&self) -> Vec<u16> {
        self.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.number).collect()
    }
}
