//! Policies whose records are JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use suimon_quantity::Time;

use crate::{Fault, Kind};

/// A policy that can be begun and driven by what was recorded of it.
pub trait Policy: Sized {
    /// Which it is.
    const KIND: Kind;
    /// What it begins with.
    type Birth: Serialize + DeserializeOwned;
    /// What it is told.
    type Input: Serialize + DeserializeOwned;
    /// What it decides.
    type Decision: Serialize;

    /// Begins it.
    ///
    /// # Errors
    /// Why it does not begin so.
    fn begin(at: Time, birth: Self::Birth) -> Result<Self, String>;

    /// Tells it something.
    fn step(&mut self, at: Time, input: &Self::Input) -> Self::Decision;
}

/// What a policy is told or begins with.
///
/// # Errors
/// It is nothing that it could be told.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    Ok(serde_json::from_slice(body)?)
}

/// The text of something.
pub(crate) fn text(of: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::new();
    put_text(&mut text, of);
    text
}

/// Adds the text of something. What is recorded here can all be written: there are no maps
/// whose keys are no texts, and nothing that fails.
pub(crate) fn put_text(out: &mut Vec<u8>, of: &impl Serialize) {
    if let Err(error) = serde_json::to_writer(&mut *out, of) {
        out.clear();
        out.extend_from_slice(b"null");
        debug_assert!(false, "{error}");
    }
}
