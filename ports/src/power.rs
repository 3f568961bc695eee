//! The host's power settings.

use suimon_power::{Machine, SettingId, ZoneReading};
use thiserror::Error;

/// Why a setting was not written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PowerError {
    /// Its file is not there: the CPU is offline, or its driver has gone.
    #[error("{file} is not there")]
    Missing {
        /// The file.
        file: String,
    },
    /// The file system is mounted read-only for the daemon.
    #[error(
        "{file} is read-only for the daemon; install suimond.service.d/power.conf, or let it write \
         there otherwise"
    )]
    ReadOnly {
        /// The file.
        file: String,
    },
    /// The daemon may not.
    #[error("{file} may not be written by the daemon; run it as root")]
    Denied {
        /// The file.
        file: String,
    },
    /// The driver does not take the value.
    #[error("the driver refused `{value}` for {file}: {detail}")]
    Refused {
        /// The file.
        file: String,
        /// What was written.
        value: String,
        /// The system's words.
        detail: String,
    },
}

/// CPUs' frequencies, idle states and turbo as the kernel has them, and energy counters.
///
/// Reading may take a while with many CPUs: it is done on demand.
pub trait PowerHost: Send + Sync {
    /// What there is now. What cannot be read or understood is as if it were not there.
    fn machine(&self) -> Machine;

    /// CPUs that are online, as the kernel tells them, in one cheap look.
    fn online(&self) -> String;

    /// Gives a setting a value.
    ///
    /// # Errors
    /// It has the value it had.
    fn write(&self, id: SettingId, value: &str) -> Result<(), PowerError>;

    /// The energy counters; none where there are none or they cannot be read.
    fn energy(&self) -> Vec<ZoneReading>;

    /// Why there are none, in words; `None` if there are.
    fn energy_lacks(&self) -> Option<String>;
}
