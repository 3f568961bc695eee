//! Replay of recorded policies.

use suimon_quantity::Time;

use crate::{Difference, RecordError};

/// Policy that is called with its recorded inputs.
pub trait PolicyReplay {
    /// Applies a recorded input and appends the encoded decision of the current policy to
    /// `decision`.
    ///
    /// # Errors
    ///
    /// `input` is not a valid input of the policy.
    fn step(&mut self, now: Time, input: &[u8], decision: &mut Vec<u8>) -> Result<(), RecordError>;

    /// Returns an input in human-readable form.
    fn describe_input(&self, input: &[u8]) -> String;

    /// Returns the first difference of two different decisions: the recorded one, and `now`, that
    /// of the current policy.
    fn difference(&self, recorded: &[u8], now: &[u8]) -> Difference;
}
