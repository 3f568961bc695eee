//! Observed state of the host's power.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::PowerConfig;

/// How much of what is wanted is so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PowerEffect {
    /// Nothing is wanted: the host's CPUs are left alone.
    #[default]
    Off,
    /// All of it.
    Full,
    /// Some of it; `settings` say what is not, and why.
    Partial,
    /// Nothing of what concerns CPUs; the data plane's share is in effect all the same.
    None,
}

impl PowerEffect {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// `GET /1.0/power`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerStatus {
    /// As desired; absent if nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PowerConfig>,
    /// How much of it is so, of CPUs.
    pub effect: PowerEffect,
    /// All that is wanted of CPUs, of the host and of each CPU.
    pub settings: Vec<PowerSettingStatus>,
    /// What is in effect in the data plane.
    pub data_plane: PowerDataPlaneStatus,
    /// All CPUs, by number.
    pub cpus: Vec<PowerCpuStatus>,
    /// All that was changed, with what comes back.
    pub changed: Vec<PowerChangedStatus>,
    /// Energy and power.
    pub energy: PowerEnergyStatus,
}

/// One thing that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerSettingStatus {
    /// Of which CPUs, ascending; of the host if empty.
    pub cpus: Vec<u16>,
    /// What it is about: `governor`, `energy_preference`, `performance_percent_min`,
    /// `performance_percent_max`, `turbo` or `idle_states`.
    pub setting: String,
    /// What is wanted, in words.
    pub wanted: String,
    /// Whether it is so.
    pub in_effect: bool,
    /// What its files say now; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// Why it is not so, or what else is to be known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// What the data plane does to use less, or to answer sooner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerDataPlaneStatus {
    /// Whether dynamic VMQ empties processors so that they park.
    pub parking: bool,
    /// How long a processor polls before it sleeps.
    pub poll_us: u32,
    /// High-water mark of dynamic VMQ in percent of a processor.
    pub vmq_high_percent: u8,
    /// Low-water mark of dynamic VMQ in percent of a processor.
    pub vmq_low_percent: u8,
}

/// What the kernel says of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerCpuStatus {
    /// Its number.
    pub cpu: u16,
    /// Whether it is online.
    pub online: bool,
    /// Its cpufreq driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Its energy-performance preference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_preference: Option<String>,
    /// Its lowest allowed frequency in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub khz_min: Option<u32>,
    /// Its highest allowed frequency in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub khz_max: Option<u32>,
    /// Idle states that it may enter, the shallowest first.
    pub idle_states: Vec<String>,
}

/// A setting that is not as the daemon found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerChangedStatus {
    /// Its file below sysfs.
    pub file: String,
    /// What it was, and will be again.
    pub before: String,
    /// What the daemon wrote.
    pub written: String,
    /// What it is now; absent if its file is not there, as while its CPU is offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// Energy and power of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerEnergyStatus {
    /// What packages and memory took of late, in milliwatts; absent where it is not known, or
    /// was asked for the first time for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliwatts: Option<u64>,
    /// Why energy is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<String>,
    /// The counters, by zone.
    pub zones: Vec<PowerZoneStatus>,
}

/// An energy counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerZoneStatus {
    /// Its folder in powercap, like `intel-rapl:0`.
    pub zone: String,
    /// Its name, like `package-0`.
    pub name: String,
    /// Microjoules since the daemon first read it, without those of spans in which nobody
    /// asked for so long that the counter may have begun anew twice.
    pub energy_uj: u64,
    /// What it took of late, in milliwatts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliwatts: Option<u64>,
    /// Whether it is a part of the host's sum: cores are in their package.
    pub counted: bool,
}

/// What `suimon top` shows of power.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopPower {
    /// The plan, if one is desired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// How much of it was so when it was last applied.
    pub effect: PowerEffect,
    /// Microjoules that packages and memory took since the daemon first read their counters;
    /// absent where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uj: Option<u64>,
    /// When they were read, on the clock of `time_monotonic_ns`.
    #[serde(default)]
    pub read_monotonic_ns: u64,
    /// Why energy is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<String>,
}
