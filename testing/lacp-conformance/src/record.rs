//! What was heard, and pure questions about it.

use std::time::Duration;

use crate::pdu::{Kind, Lacpdu};

/// A frame of the slow protocols, or any other, that the device sent.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Duration,
    pub(crate) frame: Vec<u8>,
    pub(crate) kind: Kind,
}

impl Heard {
    /// The LACPDU, if it is one.
    pub(crate) fn lacpdu(&self) -> Option<&Lacpdu> {
        match &self.kind {
            Kind::Lacp(pdu) => Some(pdu),
            _ => None,
        }
    }
}

/// The LACPDUs among what was heard, with their times.
pub(crate) fn lacpdus(heard: &[Heard]) -> impl DoubleEndedIterator<Item = (Duration, &Lacpdu)> {
    heard.iter().filter_map(|one| Some((one.at, one.lacpdu()?)))
}

/// The most of these times that lie in one interval shorter than `window`.
pub(crate) fn most_within(times: &[Duration], window: Duration) -> usize {
    let mut most = 0;
    let mut first = 0;
    for (last, at) in times.iter().enumerate() {
        while *at - times[first] >= window {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}

/// The times between neighbours.
pub(crate) fn gaps(times: &[Duration]) -> Vec<Duration> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A time as people read it.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|ms| Duration::from_millis(*ms)).collect()
    }

    #[test]
    fn the_fullest_interval_is_found_wherever_it_is() {
        let second = Duration::from_secs(1);
        assert_eq!(most_within(&[], second), 0);
        assert_eq!(most_within(&at(&[5]), second), 1);
        assert_eq!(most_within(&at(&[0, 300, 600, 999, 5000]), second), 4);
        assert_eq!(most_within(&at(&[0, 300, 600, 1000, 1300]), second), 3);
        assert_eq!(most_within(&at(&[0, 4000, 4001, 4002]), second), 3);
    }

    #[test]
    fn gaps_are_between_neighbours() {
        assert_eq!(gaps(&at(&[10, 15, 40])), at(&[5, 25]));
        assert!(gaps(&at(&[10])).is_empty());
    }
}
