//! Failures of the state store that are reported once, although the same change is attempted again
//! and again.

use suimon_ports::StateStoreError;

/// Failure that was reported last; none after a success.
#[derive(Debug, Default)]
pub struct ReportedFailure(Option<StateStoreError>);

impl ReportedFailure {
    /// Returns true if the failure must be reported: it is the first one since a success, or
    /// differs from the one before.
    pub fn record_failure(&mut self, error: &StateStoreError) -> bool {
        let is_new = self.0.as_ref() != Some(error);
        if is_new {
            self.0 = Some(error.clone());
        }
        is_new
    }

    /// Handles a success: the next failure is reported.
    pub fn record_success(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_once_until_it_changes_or_ends() {
        let (full, damaged) = (StateStoreError::new("full"), StateStoreError::new("damaged"));
        let mut failure = ReportedFailure::default();
        let reported = [&full, &full, &full, &damaged, &damaged, &full]
            .map(|error| failure.record_failure(error));
        assert_eq!(reported, [true, false, false, true, false, true]);
        assert!(!failure.record_failure(&full));
        failure.record_success();
        assert!(failure.record_failure(&full));
    }
}
