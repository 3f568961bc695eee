//! Energy and power, from counters that wrap.
//!
//! Documentation/power/powercap/powercap.rst: `energy_uj` counts microjoules up to
//! `max_energy_range_uj` and begins anew.

use std::collections::BTreeMap;

use suimon_quantity::Time;

/// No zone uses more: about what the largest sockets may take for a moment, doubled. A
/// counter may have wrapped twice after it could have been filled at this.
const ZONE_MILLIWATTS_MAX: u64 = 2_000_000;
/// Counters move in steps of about a millisecond; readings this close are one.
const APART_MIN_NS: u64 = 20_000_000;
/// Zones that are told; a machine has a few for each socket.
const ZONES_MAX: usize = 256;

/// One zone's counter, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReading {
    /// The zone's folder, like `intel-rapl:0`.
    pub zone: String,
    /// Its name, like `package-0`.
    pub name: String,
    /// Microjoules.
    pub energy_uj: u64,
    /// The largest value of that.
    pub energy_uj_max: u64,
}

/// What is known of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneEnergy {
    /// Its folder.
    pub zone: String,
    /// Its name.
    pub name: String,
    /// Microjoules since it was first read, without those of gaps.
    pub energy_uj: u64,
    /// What it used of late, in milliwatts, unless it was read but once since a gap.
    pub milliwatts: Option<u64>,
    /// Whether it is a part of the host's sum: packages and memory are; cores are in their
    /// package.
    pub is_counted: bool,
}

/// Adds up what zones tell.
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
    /// Takes in what was read at `now`. Zones that are not among it any more keep their
    /// energy and have no power.
    pub fn observe(&mut self, now: Time, readings: &[ZoneReading]) {
        let elapsed_ns = match self.read_at {
            Some(at) if now <= at => return,
            Some(at) => u64::try_from(now.since(at).as_nanos()).unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        let is_nothing = readings.is_empty() && self.zones.is_empty();
        if elapsed_ns < APART_MIN_NS || is_nothing {
            return;
        }
        self.read_at = Some(now);
        for (zone, meter) in &mut self.zones {
            meter.milliwatts = None;
            meter.is_there &= readings.iter().any(|of| of.zone == *zone);
        }
        for reading in readings {
            self.take(reading, elapsed_ns);
        }
    }

    fn take(&mut self, reading: &ZoneReading, elapsed_ns: u64) {
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
                // A microjoule a nanosecond is a thousand watts, a million milliwatts.
                let milliwatts = u128::from(uj) * 1_000_000 / u128::from(elapsed_ns.max(1));
                meter.milliwatts = u64::try_from(milliwatts).ok();
            }
            None => self.gaps = self.gaps.saturating_add(1),
        }
    }

    /// All zones that were ever read, by their folders.
    pub fn zones(&self) -> Vec<ZoneEnergy> {
        let zones = self.zones.iter().map(|(zone, meter)| ZoneEnergy {
            zone: zone.clone(),
            name: meter.name.clone(),
            energy_uj: meter.total_uj,
            milliwatts: meter.milliwatts,
            is_counted: is_counted(zone, &meter.name),
        });
        zones.collect()
    }

    /// When the counters were last read.
    pub const fn read_at(&self) -> Option<Time> {
        self.read_at
    }

    /// How often a zone was not read for so long that what it used meanwhile is not known.
    pub const fn gaps(&self) -> u64 {
        self.gaps
    }
}

/// What was used since the last reading; `None` if the counter may have wrapped more than
/// once, or tells what it cannot.
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

/// Cores and graphics are parts of their package, `psys` is more than the packages, and
/// what `intel-rapl-mmio` tells `intel-rapl` tells, too.
fn is_counted(zone: &str, name: &str) -> bool {
    !zone.starts_with("intel-rapl-mmio") && (name.starts_with("package") || name == "dram")
}
