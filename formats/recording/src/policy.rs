//! Interface of policies whose inputs and decisions are recorded as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use suimon_quantity::Time;

use crate::{PolicyKind, RecordError};

/// Policy that can be created and called from its records.
pub trait Policy: Sized {
    /// Kind of policy that begin records contain.
    const KIND: PolicyKind;
    /// Initial state of the policy.
    type InitialState: Serialize + DeserializeOwned;
    /// Input that a step record contains.
    type Input: Serialize + DeserializeOwned;
    /// Decision that a step record contains.
    type Decision: Serialize;

    /// Creates the policy from its initial state, `birth`.
    ///
    /// # Errors
    ///
    /// The reason for which the initial state is invalid.
    fn begin(now: Time, birth: Self::InitialState) -> Result<Self, String>;

    /// Applies an input and returns the decision.
    fn step(&mut self, now: Time, input: &Self::Input) -> Self::Decision;
}

/// Decodes an input or initial state.
///
/// # Errors
///
/// `body` is not valid JSON of the type.
pub fn decode_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, RecordError> {
    Ok(serde_json::from_slice(body)?)
}

/// Encodes a value as JSON.
pub(crate) fn encode_json(value: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::new();
    put_json(&mut text, value);
    text
}

/// Appends a value as JSON to `out`. Recorded types can always be encoded: map keys are strings and
/// no serializer fails.
pub(crate) fn put_json(out: &mut Vec<u8>, value: &impl Serialize) {
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        out.clear();
        out.extend_from_slice(b"null");
        debug_assert!(false, "{error}");
    }
}
