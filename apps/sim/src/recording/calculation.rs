//! Interface of what-if calculations to each policy, and rows of their results.

use anyhow::Result;
use serde::Serialize;
use suimon_quantity::Time;
use suimon_recording::{ObjectNames, RecordError};

/// Figure of the result, with its recorded and its calculated value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    #[serde(rename = "what")]
    pub(crate) figure: String,
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
        Self { figure: subject.into(), recorded, what_if }
    }
}

/// What-if calculation for one policy. It passes the recorded inputs to two instances of the
/// policy: one with the recorded and one with the changed settings.
pub(crate) trait WhatIf {
    /// Processes the next recorded input of the policy.
    ///
    /// # Errors
    /// The record cannot be decoded, or a changed setting is invalid.
    fn step(&mut self, time: Time, input: &[u8]) -> Result<(), RecordError>;

    /// Returns rows of figures, and notes about assumptions and limits. The rows are empty if no
    /// setting applies to the policy.
    ///
    /// # Errors
    /// A setting is invalid.
    fn calculate(&self, names: &ObjectNames) -> Result<(Vec<Row>, Vec<String>)>;
}
