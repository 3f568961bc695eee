//! Why a setting cannot be made.

use core::fmt;

use thiserror::Error;

/// Why a setting that is wanted cannot be made, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Why {
    /// No CPU of the host has a frequency policy.
    #[error(
        "there is no cpufreq driver: the machine lets its firmware or its hypervisor choose \
         frequencies; see the firmware's setup, or do this on the hypervisor"
    )]
    NoDriver,
    /// Other CPUs have one.
    #[error("no cpufreq driver serves this CPU")]
    NotServed,
    /// The driver has none of these.
    #[error("driver {driver} has no governor {}; it has {}", Choice(.wanted), Choice(.offered))]
    NoGovernor {
        /// The driver.
        driver: String,
        /// What was wanted.
        wanted: Vec<String>,
        /// What there is.
        offered: Vec<String>,
    },
    /// The driver knows no preferences.
    #[error("driver {driver} has no energy-performance preference")]
    NoPreferences {
        /// The driver.
        driver: String,
    },
    /// The driver has others.
    #[error("driver {driver} has no preference {wanted}; it has {}", Choice(.offered))]
    NoPreference {
        /// The driver.
        driver: String,
        /// What was wanted.
        wanted: String,
        /// What there is.
        offered: Vec<String>,
    },
    /// With this governor the driver takes no other preference.
    #[error("with governor performance driver {driver} takes no preference but performance")]
    GovernorForbids {
        /// The driver.
        driver: String,
    },
    /// The driver does not tell which frequencies there are.
    #[error("driver {driver} does not tell the CPU's lowest and highest frequency")]
    NoFrequencies {
        /// The driver.
        driver: String,
    },
    /// Nothing switches turbo.
    #[error(
        "there is no switch for turbo (intel_pstate/no_turbo, cpufreq/boost): the CPU has none, or \
         the firmware keeps it"
    )]
    NoTurbo,
    /// The CPU has no idle states that can be chosen.
    #[error("the CPU has no idle states that the kernel chooses among")]
    NoIdleStates,
    /// There is no idle state of this name.
    #[error("the CPU has no idle state {wanted}; it has {}", Choice(.offered))]
    NoIdleState {
        /// What was wanted.
        wanted: String,
        /// What there is.
        offered: Vec<String>,
    },
    /// Even the shallowest state takes longer.
    #[error(
        "no idle state is left within {limit_us} us; the shallowest, {name}, takes {latency_us} us \
         and is left"
    )]
    AllTooSlow {
        /// The limit.
        limit_us: u32,
        /// The shallowest state.
        name: String,
        /// What it takes.
        latency_us: u32,
    },
}

/// Words of which one is meant.
struct Choice<'a>(&'a [String]);

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            words => f.write_str(&words.join(", ")),
        }
    }
}
