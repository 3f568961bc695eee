//! Power plans and the operator's overrides.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Power plan, named as in Windows (`powercfg`: `SCHEME_BALANCED`, `SCHEME_MIN`, `SCHEME_MAX`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerPlan {
    /// Frequencies follow the load, without turbo.
    Balanced,
    /// Highest frequencies at all times, with turbo.
    HighPerformance,
    /// Frequencies follow the load with delay, without turbo.
    PowerSaver,
    /// No settings except the operator's overrides.
    Custom,
}

impl PowerPlan {
    /// Every plan, in the order of declaration.
    pub const ALL: [Self; 4] =
        [Self::Balanced, Self::HighPerformance, Self::PowerSaver, Self::Custom];

    /// Returns the name of the plan in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::HighPerformance => "high-performance",
            Self::PowerSaver => "power-saver",
            Self::Custom => "custom",
        }
    }
}

/// Power plan with the operator's overrides. `None` means the value of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerSpec {
    /// Plan that supplies the defaults.
    pub plan: PowerPlan,
    /// Name of a cpufreq governor.
    pub governor: Option<String>,
    /// Name of an energy-performance preference.
    pub energy_preference: Option<String>,
    /// Minimum frequency, in percent of the CPU's highest; 0 to 100.
    pub performance_percent_min: Option<u8>,
    /// Maximum frequency, in percent of the CPU's highest; 1 to 100.
    pub performance_percent_max: Option<u8>,
    /// True to permit frequencies above the nominal one, false to forbid them.
    pub turbo: Option<bool>,
    /// Name of the deepest permitted idle state.
    pub idle_state_max: Option<String>,
    /// Maximum exit latency of permitted idle states, in microseconds.
    pub idle_latency_us_max: Option<u32>,
    /// True to move queues away from under-used workers of the data plane, so that these workers
    /// park.
    pub parking: Option<bool>,
    /// Time in microseconds for which a worker polls before it sleeps.
    pub poll_us: Option<u32>,
    /// High water mark of VMQ in percent of a worker's time, 50 to 95.
    pub vmq_high_percent: Option<u8>,
    /// Low water mark of VMQ in percent of a worker's time, 0 to 65.
    pub vmq_low_percent: Option<u8>,
}

/// Settings of the data plane that a power plan determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPlaneSettings {
    /// True if under-used workers are emptied, so that they park.
    pub parking: bool,
    /// Time for which a worker polls before it sleeps.
    pub poll_budget: Duration,
    /// Load in percent of a worker's time above which a worker sheds queues.
    pub vmq_high_percent: u8,
    /// Load in percent of a worker's time up to which a worker is under-used.
    pub vmq_low_percent: u8,
}

/// Minimum difference of the water marks in percentage points: a worker that took over the queues
/// of others must stay below the high mark.
const MARKS_APART: u8 = 30;

impl DataPlaneSettings {
    /// Settings of the plans `Balanced` and `Custom`.
    pub const DEFAULT: Self = Self {
        parking: true,
        poll_budget: Duration::from_micros(50),
        vmq_high_percent: 85,
        vmq_low_percent: 30,
    };

    const fn for_plan(plan: PowerPlan) -> Self {
        match plan {
            PowerPlan::Balanced | PowerPlan::Custom => Self::DEFAULT,
            PowerPlan::HighPerformance => Self {
                parking: false,
                poll_budget: Duration::from_micros(200),
                vmq_high_percent: 70,
                ..Self::DEFAULT
            },
            PowerPlan::PowerSaver => Self {
                poll_budget: Duration::ZERO,
                vmq_high_percent: 90,
                vmq_low_percent: 40,
                ..Self::DEFAULT
            },
        }
    }
}

impl PowerSpec {
    /// Creates a specification of a plan without overrides.
    pub const fn new(plan: PowerPlan) -> Self {
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

    /// Returns the data-plane settings. Overrides take precedence over the plan; if the resulting
    /// water marks are too close, the one without an override is changed.
    pub fn data_plane(&self) -> DataPlaneSettings {
        let plan = DataPlaneSettings::for_plan(self.plan);
        let high = self.vmq_high_percent.unwrap_or(plan.vmq_high_percent);
        let low = self.vmq_low_percent.unwrap_or(plan.vmq_low_percent);
        let is_apart = high >= low.saturating_add(MARKS_APART);
        let (high, low) = match (is_apart, self.vmq_low_percent) {
            (true, _) => (high, low),
            (false, Some(low)) => (low.saturating_add(MARKS_APART).min(95), low),
            (false, None) => (high, high.saturating_sub(MARKS_APART)),
        };
        DataPlaneSettings {
            parking: self.parking.unwrap_or(plan.parking),
            poll_budget: self
                .poll_us
                .map_or(plan.poll_budget, |us| Duration::from_micros(u64::from(us))),
            vmq_high_percent: high,
            vmq_low_percent: low,
        }
    }

    /// Returns the suitable governors for a cpufreq driver in order of preference; empty if any is
    /// suitable. A driver that selects frequencies itself (`intel_pstate` in active mode,
    /// `amd-pstate-epp`) has two governors, which control how aggressively it does
    /// (Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst).
    pub(crate) fn governors(&self, driver: &str) -> Vec<&str> {
        if let Some(governor) = &self.governor {
            return vec![governor];
        }
        let chooses_itself = matches!(driver, "intel_pstate" | "amd-pstate-epp" | "amd_pstate_epp");
        match (self.plan, chooses_itself) {
            (PowerPlan::Custom, _) => Vec::new(),
            (PowerPlan::HighPerformance, _) => vec!["performance"],
            (PowerPlan::Balanced | PowerPlan::PowerSaver, true) => vec!["powersave"],
            (PowerPlan::Balanced, false) => vec!["schedutil", "ondemand", "conservative"],
            (PowerPlan::PowerSaver, false) => vec!["conservative", "schedutil", "ondemand"],
        }
    }

    pub(crate) fn preference(&self) -> Option<&str> {
        self.energy_preference.as_deref().or(match self.plan {
            PowerPlan::Balanced => Some("balance_performance"),
            PowerPlan::HighPerformance => Some("performance"),
            PowerPlan::PowerSaver => Some("power"),
            PowerPlan::Custom => None,
        })
    }

    /// Returns minimum and maximum frequency in percent of the CPU's highest. They are either both
    /// present or both `None`. With one override, the other limit is relaxed where it would
    /// conflict. If two overrides contradict each other, the maximum takes precedence.
    pub(crate) fn performance_percent_range(&self) -> (Option<u8>, Option<u8>) {
        let (min, max) = match self.plan {
            PowerPlan::Balanced | PowerPlan::PowerSaver => (Some(0), Some(100)),
            PowerPlan::HighPerformance => (Some(100), Some(100)),
            PowerPlan::Custom => (None, None),
        };
        match (self.performance_percent_min, self.performance_percent_max) {
            (None, None) => (min, max),
            (Some(requested), None) => (Some(requested), Some(max.unwrap_or(100).max(requested))),
            (None, Some(requested)) => (Some(min.unwrap_or(0).min(requested)), Some(requested)),
            (Some(requested_min), Some(requested_max)) => {
                (Some(requested_min.min(requested_max)), Some(requested_max))
            }
        }
    }

    pub(crate) fn turbo_required(&self) -> Option<bool> {
        self.turbo.or(match self.plan {
            PowerPlan::Balanced | PowerPlan::PowerSaver => Some(false),
            PowerPlan::HighPerformance => Some(true),
            PowerPlan::Custom => None,
        })
    }
}
