//! Clock of a node, which differs from the time of the run by an offset and a drift.

use suimon_quantity::Time;

const MILLION: i128 = 1_000_000;

/// Clock with the offset `offset_ns` at the start of the run and the drift `ppm` in parts per
/// million.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) offset_ns: u64,
    pub(crate) drift_ppm: i32,
}

impl Clock {
    /// Returns the time that the clock shows at `now`, a time of the run.
    pub(crate) fn local_time(self, now: Time) -> Time {
        let rate = MILLION + i128::from(self.drift_ppm);
        let ns = i128::from(now.as_ns()) * rate / MILLION;
        Time::from_ns(self.offset_ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    /// Returns the first time of the run at which the clock shows the time `local`.
    pub(crate) fn run_time(self, local: Time) -> Time {
        let rate = MILLION + i128::from(self.drift_ppm);
        let ns = i128::from(local.as_ns().saturating_sub(self.offset_ns)) * MILLION;
        Time::from_ns(u64::try_from((ns + rate - 1) / rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_time_first_at_the_computed_run_time() {
        for ppm in [-5_000, -1, 0, 7, 5_000] {
            let clock = Clock { offset_ns: 17_592_000_000_001, drift_ppm: ppm };
            for ns in [0, 1, 999_999_999, 600_000_000_017] {
                let local = Time::from_ns(clock.offset_ns + ns);
                let time = clock.run_time(local);
                assert!(clock.local_time(time) >= local, "{ppm} {ns}");
                let before = Time::from_ns(time.as_ns().saturating_sub(1));
                assert!(time == before || clock.local_time(before) < local, "{ppm} {ns}");
            }
        }
        let slow = Clock { offset_ns: 0, drift_ppm: -10_000 };
        assert_eq!(slow.local_time(Time::from_ns(1_000_000_000)), Time::from_ns(990_000_000));
    }
}
