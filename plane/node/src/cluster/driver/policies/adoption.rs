//! Attempts to adopt the policies of the cluster into the desired state.

use std::time::Duration;

use suimon_contract::OperationState;
use suimon_quantity::Time;

/// Interval after which the first failed attempt is repeated. It doubles with each further failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Longest interval between failed attempts.
const RETRY_INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Interval at which the operation of an attempt in progress is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Progress of adopting the policies of the cluster. A failed attempt is repeated with a growing
/// interval, however often the policies change meanwhile.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    /// Operation of the last attempt; `None` if the desired state has contained the policies since.
    operation: Option<u64>,
    /// Number of attempts since the desired state last contained the policies.
    attempts: u32,
    /// Earliest time of the next attempt if the last one fails; `None`: at once.
    retry_at: Option<Time>,
    /// Time of the next check of an attempt in progress.
    check_at: Option<Time>,
}

impl Adoption {
    /// Returns the operation of the last attempt.
    pub(super) const fn operation(&self) -> Option<u64> {
        self.operation
    }

    /// Records the begin of an attempt.
    pub(super) fn begin(&mut self, now: Time, operation: u64) {
        let factor = 1_u32 << self.attempts.min(16);
        let interval = RETRY_INTERVAL.saturating_mul(factor).min(RETRY_INTERVAL_MAX);
        let attempts = self.attempts.saturating_add(1);
        *self = Self {
            operation: Some(operation),
            attempts,
            retry_at: Some(now + interval),
            check_at: None,
        };
    }

    /// Records that an attempt could not begin, and defers the next one.
    pub(super) fn postpone(&mut self, until: Time) {
        self.retry_at = Some(until);
    }

    /// Records that the desired state contains the policies.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Permits the next attempt at once, because the desired state has changed.
    pub(super) fn permit(&mut self) {
        self.retry_at = None;
    }

    /// Returns true if a failed attempt is to be repeated, or an attempt in progress to be checked.
    pub(super) fn is_due(&self, now: Time) -> bool {
        [self.retry_at, self.check_at].into_iter().flatten().any(|due_at| due_at <= now)
    }

    /// Returns true if an attempt may begin. `state`: state of the last attempt's operation; `None`
    /// if there is none.
    pub(super) fn may_begin(&mut self, now: Time, state: Option<OperationState>) -> bool {
        self.check_at = None;
        match state {
            Some(OperationState::Running) => {
                self.check_at = Some(now + CHECK_INTERVAL);
                false
            }
            Some(OperationState::Succeeded) => {
                self.end();
                true
            }
            Some(OperationState::Failed | OperationState::Cancelled) | None => {
                self.retry_at.is_none_or(|retry_at| retry_at <= now)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Option<OperationState> = Some(OperationState::Failed);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn failed_attempts_are_repeated_with_a_growing_interval_of_an_hour_at_most() {
        let mut adoption = Adoption::default();
        let mut begun = Vec::new();
        for second in 0..15_000 {
            // The policies change each second.
            if adoption.may_begin(at(second), adoption.operation().and(FAILED)) {
                adoption.begin(at(second), second);
                begun.push(second);
            }
        }
        let intervals: Vec<u64> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(intervals, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
        let last = *begun.last().unwrap();
        assert!(!adoption.is_due(at(last + 3599)) && adoption.is_due(at(last + 3600)));
        // A change of the desired state may have removed the cause.
        adoption.permit();
        assert!(adoption.may_begin(at(last + 1), FAILED));
    }

    /// There may be no room for a further operation.
    #[test]
    fn an_attempt_that_could_not_begin_is_due_once_at_its_time() {
        let mut adoption = Adoption::default();
        adoption.postpone(at(30));
        assert!(!adoption.is_due(at(29)) && adoption.is_due(at(30)));
        adoption.begin(at(30), 1);
        assert!(adoption.is_due(at(60)) && adoption.may_begin(at(60), FAILED));
        adoption.postpone(at(90));
        assert!(!adoption.is_due(at(60)) && !adoption.may_begin(at(60), FAILED));
        assert_eq!(adoption.operation(), Some(1));
        assert!(adoption.is_due(at(90)) && adoption.may_begin(at(90), FAILED));
    }

    #[test]
    fn an_attempt_in_progress_is_awaited_and_a_success_ends_the_series() {
        let mut adoption = Adoption::default();
        assert!(adoption.may_begin(at(0), None) && !adoption.is_due(at(0)));
        adoption.begin(at(0), 1);
        assert!(!adoption.may_begin(at(0), Some(OperationState::Running)));
        assert!(adoption.is_due(at(1)), "the operation is checked soon");
        assert!(!adoption.may_begin(at(1), FAILED));
        adoption.begin(at(30), 2);
        assert!(adoption.may_begin(at(31), Some(OperationState::Succeeded)));
        assert_eq!((adoption.operation(), adoption.attempts), (None, 0));
        adoption.begin(at(31), 3);
        assert!(adoption.may_begin(at(61), FAILED));
    }
}
