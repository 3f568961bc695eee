//! Desired state of the host's power: a plan, and what is to be otherwise.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Name;

/// A power plan; the names are those of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PowerPlanName {
    /// Clocks follow the load, without turbo.
    Balanced,
    /// The highest clocks, with turbo; the data plane polls longer and does not park.
    HighPerformance,
    /// Clocks follow the load reluctantly, without turbo; the data plane does not poll.
    PowerSaver,
    /// Only what is written beside it.
    Custom,
}

impl PowerPlanName {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::HighPerformance => "high-performance",
            Self::PowerSaver => "power-saver",
            Self::Custom => "custom",
        }
    }
}

impl fmt::Display for PowerPlanName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a CPU that chooses its frequency itself is told to prefer
/// (`energy_performance_preference` of Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergyPreference {
    /// Performance, whatever it takes.
    Performance,
    /// Rather performance.
    BalancePerformance,
    /// Rather energy.
    BalancePower,
    /// Energy, whatever it costs.
    Power,
}

impl EnergyPreference {
    /// As it is written, by Linux, too.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::BalancePerformance => "balance_performance",
            Self::BalancePower => "balance_power",
            Self::Power => "power",
        }
    }
}

/// `[power]`: what becomes of the host's CPUs. Without it they are left alone. A key that is
/// written wins over the plan. What the daemon changes it puts back when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerConfig {
    /// The plan; `custom` asks for nothing but what is written beside it.
    pub plan: PowerPlanName,
    /// cpufreq governor by its name, such as `schedutil`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<Name>,
    /// What a CPU that chooses its frequency itself is told to prefer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_preference: Option<EnergyPreference>,
    /// Lowest frequency, in percent of the highest that the CPU has, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_percent_min: Option<u8>,
    /// Highest frequency, in percent of the highest that the CPU has, 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_percent_max: Option<u8>,
    /// Whether frequencies above the nominal one may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// Name of the deepest idle state that CPUs may enter, such as `C1E`; no plan limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_state_max: Option<String>,
    /// Longest time in microseconds that leaving an idle state may take, 0 to 1 000 000; CPUs
    /// enter no other. No plan limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_latency_us_max: Option<u32>,
    /// Whether dynamic VMQ empties processors with little to do, so that they park.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parking: Option<bool>,
    /// How long in microseconds a processor polls rings after the last frame or request before it
    /// sleeps, 0 to 10 000; up to four times as long for answers of devices that come so soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_us: Option<u32>,
    /// High-water mark of dynamic VMQ, in percent of a processor, 50 to 95: a processor above
    /// it gives queues away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmq_high_percent: Option<u8>,
    /// Low-water mark of dynamic VMQ, in percent of a processor, 0 to 65, and 30 below the high
    /// one at the least: a processor whose queues take no more can be emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmq_low_percent: Option<u8>,
}

impl PowerConfig {
    /// A plan as it is.
    pub const fn of(plan: PowerPlanName) -> Self {
        Self {
            plan,
            governor: None,
            energy_preference: None,
            performance_percent_min: None,
            performance_percent_max: None,
            turbo: None,
            idle_state_max: None,
            idle_latency_us_max: None,
            parking: None,
            poll_us: None,
            vmq_high_percent: None,
            vmq_low_percent: None,
        }
    }
}
