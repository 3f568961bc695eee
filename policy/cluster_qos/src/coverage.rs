//! Determines which minimums of a node are in effect while its reservation is smaller than their
//! sum.

/// Reservation of a node compared with the minimums of its disks on the store.
///
/// The minimums may exceed the reservation while the cluster has not admitted them or cannot be
/// reached. Enforcing them would reduce disks with reserved minimums, here or on other nodes. Until
/// the reservation covers all minimums, each disk has the minimum last in effect for it, or the
/// configured one if that is lower.
///
/// A policy with disks on several nodes does not count: its part on this node
/// ([`PolicyCap`](crate::PolicyCap)) is reserved by the grant that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationCoverage {
    is_whole: bool,
}

impl ReservationCoverage {
    /// Compares the sum of `minimums`, in normalised operations per second, with the reservation.
    pub fn new(reserved_iops: u64, minimums: impl IntoIterator<Item = u64>) -> Self {
        let sum = minimums.into_iter().fold(0_u64, u64::saturating_add);
        Self { is_whole: sum <= reserved_iops }
    }

    /// Returns the minimum in effect for a disk: `minimum`, the configured one, if the reservation
    /// covers all minimums, otherwise the lower of it and `before`, the one in effect until now.
    #[must_use]
    pub fn minimum_in_effect(self, minimum: u64, before: u64) -> u64 {
        if self.is_whole { minimum } else { minimum.min(before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncovered_minimums_are_not_in_effect_and_previous_ones_stay() {
        let in_effect = |reserved, minimums: [(u64, u64); 3]| {
            let coverage = ReservationCoverage::new(reserved, minimums.map(|(min, _)| min));
            minimums.map(|(min, before)| coverage.minimum_in_effect(min, before))
        };
        let raised = [(2000, 2000), (900, 500), (100, 0)];
        assert_eq!(in_effect(2999, raised), [2000, 500, 0]);
        assert_eq!(in_effect(3000, raised), [2000, 900, 100]);
        // A lowered minimum takes effect, whatever other disks request.
        assert_eq!(in_effect(2564, [(800, 2000), (0, 500), (9000, 0)]), [800, 0, 0]);
        assert_eq!(in_effect(0, [(u64::MAX, 0), (u64::MAX, 7), (0, 0)]), [0, 7, 0]);
    }
}
