//! Identifiers of kernel power settings and their sysfs files.

use core::fmt;

use serde::{Deserialize, Serialize};

/// File that switches turbo on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TurboFile {
    /// `intel_pstate/no_turbo`, in which 1 means off.
    NoTurbo,
    /// `cpufreq/boost`, in which 1 means on.
    Boost,
}

/// Kernel power setting, which corresponds to one sysfs file. Ordered as settings are written:
/// turbo determines the available frequencies, and a governor the available preferences. Numbers
/// are those of frequency policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingId {
    /// Turbo of the whole host.
    Turbo(TurboFile),
    /// Turbo of one frequency policy.
    Boost(u16),
    /// Governor of a frequency policy.
    Governor(u16),
    /// Energy-performance preference of a frequency policy.
    Preference(u16),
    /// Maximum frequency of a frequency policy, in kHz.
    FrequencyMax(u16),
    /// Minimum frequency of a frequency policy, in kHz.
    FrequencyMin(u16),
    /// Disable flag of an idle state of a CPU.
    IdleStateDisable {
        /// Number of the logical CPU.
        cpu: u16,
        /// Number of the idle state.
        state: u8,
    },
}

/// Kind of a setting, as shown to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// cpufreq governor of a frequency policy.
    Governor,
    /// Energy-performance preference of a frequency policy.
    EnergyPreference,
    /// Minimum frequency in percent of the CPU's highest.
    PerformancePercentMin,
    /// Maximum frequency in percent of the CPU's highest.
    PerformancePercentMax,
    /// Use of frequencies above the nominal one.
    Turbo,
    /// Set of permitted idle states.
    IdleStates,
}

impl SettingKind {
    /// Returns the name of the kind: the corresponding key of the host file, except for idle
    /// states, which have two keys.
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
    /// Returns the path of the setting's file below the root of sysfs
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
            Self::IdleStateDisable { cpu, state } => {
                format!("{CPUS}cpu{cpu}/cpuidle/state{state}/disable")
            }
        }
    }

    /// Returns the setting whose file is `file`, a path below the root of sysfs; `None` if no
    /// setting has this file.
    pub fn from_file(file: &str) -> Option<Self> {
        let setting = Self::read(file.strip_prefix(CPUS)?)?;
        // Rejects numbers with leading zeros such as `007`, because such a file would be another
        // one.
        (setting.file() == file).then_some(setting)
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
                Some(Self::IdleStateDisable { cpu: cpu.parse().ok()?, state: state.parse().ok()? })
            }
        }
    }

    /// Returns the kind of the setting, as shown to users.
    pub const fn kind(self) -> SettingKind {
        match self {
            Self::Turbo(_) | Self::Boost(_) => SettingKind::Turbo,
            Self::Governor(_) => SettingKind::Governor,
            Self::Preference(_) => SettingKind::EnergyPreference,
            Self::FrequencyMax(_) => SettingKind::PerformancePercentMax,
            Self::FrequencyMin(_) => SettingKind::PerformancePercentMin,
            Self::IdleStateDisable { .. } => SettingKind::IdleStates,
        }
    }

    /// Returns true if the driver may round a written value to the nearest one that it supports.
    pub(crate) const fn may_be_rounded(self) -> bool {
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
    fn only_setting_files_parse_as_settings() {
        let ids = [
            SettingId::Turbo(TurboFile::NoTurbo),
            SettingId::Turbo(TurboFile::Boost),
            SettingId::Boost(3),
            SettingId::Governor(0),
            SettingId::Preference(65_535),
            SettingId::FrequencyMax(1),
            SettingId::FrequencyMin(2),
            SettingId::IdleStateDisable { cpu: 12, state: 255 },
        ];
        for id in ids {
            assert_eq!(SettingId::from_file(&id.file()), Some(id), "{id}");
        }
        for invalid in [
            "",
            "/etc/passwd",
            "devices/system/cpu/cpufreq/policy007/boost",
            "devices/system/cpu/cpufreq/policy+7/boost",
            "devices/system/cpu/cpufreq/policy65536/boost",
            "devices/system/cpu/cpufreq/policy0/../boost",
            "devices/system/cpu/cpu0/cpuidle/state0/disable/x",
            "devices/system/cpu/cpu0/online",
        ] {
            assert_eq!(SettingId::from_file(invalid), None, "{invalid}");
        }
    }
}
