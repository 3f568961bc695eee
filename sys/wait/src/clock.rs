//! Clocks that workers read.

use core::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use suimon_quantity::Time;

const NS_PER_S: u64 = 1_000_000_000;

/// Returns the time of `CLOCK_BOOTTIME`: nanoseconds since boot including suspend, so that a lease
/// or loan of IOPS to this host expires even while the host is suspended. Reads the clock through
/// the vDSO, without a system call.
#[inline]
pub(crate) fn now() -> Time {
    let span = to_duration(clock_gettime(ClockId::Boottime));
    Time::ZERO + span
}

/// Returns the CPU time that the calling thread has used.
pub(crate) fn thread_cpu_time() -> Duration {
    to_duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// Converts nanoseconds to a `timespec`.
pub(crate) fn to_timespec(ns: u64) -> Timespec {
    // A u64 of nanoseconds is at most 18.4e9 s, so neither conversion can fail.
    Timespec {
        tv_sec: i64::try_from(ns / NS_PER_S).unwrap_or(i64::MAX),
        tv_nsec: (ns % NS_PER_S).try_into().unwrap_or_default(),
    }
}

fn to_duration(time: Timespec) -> Duration {
    // Both clocks start at zero and a normalised timespec has 0 ≤ tv_nsec < 1e9.
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances_and_conversions_keep_every_nanosecond() {
        let before = now();
        while now() == before {}
        assert!(now() > before);
        for ns in [0, 1, 999_999_999, NS_PER_S, 1_500_000_001, u64::MAX] {
            let spec = to_timespec(ns);
            let converted = u128::from(spec.tv_sec.unsigned_abs()) * u128::from(NS_PER_S)
                + u128::from(spec.tv_nsec.unsigned_abs());
            assert_eq!(converted, u128::from(ns));
        }
    }
}
