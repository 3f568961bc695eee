//! What a case finds.

use anyhow::Error;

/// Why a case did not pass.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The device does not do what the clause says.
    Fail { expected: String, observed: String },
    /// The case says nothing about this device.
    NotApplicable(String),
    /// The suite could not do its work.
    Broken(Error),
}

/// What was observed of a case that passed, or why it did not.
pub(crate) type Judged = Result<String, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// Fails the case unless `holds`.
pub(crate) fn require(
    holds: bool,
    expected: impl Into<String>,
    observed: impl FnOnce() -> String,
) -> Result<(), Stop> {
    if holds { Ok(()) } else { fail(expected, observed()) }
}

/// Fails the case.
pub(crate) fn fail<T>(expected: impl Into<String>, observed: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fail { expected: expected.into(), observed: observed.into() })
}

/// The case says nothing about this device.
pub(crate) fn not_applicable<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::NotApplicable(why.into()))
}
