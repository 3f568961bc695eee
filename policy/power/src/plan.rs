//! Plans, and what a user may ask for beside them.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A power plan. The names are those of Windows (`powercfg`: `SCHEME_BALANCED`,
/// `SCHEME_MIN`, `SCHEME_MAX`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerPlan {
    /// Clocks follow the load, without turbo.
    Balanced,
    /// The highest clocks, with turbo.
    HighPerformance,
    /// Clocks follow the load reluctantly, without turbo.
    PowerSaver,
    /// Nothing but what is asked for.
    Custom,
}

impl PowerPlan {
    /// All plans.
    pub const ALL: [Self; 4] =
        [Self::Balanced, Self::HighPerformance, Self::PowerSaver, Self::Custom];

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

/// A plan, and what is to be otherwise than it says. `None`: as the plan has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerSpec {
    /// The plan.
    pub plan: PowerPlan,
    /// cpufreq governor by its name.
    pub governor: Option<String>,
    /// Energy-performance preference by its name.
    pub energy_preference: Option<String>,
    /// Lowest frequency, in percent of the highest that the CPU has; 0 to 100.
    pub performance_percent_min: Option<u8>,
    /// Highest frequency, in percent of the highest that the CPU has; 1 to 100.
    pub performance_percent_max: Option<u8>,
    /// Whether clocks above the nominal one may be used.
    pub turbo: Option<bool>,
    /// Name of the deepest idle state that may be entered.
    pub idle_state_max: Option<String>,
    /// Longest exit latency of idle states that may be entered, in microseconds.
    pub idle_latency_us_max: Option<u32>,
    /// Whether processors of the data plane are emptied so that they park.
    pub parking: Option<bool>,
    /// How long a processor of the data plane polls before it sleeps, in microseconds.
    pub poll_us: Option<u32>,
    /// VMQ's high-water mark in percent of a processor, 50 to 95.
    pub vmq_high_percent: Option<u8>,
    /// VMQ's low-water mark in percent of a processor, 0 to 65.
    pub vmq_low_percent: Option<u8>,
}

/// What a plan makes the data plane do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPlaneShare {
    /// Whether processors are emptied so that they park.
    pub parking: bool,
    /// How long a processor polls before it sleeps.
    pub poll: Duration,
    /// Percent of a processor above which it sheds queues.
    pub vmq_high_percent: u8,
    /// Percent of a processor up to which it is under-used.
    pub vmq_low_percent: u8,
}

/// So far apart both water marks are at the least, in percent of a processor: what is packed
/// must have room below the high one.
const MARKS_APART: u8 = 30;

impl DataPlaneShare {
    /// Without a plan.
    pub const DEFAULT: Self = Self {
        parking: true,
        poll: Duration::from_micros(50),
        vmq_high_percent: 85,
        vmq_low_percent: 30,
    };

    const fn of_plan(plan: PowerPlan) -> Self {
        match plan {
            PowerPlan::Balanced | PowerPlan::Custom => Self::DEFAULT,
            PowerPlan::HighPerformance => Self {
                parking: false,
                poll: Duration::from_micros(200),
                vmq_high_percent: 70,
                ..Self::DEFAULT
            },
            PowerPlan::PowerSaver => Self {
                poll: Duration::ZERO,
                vmq_high_percent: 90,
                vmq_low_percent: 40,
                ..Self::DEFAULT
            },
        }
    }
}

impl PowerSpec {
    /// A plan as it is.
    pub const fn of(plan: PowerPlan) -> Self {
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

    /// What it makes the data plane do. What is asked for wins over the plan; where both
    /// water marks would come too close, the one that was not asked for gives way.
    pub fn data_plane(&self) -> DataPlaneShare {
        let plan = DataPlaneShare::of_plan(self.plan);
        let high = self.vmq_high_percent.unwrap_or(plan.vmq_high_percent);
        let low = self.vmq_low_percent.unwrap_or(plan.vmq_low_percent);
        let apart = high >= low.saturating_add(MARKS_APART);
        let (high, low) = match (apart, self.vmq_low_percent) {
            (true, _) => (high, low),
            (false, Some(low)) => (low.saturating_add(MARKS_APART).min(95), low),
            (false, None) => (high, high.saturating_sub(MARKS_APART)),
        };
        DataPlaneShare {
            parking: self.parking.unwrap_or(plan.parking),
            poll: self.poll_us.map_or(plan.poll, |us| Duration::from_micros(u64::from(us))),
            vmq_high_percent: high,
            vmq_low_percent: low,
        }
    }

    /// The governors that do, the best first; empty if any does. A driver that chooses
    /// frequencies itself (`intel_pstate` in active mode, `amd-pstate-epp`) has two, which
    /// say how eagerly (Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst).
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

    /// Lowest and highest frequency in percent, both or none: who asks for one leaves the
    /// other to the CPU, for it could be in the way. Where they contradict each other, the
    /// one that was not asked for gives way.
    pub(crate) fn percents(&self) -> (Option<u8>, Option<u8>) {
        let (min, max) = match self.plan {
            PowerPlan::Balanced | PowerPlan::PowerSaver => (Some(0), Some(100)),
            PowerPlan::HighPerformance => (Some(100), Some(100)),
            PowerPlan::Custom => (None, None),
        };
        match (self.performance_percent_min, self.performance_percent_max) {
            (None, None) => (min, max),
            (Some(asked), None) => (Some(asked), Some(max.unwrap_or(100).max(asked))),
            (None, Some(asked)) => (Some(min.unwrap_or(0).min(asked)), Some(asked)),
            (Some(least), Some(most)) => (Some(least.min(most)), Some(most)),
        }
    }

    pub(crate) fn wants_turbo(&self) -> Option<bool> {
        self.turbo.or(match self.plan {
            PowerPlan::Balanced | PowerPlan::PowerSaver => Some(false),
            PowerPlan::HighPerformance => Some(true),
            PowerPlan::Custom => None,
        })
    }
}
