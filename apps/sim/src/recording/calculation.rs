//! Calculation for one policy: inputs, and rows of the result.

use anyhow::Result;
use serde::Serialize;
use suimon_quantity::Time;
use suimon_recording::{Names, RecordError};

/// Figure with the recorded and the calculated value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) recorded: String,
    pub(crate) what_if: String,
}

impl Row {
    #[allow(clippy::needless_pass_by_value, reason = "numbers and texts, as they come")]
    pub(crate) fn new(
        subject: impl Into<String>,
        recorded: impl ToString,
        what_if: impl ToString,
    ) -> Self {
        let (recorded, what_if) = (recorded.to_string(), what_if.to_string());
        Self { what: subject.into(), recorded, what_if }
    }
}

/// Policy that processes the recorded inputs twice: with the recorded and with changed settings.
pub(crate) trait WhatIf {
    /// Processes an input of the policy.
    fn step(&mut self, time: Time, input: &[u8]) -> Result<(), RecordError>;

    /// Returns the results; empty if no setting applies.
    ///
    /// # Errors
    /// A setting is invalid.
    fn calculate(&self, names: &Names) -> Result<(Vec<Row>, Vec<String>)>;
}
