//! Energy from wrapping counters.

use std::time::Duration;

use proptest::prelude::*;
use suimon_power::{EnergyMeter, ZoneReading};
use suimon_quantity::Time;

fn reading(zone: &str, name: &str, energy_uj: u64, energy_uj_max: u64) -> ZoneReading {
    ZoneReading { zone: zone.to_owned(), name: name.to_owned(), energy_uj, energy_uj_max }
}

proptest! {
    /// All energy used between two readings is counted, also if the counter wraps.
    #[test]
    fn nothing_is_lost_where_counters_wrap(
        start in 0u64..1_000_000_000,
        steps in prop::collection::vec((50u64..400, 0u64..500), 1..40),
    ) {
        let range = 1_000_000_000; // 1 kJ.
        let (mut now, mut counter, mut used) = (Time::ZERO + Duration::from_secs(1), start, 0);
        let mut meter = EnergyMeter::default();
        meter.observe(now, &[reading("intel-rapl:0", "package-0", counter, range)]);
        for (ms, watts) in steps {
            now = now + Duration::from_millis(ms);
            let uj = watts * ms * 1000;
            used += uj;
            counter = (counter + uj) % range;
            meter.observe(now, &[reading("intel-rapl:0", "package-0", counter, range)]);
            let zone = &meter.zones()[0];
            prop_assert_eq!(zone.energy_uj, used);
            prop_assert_eq!(zone.milliwatts, Some(watts * 1000));
        }
        prop_assert_eq!(meter.gaps(), 0);
    }

    /// Arbitrary counter values cause no overflow and no implausible power.
    #[test]
    fn invalid_counters_cause_no_failure(
        readings in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..30),
    ) {
        let mut meter = EnergyMeter::default();
        for (ns, energy, range) in readings {
            let now = Time::ZERO + Duration::from_nanos(ns);
            meter.observe(now, &[reading("intel-rapl:0", "package-0", energy, range)]);
            for zone in meter.zones() {
                prop_assert!(zone.milliwatts.is_none_or(|power| power <= 2_000_000));
            }
        }
    }
}

#[test]
fn a_counter_that_may_have_wrapped_twice_is_ignored() {
    let mut meter = EnergyMeter::default();
    let time_at = |s| Time::ZERO + Duration::from_secs(s);
    let zone = |uj| [reading("intel-rapl:0", "package-0", uj, 262_143_328_850)];
    meter.observe(time_at(1), &zone(5));
    meter.observe(time_at(61), &zone(60_000_005));
    assert_eq!(meter.zones()[0].milliwatts, Some(1000));
    // 262 kJ correspond to 131 s at 2 kW.
    meter.observe(time_at(261), &zone(90_000_005));
    assert_eq!((meter.zones()[0].milliwatts, meter.gaps()), (None, 1));
    assert_eq!(meter.zones()[0].energy_uj, 60_000_000, "of the gap nothing is known");
    meter.observe(time_at(262), &zone(92_000_005));
    assert_eq!(meter.zones()[0].milliwatts, Some(2000));
    assert_eq!(meter.zones()[0].energy_uj, 62_000_000);
}

#[test]
fn packages_and_memory_are_the_host_and_parts_of_them_are_not() {
    let mut meter = EnergyMeter::default();
    let names = [
        ("intel-rapl:0", "package-0", true),
        ("intel-rapl:0:0", "core", false),
        ("intel-rapl:0:1", "dram", true),
        ("intel-rapl:1", "psys", false),
        ("intel-rapl-mmio:0", "package-0", false),
    ];
    let readings: Vec<_> = names.iter().map(|(zone, name, _)| reading(zone, name, 0, 9)).collect();
    meter.observe(Time::ZERO + Duration::from_secs(1), &readings);
    for zone in meter.zones() {
        let (.., is_counted) = names.iter().find(|(name, ..)| *name == zone.zone).unwrap();
        assert_eq!(zone.is_in_host_total, *is_counted, "{zone:?}");
    }
}
