//! Result of executing a case.

use anyhow::Error;

/// Reason why a case did not pass.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The device violates the clause.
    Fail { expected: String, observed: String },
    /// The case is not applicable to this device.
    NotApplicable(String),
    /// The suite failed to execute the case.
    Broken(Error),
}

/// The observation of a case that passed, or the reason why it did not.
pub(crate) type CaseResult = Result<String, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// Fails the case unless `is_fulfilled`.
pub(crate) fn require(
    is_fulfilled: bool,
    expected: impl Into<String>,
    observed: impl FnOnce() -> String,
) -> Result<(), Stop> {
    if is_fulfilled { Ok(()) } else { fail(expected, observed()) }
}

/// Fails the case.
pub(crate) fn fail<T>(expected: impl Into<String>, observed: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fail { expected: expected.into(), observed: observed.into() })
}

/// Ends the case as not applicable to this device.
pub(crate) fn not_applicable<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::NotApplicable(reason.into()))
}
