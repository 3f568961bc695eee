//! Desired state of the host's power management: a plan and deviations from it.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Name;

/// Power plan, with the names used by Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PowerPlanName {
    /// Frequencies follow the load, without turbo.
    Balanced,
    /// Highest frequencies with turbo. Workers poll longer and do not park.
    HighPerformance,
    /// Frequencies follow the load with a preference for low ones, without turbo. Workers do not
    /// poll.
    PowerSaver,
    /// Only the values given beside the plan.
    Custom,
}

impl PowerPlanName {
    /// Returns the name as written in the configuration.
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

/// Preference of a CPU that selects its frequency autonomously (`energy_performance_preference` of
/// Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergyPreference {
    /// Preference for performance, regardless of energy.
    Performance,
    /// Preference for performance over energy.
    BalancePerformance,
    /// Preference for energy over performance.
    BalancePower,
    /// Preference for energy, regardless of performance.
    Power,
}

impl EnergyPreference {
    /// Returns the name as written in the configuration and by Linux.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::BalancePerformance => "balance_performance",
            Self::BalancePower => "balance_power",
            Self::Power => "power",
        }
    }
}

/// `[power]`: power management of the host's CPUs, which are unchanged without this table. A key
/// given here takes precedence over the plan. The daemon restores changed settings when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerConfig {
    /// Power plan: `balanced`, `high-performance`, `power-saver`, or `custom`. An absent key has
    /// the value of the plan. The plan `custom` leaves CPU settings without a key unchanged; keys
    /// of workers and VMQ then have the values of `balanced`.
    pub plan: PowerPlanName,
    /// Name of the cpufreq governor, such as `schedutil`; the value of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<Name>,
    /// Energy-performance preference of CPUs that select their frequency themselves; the value of
    /// the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_preference: Option<EnergyPreference>,
    /// Lowest frequency in percent of the highest frequency of the CPU; the value of the plan if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_percent_min: Option<u8>,
    /// Highest permitted frequency in percent of the highest frequency of the CPU; the value of the
    /// plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_percent_max: Option<u8>,
    /// True if frequencies above the nominal one are permitted; the value of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// Name of the deepest idle state that CPUs may enter, such as `C1E`; no limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_state_max: Option<String>,
    /// Longest exit latency in microseconds of the idle states that CPUs may enter; no limit if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_latency_us_max: Option<u32>,
    /// True if dynamic VMQ moves all queues away from lightly loaded workers, so that these sleep
    /// (park); the value of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "parking")]
    pub parks_workers: Option<bool>,
    /// Poll budget in microseconds: time for which a worker polls its queues after the last frame
    /// or request before it sleeps. While requests are in flight at devices that complete them
    /// within four times this time, the worker polls for longer, up to four times this time. The
    /// value of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "poll_us")]
    pub poll_budget_us: Option<u32>,
    /// High mark of dynamic VMQ: load in percent of a worker's time above which VMQ moves queues
    /// away from the worker. The value of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmq_high_percent: Option<u8>,
    /// Low mark of dynamic VMQ: load in percent of a worker's time at or below which VMQ, with
    /// `parking`, may move all queues away from the worker. At least 30 less than
    /// `vmq_high_percent`. The value of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmq_low_percent: Option<u8>,
}

impl PowerConfig {
    /// Returns a plan without deviations.
    pub const fn from_plan(plan: PowerPlanName) -> Self {
        Self {
            plan,
            governor: None,
            energy_preference: None,
            performance_percent_min: None,
            performance_percent_max: None,
            turbo: None,
            idle_state_max: None,
            idle_latency_us_max: None,
            parks_workers: None,
            poll_budget_us: None,
            vmq_high_percent: None,
            vmq_low_percent: None,
        }
    }
}
