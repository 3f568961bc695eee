//! Received frames and functions that evaluate them.

use std::time::Duration;

use crate::pdu::{Kind, Lacpdu};

/// A received frame of any protocol.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedFrame {
    pub(crate) time: Duration,
    pub(crate) frame: Vec<u8>,
    pub(crate) kind: Kind,
}

impl ReceivedFrame {
    /// Returns the LACPDU, if the frame is one.
    pub(crate) fn lacpdu(&self) -> Option<&Lacpdu> {
        match &self.kind {
            Kind::Lacp(pdu) => Some(pdu),
            _ => None,
        }
    }
}

/// Returns the LACPDUs among the received frames, with their times.
pub(crate) fn lacpdus(
    received: &[ReceivedFrame],
) -> impl DoubleEndedIterator<Item = (Duration, &Lacpdu)> {
    received.iter().filter_map(|received| Some((received.time, received.lacpdu()?)))
}

/// Returns the maximum number of times that are within one interval shorter than `window`.
pub(crate) fn most_within(times: &[Duration], window: Duration) -> usize {
    let mut max_count = 0;
    let mut first = 0;
    for (last, time) in times.iter().enumerate() {
        while *time - times[first] >= window {
            first += 1;
        }
        max_count = max_count.max(last + 1 - first);
    }
    max_count
}

/// Returns the intervals between consecutive times.
pub(crate) fn gaps(times: &[Duration]) -> Vec<Duration> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Returns a time as text in seconds with two decimals.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|ms| Duration::from_millis(*ms)).collect()
    }

    #[test]
    fn the_fullest_interval_is_found_wherever_it_is() {
        let second = Duration::from_secs(1);
        assert_eq!(most_within(&[], second), 0);
        assert_eq!(most_within(&durations(&[5]), second), 1);
        assert_eq!(most_within(&durations(&[0, 300, 600, 999, 5000]), second), 4);
        assert_eq!(most_within(&durations(&[0, 300, 600, 1000, 1300]), second), 3);
        assert_eq!(most_within(&durations(&[0, 4000, 4001, 4002]), second), 3);
    }

    #[test]
    fn gaps_are_between_neighbours() {
        assert_eq!(gaps(&durations(&[10, 15, 40])), durations(&[5, 25]));
        assert!(gaps(&durations(&[10])).is_empty());
    }
}
