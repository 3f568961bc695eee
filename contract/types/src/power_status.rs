//! Observed state of the host's power management.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::PowerConfig;

/// Extent to which the desired CPU settings are in effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PowerEffect {
    /// No power plan is configured: CPU settings are unchanged.
    #[default]
    Off,
    /// Every setting is in effect.
    Full,
    /// Some settings are in effect; `settings` names the others with the reason.
    Partial,
    /// No CPU setting is in effect. The settings of the data plane are in effect nevertheless.
    None,
}

impl PowerEffect {
    /// Returns the name as serialized by the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// Response of `GET /1.0/power`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerStatus {
    /// Desired state; absent if none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PowerConfig>,
    /// Extent to which the CPU settings are in effect.
    pub effect: PowerEffect,
    /// Desired settings of the host and of each CPU.
    pub settings: Vec<PowerSettingStatus>,
    /// Settings in effect in the data plane.
    pub data_plane: PowerDataPlaneStatus,
    /// CPUs of the host, by number.
    pub cpus: Vec<PowerCpuStatus>,
    /// Settings changed by the daemon, with the values that it will restore.
    #[serde(rename = "changed")]
    pub changed_settings: Vec<ChangedPowerSetting>,
    /// Energy counters and power of the host.
    pub energy: PowerEnergyStatus,
}

/// Desired setting and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerSettingStatus {
    /// CPUs concerned, ascending; empty for a setting of the host.
    pub cpus: Vec<u16>,
    /// Setting: `governor`, `energy_preference`, `performance_percent_min`,
    /// `performance_percent_max`, `turbo` or `idle_states`.
    pub setting: String,
    /// Desired value of the setting.
    pub required: String,
    /// True if the desired value is in effect.
    pub in_effect: bool,
    /// Current value read from sysfs; absent if the files do not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "now")]
    pub current: Option<String>,
    /// Reason why the value is not in effect, or a remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Settings of the data plane that trade power for latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerDataPlaneStatus {
    /// True if dynamic VMQ moves queues away from lightly loaded workers, so that these park.
    #[serde(rename = "parking")]
    pub parks_workers: bool,
    /// Poll budget of a worker in microseconds.
    #[serde(rename = "poll_us")]
    pub poll_budget_us: u32,
    /// High mark of dynamic VMQ in percent of a worker's time.
    pub vmq_high_percent: u8,
    /// Low mark of dynamic VMQ in percent of a worker's time.
    pub vmq_low_percent: u8,
}

/// Power management state of one CPU, as reported by the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerCpuStatus {
    /// Number of the logical CPU.
    pub cpu: u16,
    /// True if the CPU is online.
    pub online: bool,
    /// cpufreq driver of the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// cpufreq governor of the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Energy-performance preference of the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_preference: Option<String>,
    /// Lowest permitted frequency in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub khz_min: Option<u32>,
    /// Highest permitted frequency in kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub khz_max: Option<u32>,
    /// Permitted idle states, shallowest first.
    pub idle_states: Vec<String>,
}

/// Setting changed by the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "PowerChangedStatus")]
#[schema(as = PowerChangedStatus)]
pub struct ChangedPowerSetting {
    /// Path of the setting's file in sysfs.
    pub file: String,
    /// Original value, which the daemon restores.
    #[serde(rename = "before")]
    pub original: String,
    /// Value written by the daemon.
    #[serde(rename = "written")]
    pub written_by_daemon: String,
    /// Current value; absent if the file does not exist, for example while the CPU is offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "now")]
    pub current: Option<String>,
}

/// Energy and power of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerEnergyStatus {
    /// Recent power of packages and memory in milliwatts; absent if unknown, and for the first
    /// request after a long time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliwatts: Option<u64>,
    /// Reason why energy is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_reason: Option<String>,
    /// Energy counters of powercap, by zone.
    pub zones: Vec<PowerZoneStatus>,
}

/// Energy counter of powercap (zone).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerZoneStatus {
    /// Folder in powercap, such as `intel-rapl:0`.
    pub zone: String,
    /// Name of the zone, such as `package-0`.
    pub name: String,
    /// Energy in microjoules since the daemon first read the counter. Intervals without a reading
    /// are omitted if the counter may have wrapped more than once in them.
    pub energy_uj: u64,
    /// Recent power of the zone in milliwatts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliwatts: Option<u64>,
    /// True if the zone is part of the host's sum. Zones of cores are not, since their package
    /// contains them.
    #[serde(rename = "counted")]
    pub is_in_host_sum: bool,
}

/// Power values of `suimon top`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopPower {
    /// Power plan; absent if none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Extent to which the CPU settings were in effect when last applied.
    pub effect: PowerEffect,
    /// Energy of packages and memory in microjoules since the daemon first read their counters;
    /// absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uj: Option<u64>,
    /// Time of the reading, on the clock of `time_monotonic_ns`.
    #[serde(default)]
    pub read_monotonic_ns: u64,
    /// Reason why energy is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_reason: Option<String>,
}
