//! Power settings of the host below a root folder.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use suimon_ports::{PowerError, PowerHost};
use suimon_power::{HostPowerSettings, SettingId, ZoneReading};

use crate::{cpus, energy, files};

/// Access to the host's power settings and energy counters in sysfs.
#[derive(Clone, Debug)]
pub struct PowerFiles {
    root: PathBuf,
}

impl PowerFiles {
    /// Uses the files below `root`, which is `/sys` on a host.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the folder that contains all settings; no other file is written.
    pub fn settings_folder(&self) -> PathBuf {
        self.root.join("devices/system/cpu")
    }

    fn powercap(&self) -> PathBuf {
        self.root.join("class/powercap")
    }
}

impl PowerHost for PowerFiles {
    fn settings(&self) -> HostPowerSettings {
        cpus::read_settings(&self.settings_folder())
    }

    fn online_cpus(&self) -> String {
        files::read_text(&self.settings_folder().join("online")).unwrap_or_default()
    }

    fn write_setting(&self, id: SettingId, value: &str) -> Result<(), PowerError> {
        let path = self.root.join(id.file());
        files::write(&path, value).map_err(|error| refusal(&path, value, &error))
    }

    fn energy(&self) -> Vec<ZoneReading> {
        energy::read_zones(&self.powercap())
    }

    fn energy_unavailable_reason(&self) -> Option<String> {
        energy::counters_unavailable_reason(&self.powercap())
    }
}

fn refusal(path: &Path, value: &str, error: &io::Error) -> PowerError {
    let file = path.display().to_string();
    match Errno::from_io_error(error) {
        // Drivers that are being removed return the latter.
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => PowerError::Missing { file },
        Some(Errno::ROFS) => PowerError::ReadOnly { file },
        Some(Errno::ACCESS | Errno::PERM) => PowerError::Denied { file },
        _ => PowerError::Refused { file, value: value.to_owned(), detail: error.to_string() },
    }
}
