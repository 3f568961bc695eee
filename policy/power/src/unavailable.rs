//! Reasons for which required power settings are not available.

use core::fmt;

use thiserror::Error;

/// Reason for which a required setting is not available. The message names a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnavailableReason {
    /// No CPU of the host has a frequency policy.
    #[error(
        "there is no cpufreq driver: the firmware or the hypervisor controls frequencies; enable \
         frequency control by the operating system in the firmware setup, or set the plan on the \
         hypervisor"
    )]
    NoDriver,
    /// No frequency policy contains the CPU, but other CPUs have one.
    #[error(
        "no cpufreq policy contains this CPU; check the cpufreq driver \
         (`/sys/devices/system/cpu/cpufreq`)"
    )]
    NoFrequencyPolicy,
    /// The driver supports none of the suitable governors.
    #[error(
        "driver {driver} has no governor {}; set one of {}", Choice(.required), Choice(.offered))]
    GovernorNotOffered {
        /// Name of the cpufreq driver.
        driver: String,
        /// Governors that are suitable for the plan, in order of preference.
        required: Vec<String>,
        /// Governors that the driver supports.
        offered: Vec<String>,
    },
    /// The driver does not support energy-performance preferences.
    #[error(
        "driver {driver} has no energy-performance preference; use a plan or driver without it, \
         such as intel_pstate or amd_pstate in active mode"
    )]
    PreferencesUnsupported {
        /// Name of the cpufreq driver.
        driver: String,
    },
    /// The driver does not support this preference.
    #[error(
        "driver {driver} has no energy-performance preference {required}; set one of {}", Choice(.offered))]
    PreferenceNotOffered {
        /// Name of the cpufreq driver.
        driver: String,
        /// Preference that the plan requires.
        required: String,
        /// Preferences that the driver supports.
        offered: Vec<String>,
    },
    /// The current governor forbids all other preferences (`performance` of an active driver).
    #[error("with governor performance, driver {driver} accepts no preference but performance")]
    PreferenceForbiddenByGovernor {
        /// Name of the cpufreq driver.
        driver: String,
    },
    /// The driver does not report its frequency range.
    #[error(
        "driver {driver} does not report the lowest and highest frequency of the CPU; set \
         `governor` instead of a frequency limit"
    )]
    FrequencyRangeUnknown {
        /// Name of the cpufreq driver.
        driver: String,
    },
    /// The host has no file in sysfs that enables or disables turbo frequencies.
    #[error(
        "there is no turbo switch (intel_pstate/no_turbo, cpufreq/boost): the CPU has no turbo, \
         or the firmware controls it"
    )]
    NoTurbo,
    /// The CPU has no idle states that the kernel can select.
    #[error("the kernel offers no idle states for this CPU")]
    NoIdleStates,
    /// The CPU has no idle state with this name.
    #[error("the CPU has no idle state {required}; set one of {}", Choice(.offered))]
    IdleStateNotFound {
        /// Required name of the idle state.
        required: String,
        /// Names of the existing idle states.
        offered: Vec<String>,
    },
    /// Even the shallowest idle state has an exit latency above the limit.
    #[error(
        "no idle state has a latency of at most {limit_us} us; the shallowest, {name}, with \
         {latency_us} us, stays enabled"
    )]
    ExitLatencyAboveLimit {
        /// Configured maximum exit latency in microseconds.
        limit_us: u32,
        /// Name of the shallowest state.
        name: String,
        /// Exit latency of that state in microseconds.
        latency_us: u32,
    },
}

/// Formats the alternatives as a comma-separated list.
struct Choice<'a>(&'a [String]);

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            names => f.write_str(&names.join(", ")),
        }
    }
}
