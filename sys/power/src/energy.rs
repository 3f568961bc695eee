//! Energy counters of the powercap subsystem.

use std::path::{Path, PathBuf};

use suimon_power::ZoneReading;

use crate::files::{read_name, read_number};

/// Maximum number of powercap zones that are read; a machine has a few per socket.
const ZONES_MAX: usize = 256;

/// Returns a reading of each powercap zone below `class/powercap` whose counter is readable, sorted
/// by folder.
pub(crate) fn read_zones(powercap: &Path) -> Vec<ZoneReading> {
    folders(powercap).into_iter().filter_map(|(zone, folder)| reading(zone, &folder)).collect()
}

/// Returns the reason why no energy counter is readable; `None` if one is.
pub(crate) fn counters_unavailable_reason(powercap: &Path) -> Option<String> {
    let folders = folders(powercap);
    if folders.is_empty() {
        return Some(
            "energy is unknown: the kernel has no RAPL counters (class/powercap), as in virtual \
             machines"
                .to_owned(),
        );
    }
    if folders.into_iter().any(|(zone, folder)| reading(zone, &folder).is_some()) {
        return None;
    }
    Some(
        "energy is unknown: the daemon has no permission to read the RAPL counters (energy_uj of \
         class/powercap), which requires root"
            .to_owned(),
    )
}

fn reading(zone: String, folder: &Path) -> Option<ZoneReading> {
    Some(ZoneReading {
        name: read_name(&folder.join("name"))?,
        energy_uj: read_number(&folder.join("energy_uj"))?,
        energy_uj_max: read_number(&folder.join("max_energy_range_uj"))?,
        zone,
    })
}

/// Returns the name and path of each zone's folder, like `intel-rapl:0:1`. Drivers, like
/// `intel-rapl` itself, are omitted.
fn folders(powercap: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(powercap) else { return Vec::new() };
    let mut folders: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let zone = entry.file_name().into_string().ok()?;
            let is_zone = zone.len() <= 64
                && zone.contains(':')
                && zone.bytes().all(|byte| byte.is_ascii_graphic());
            is_zone.then(|| (zone, entry.path()))
        })
        .take(ZONES_MAX)
        .collect();
    folders.sort_unstable();
    folders
}
