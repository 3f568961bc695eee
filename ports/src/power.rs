//! Power management settings of the host's CPUs.

use suimon_power::{HostPowerSettings, SettingId, ZoneReading};
use thiserror::Error;

/// Failure to write a setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PowerError {
    /// The sysfs file does not exist: the CPU is offline, or its driver was removed.
    #[error("{file} does not exist")]
    Missing {
        /// Path of the setting's sysfs file.
        file: String,
    },
    /// The file system is mounted read-only for the daemon.
    #[error(
        "{file} is read-only for the daemon; install suimond.service.d/power.conf, or permit \
         writes to it otherwise"
    )]
    ReadOnly {
        /// Path of the setting's sysfs file.
        file: String,
    },
    /// The daemon lacks the permission.
    #[error("the daemon has no permission to write {file}; run it as root")]
    Denied {
        /// Path of the setting's sysfs file.
        file: String,
    },
    /// The driver rejected the value.
    #[error("the driver rejected `{value}` for {file}: {detail}")]
    Refused {
        /// Path of the setting's sysfs file.
        file: String,
        /// Value that the driver rejected.
        value: String,
        /// Error text of the system call.
        detail: String,
    },
}

/// Frequencies, idle states and turbo of the host's CPUs (cpufreq and cpuidle in sysfs), and energy
/// counters (powercap).
///
/// Reading takes long with many CPUs and is therefore done on demand only.
pub trait PowerHost: Send + Sync {
    /// Returns the current settings of all CPUs. Values that cannot be read or parsed are reported
    /// as absent.
    fn settings(&self) -> HostPowerSettings;

    /// Returns the list of online CPUs in the kernel's format, such as `0-3,5`. Reads one file.
    fn online_cpus(&self) -> String;

    /// Writes a setting.
    ///
    /// # Errors
    /// Fails with the setting unchanged.
    fn write_setting(&self, id: SettingId, value: &str) -> Result<(), PowerError>;

    /// Returns the energy counters; empty if there are none or they cannot be read.
    fn energy(&self) -> Vec<ZoneReading>;

    /// Returns why no energy counter is available, as text; `None` if one is.
    fn energy_unavailable_reason(&self) -> Option<String>;
}
