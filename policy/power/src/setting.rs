//! Settings, and the files that they are in.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::TurboFile;

/// One setting, which is one file. In the order in which settings are written: what turbo
/// may do decides which frequencies there are, and a governor which preferences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingId {
    /// Turbo of the host.
    Turbo(TurboFile),
    /// Turbo of one frequency policy.
    Boost(u16),
    /// Governor of a frequency policy.
    Governor(u16),
    /// Energy-performance preference of a frequency policy.
    Preference(u16),
    /// Highest frequency of a frequency policy, in kHz.
    FrequencyMax(u16),
    /// Lowest frequency of a frequency policy, in kHz.
    FrequencyMin(u16),
    /// Whether an idle state of a CPU is forbidden.
    Idle {
        /// The CPU.
        cpu: u16,
        /// Number of the state.
        state: u8,
    },
}

/// What a setting is about, as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// The cpufreq governor.
    Governor,
    /// The energy-performance preference.
    EnergyPreference,
    /// The lowest frequency.
    PerformancePercentMin,
    /// The highest frequency.
    PerformancePercentMax,
    /// Turbo.
    Turbo,
    /// Which idle states may be entered.
    IdleStates,
}

impl SettingKind {
    /// As it is written: the key of the host file that it follows from, but for idle
    /// states, which have two.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Governor => "governor",
            Self::EnergyPreference => "energy_preference",
            Self::PerformancePercentMin => "performance_percent_min",
            Self::PerformancePercentMax => "performance_percent_max",
            Self::Turbo => "turbo",
            Self::IdleStates => "idle_states",
        }
    }
}

const CPUS: &str = "devices/system/cpu/";

impl SettingId {
    /// The setting's file below the root of sysfs
    /// (Documentation/admin-guide/pm/cpufreq.rst and cpuidle.rst).
    pub fn file(self) -> String {
        let of_policy = |policy: u16, file: &str| format!("{CPUS}cpufreq/policy{policy}/{file}");
        match self {
            Self::Turbo(TurboFile::NoTurbo) => format!("{CPUS}intel_pstate/no_turbo"),
            Self::Turbo(TurboFile::Boost) => format!("{CPUS}cpufreq/boost"),
            Self::Boost(policy) => of_policy(policy, "boost"),
            Self::Governor(policy) => of_policy(policy, "scaling_governor"),
            Self::Preference(policy) => of_policy(policy, "energy_performance_preference"),
            Self::FrequencyMax(policy) => of_policy(policy, "scaling_max_freq"),
            Self::FrequencyMin(policy) => of_policy(policy, "scaling_min_freq"),
            Self::Idle { cpu, state } => format!("{CPUS}cpu{cpu}/cpuidle/state{state}/disable"),
        }
    }

    /// The setting of this file; `None` if it is the file of no setting.
    pub fn from_file(file: &str) -> Option<Self> {
        let found = Self::read(file.strip_prefix(CPUS)?)?;
        // A number like `007` would lead to another file.
        (found.file() == file).then_some(found)
    }

    fn read(file: &str) -> Option<Self> {
        if let Some(rest) = file.strip_prefix("cpufreq/policy") {
            let (policy, file) = rest.split_once('/')?;
            let policy = policy.parse().ok()?;
            return match file {
                "boost" => Some(Self::Boost(policy)),
                "scaling_governor" => Some(Self::Governor(policy)),
                "energy_performance_preference" => Some(Self::Preference(policy)),
                "scaling_max_freq" => Some(Self::FrequencyMax(policy)),
                "scaling_min_freq" => Some(Self::FrequencyMin(policy)),
                _ => None,
            };
        }
        match file {
            "intel_pstate/no_turbo" => Some(Self::Turbo(TurboFile::NoTurbo)),
            "cpufreq/boost" => Some(Self::Turbo(TurboFile::Boost)),
            _ => {
                let (cpu, rest) = file.strip_prefix("cpu")?.split_once("/cpuidle/state")?;
                let state = rest.strip_suffix("/disable")?;
                Some(Self::Idle { cpu: cpu.parse().ok()?, state: state.parse().ok()? })
            }
        }
    }

    /// What it is about.
    pub const fn kind(self) -> SettingKind {
        match self {
            Self::Turbo(_) | Self::Boost(_) => SettingKind::Turbo,
            Self::Governor(_) => SettingKind::Governor,
            Self::Preference(_) => SettingKind::EnergyPreference,
            Self::FrequencyMax(_) => SettingKind::PerformancePercentMax,
            Self::FrequencyMin(_) => SettingKind::PerformancePercentMin,
            Self::Idle { .. } => SettingKind::IdleStates,
        }
    }

    /// Whether a driver may make another value of what is written: the nearest that it has.
    pub(crate) const fn is_rounded(self) -> bool {
        matches!(self, Self::FrequencyMax(_) | Self::FrequencyMin(_))
    }
}

impl fmt::Display for SettingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lead_back_to_settings_and_nothing_else_does() {
        let all = [
            SettingId::Turbo(TurboFile::NoTurbo),
            SettingId::Turbo(TurboFile::Boost),
            SettingId::Boost(3),
            SettingId::Governor(0),
            SettingId::Preference(65_535),
            SettingId::FrequencyMax(1),
            SettingId::FrequencyMin(2),
            SettingId::Idle { cpu: 12, state: 255 },
        ];
        for id in all {
            assert_eq!(SettingId::from_file(&id.file()), Some(id), "{id}");
        }
        for wrong in [
            "",
            "/etc/passwd",
            "devices/system/cpu/cpufreq/policy007/boost",
            "devices/system/cpu/cpufreq/policy+7/boost",
            "devices/system/cpu/cpufreq/policy65536/boost",
            "devices/system/cpu/cpufreq/policy0/../boost",
            "devices/system/cpu/cpu0/cpuidle/state0/disable/x",
            "devices/system/cpu/cpu0/online",
        ] {
            assert_eq!(SettingId::from_file(wrong), None, "{wrong}");
        }
    }
}
