//! Which minimums of a node are in effect.

/// What is reserved for a node, beside all that its disks on the store are to have whenever they want it.
///
/// That may be more than what is reserved: the cluster has not said yes yet, or cannot be asked. They
/// would have it at the cost of those whose minimums are reserved, here or on other nodes. So until
/// what is reserved covers all, each has the minimum that was last in effect for it, or less where
/// less is asked for now.
///
/// A policy whose disks are on several nodes does not count: what of it is here
/// ([`PolicyCap`](crate::PolicyCap)) is reserved by whoever says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    is_whole: bool,
}

impl Coverage {
    /// Of these minimums, in normalised operations per second.
    pub fn new(reserved_iops: u64, minimums: impl IntoIterator<Item = u64>) -> Self {
        let sum = minimums.into_iter().fold(0_u64, u64::saturating_add);
        Self { is_whole: sum <= reserved_iops }
    }

    /// What is in effect of one of them, if `before` was until now.
    #[must_use]
    pub fn of(self, minimum: u64, before: u64) -> u64 {
        if self.is_whole { minimum } else { minimum.min(before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_covered_is_not_in_effect_and_what_was_stays() {
        let in_effect = |reserved, of: [(u64, u64); 3]| {
            let coverage = Coverage::new(reserved, of.map(|(min, _)| min));
            of.map(|(min, before)| coverage.of(min, before))
        };
        let raised = [(2000, 2000), (900, 500), (100, 0)];
        assert_eq!(in_effect(2999, raised), [2000, 500, 0]);
        assert_eq!(in_effect(3000, raised), [2000, 900, 100]);
        // What asks for less has less, whatever others ask for.
        assert_eq!(in_effect(2564, [(800, 2000), (0, 500), (9000, 0)]), [800, 0, 0]);
        assert_eq!(in_effect(0, [(u64::MAX, 0), (u64::MAX, 7), (0, 0)]), [0, 7, 0]);
    }
}
