//! Energy and power from wrapping counters.
//!
//! Documentation/power/powercap/powercap.rst: `energy_uj` counts microjoules up to
//! `max_energy_range_uj` and restarts at 0.

use std::collections::BTreeMap;

use suimon_quantity::Time;

/// Upper bound of a zone's power, in mW: about twice the short-term limit of the largest sockets. A
/// counter may have wrapped more than once if this power fills it between readings.
const ZONE_MILLIWATTS_MAX: u64 = 2_000_000;
/// Minimum interval between evaluated readings, in ns. Counters advance in steps of about a
/// millisecond.
const APART_MIN_NS: u64 = 20_000_000;
/// Maximum number of power zones (powercap) that are recorded; a machine has a few per socket.
const ZONES_MAX: usize = 256;

/// Energy counter of one powercap zone, as read from sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReading {
    /// Directory of the zone, for example `intel-rapl:0`.
    pub zone: String,
    /// Name of the zone, for example `package-0`.
    pub name: String,
    /// Value of the energy counter in microjoules, which restarts at 0 after `energy_uj_max`.
    pub energy_uj: u64,
    /// Largest counter value in microjoules.
    pub energy_uj_max: u64,
}

/// Energy and power of one powercap zone, calculated from readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneEnergy {
    /// Directory of the zone below powercap.
    pub zone: String,
    /// Name of the zone, for example `package-0`.
    pub name: String,
    /// Energy used since the first reading, excluding gaps, in microjoules.
    pub energy_uj: u64,
    /// Mean power between the last two readings, in mW; `None` after a gap or for a zone no longer
    /// read.
    pub milliwatts: Option<u64>,
    /// True if the zone counts towards the host's sum: packages and memory count, cores do not
    /// because their package includes them.
    pub is_in_host_total: bool,
}

/// Calculates the energy and power of all zones from counter readings.
#[derive(Clone, Debug, Default)]
pub struct EnergyMeter {
    zones: BTreeMap<String, Meter>,
    read_at: Option<Time>,
    gaps: u64,
}

#[derive(Clone, Debug)]
struct Meter {
    name: String,
    last_uj: u64,
    total_uj: u64,
    milliwatts: Option<u64>,
    is_there: bool,
}

impl EnergyMeter {
    /// Processes the counters read at `now`. Zones missing from `readings` keep their energy and
    /// have no power.
    pub fn observe(&mut self, now: Time, readings: &[ZoneReading]) {
        let elapsed_ns = match self.read_at {
            Some(last) if now <= last => return,
            Some(last) => u64::try_from(now.since(last).as_nanos()).unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        let is_nothing = readings.is_empty() && self.zones.is_empty();
        if elapsed_ns < APART_MIN_NS || is_nothing {
            return;
        }
        self.read_at = Some(now);
        for (zone, meter) in &mut self.zones {
            meter.milliwatts = None;
            meter.is_there &= readings.iter().any(|reading| reading.zone == *zone);
        }
        for reading in readings {
            self.add_reading(reading, elapsed_ns);
        }
    }

    fn add_reading(&mut self, reading: &ZoneReading, elapsed_ns: u64) {
        let Some(meter) = self.zones.get_mut(&reading.zone) else {
            if self.zones.len() < ZONES_MAX {
                let meter = Meter {
                    name: reading.name.clone(),
                    last_uj: reading.energy_uj,
                    total_uj: 0,
                    milliwatts: None,
                    is_there: true,
                };
                self.zones.insert(reading.zone.clone(), meter);
            }
            return;
        };
        let used = meter.is_there.then(|| used_uj(meter.last_uj, reading, elapsed_ns)).flatten();
        meter.last_uj = reading.energy_uj;
        meter.is_there = true;
        match used {
            Some(uj) => {
                meter.total_uj = meter.total_uj.saturating_add(uj);
                // 1 µJ/ns is 1000 W, 1 000 000 mW.
                let milliwatts = u128::from(uj) * 1_000_000 / u128::from(elapsed_ns.max(1));
                meter.milliwatts = u64::try_from(milliwatts).ok();
            }
            None => self.gaps = self.gaps.saturating_add(1),
        }
    }

    /// Returns all zones ever read, in ascending order of directories.
    pub fn zones(&self) -> Vec<ZoneEnergy> {
        let zones = self.zones.iter().map(|(zone, meter)| ZoneEnergy {
            zone: zone.clone(),
            name: meter.name.clone(),
            energy_uj: meter.total_uj,
            milliwatts: meter.milliwatts,
            is_in_host_total: is_counted(zone, &meter.name),
        });
        zones.collect()
    }

    /// Returns the time of the last reading; `None` before the first.
    pub const fn read_at(&self) -> Option<Time> {
        self.read_at
    }

    /// Returns the number of gaps: intervals whose energy is unknown because a counter may have
    /// wrapped more than once.
    pub const fn gaps(&self) -> u64 {
        self.gaps
    }
}

/// Returns the energy in microjoules used in the `elapsed_ns` since the last reading; `None` if the
/// counter may have wrapped more than once or its value is invalid.
fn used_uj(last_uj: u64, reading: &ZoneReading, elapsed_ns: u64) -> Option<u64> {
    let ZoneReading { energy_uj, energy_uj_max, .. } = *reading;
    let at_most_uj = u128::from(ZONE_MILLIWATTS_MAX) * u128::from(elapsed_ns) / 1_000_000;
    if at_most_uj >= u128::from(energy_uj_max) || energy_uj > energy_uj_max {
        return None;
    }
    let used = match energy_uj.checked_sub(last_uj) {
        Some(used) => used,
        None => energy_uj_max.checked_sub(last_uj)?.checked_add(energy_uj)?,
    };
    (u128::from(used) <= at_most_uj).then_some(used)
}

/// Returns true if a zone counts towards the host's sum. Cores and graphics are included in their
/// package, `psys` includes more than the packages, and `intel-rapl-mmio` duplicates `intel-rapl`.
fn is_counted(zone: &str, name: &str) -> bool {
    !zone.starts_with("intel-rapl-mmio") && (name.starts_with("package") || name == "dram")
}
