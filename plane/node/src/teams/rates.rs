//! Rates of a port in the last second.

use std::time::Duration;

use suimon_quantity::Time;
use suimon_switch::PortCountersView;

/// Rates in bit/s between the last two samples of a port's counters; 0 after the first sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    last_sample: Option<Sample>,
    pub(crate) rx_bps: u64,
    pub(crate) tx_bps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    time: Time,
    rx_bytes: u64,
    tx_bytes: u64,
}

impl Rates {
    pub(crate) fn sample(&mut self, now: Time, counters: &PortCountersView) {
        let sample = Sample { time: now, rx_bytes: counters.rx_bytes, tx_bytes: counters.tx_bytes };
        if let Some(before) = self.last_sample.replace(sample) {
            let span = now.since(before.time);
            self.rx_bps = bits_per_second(before.rx_bytes, sample.rx_bytes, span);
            self.tx_bps = bits_per_second(before.tx_bytes, sample.tx_bytes, span);
        }
    }
}

fn bits_per_second(from: u64, to: u64, span: Duration) -> u64 {
    let bits = u128::from(to.saturating_sub(from)) * 8 * 1_000_000_000;
    u64::try_from(bits.checked_div(span.as_nanos()).unwrap_or_default()).unwrap_or(u64::MAX)
}

/// Returns `part` of `total` in parts per million; 0 if `total` is 0.
pub(crate) fn ppm(part: u64, total: u64) -> u32 {
    let share = (u128::from(part) * 1_000_000).checked_div(u128::from(total)).unwrap_or_default();
    u32::try_from(share).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_at_ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn bytes(rx_bytes: u64, tx_bytes: u64) -> PortCountersView {
        PortCountersView { rx_bytes, tx_bytes, ..PortCountersView::default() }
    }

    #[test]
    fn the_first_sample_gives_no_rate_and_later_ones_count_from_the_one_before() {
        let mut rates = Rates::default();
        rates.sample(time_at_ms(100), &bytes(5000, 70));
        assert_eq!((rates.rx_bps, rates.tx_bps), (0, 0));
        rates.sample(time_at_ms(1100), &bytes(6000, 70));
        assert_eq!((rates.rx_bps, rates.tx_bps), (8000, 0));
        rates.sample(time_at_ms(3100), &bytes(6000, 1070));
        assert_eq!((rates.rx_bps, rates.tx_bps), (0, 4000));
        // Counters that restart from 0, and two samples at the same time.
        rates.sample(time_at_ms(4100), &bytes(0, u64::MAX));
        assert_eq!((rates.rx_bps, rates.tx_bps), (0, u64::MAX));
        rates.sample(time_at_ms(4100), &bytes(1, u64::MAX));
        assert_eq!((rates.rx_bps, rates.tx_bps), (0, 0));
    }

    #[test]
    fn ppm_is_the_part_of_one_million() {
        assert_eq!(
            [ppm(0, 0), ppm(1, 3), ppm(7, 7), ppm(u64::MAX, u64::MAX)],
            [0, 333_333, 1_000_000, 1_000_000]
        );
    }
}
