//! Flags whose values are a few words of the contract.

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads one of these words as the contract writes it.
pub(crate) fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
) -> ValueParser {
    let read = |word: String| serde_json::from_value::<T>(Value::from(word));
    PossibleValuesParser::new(words).try_map(read).into()
}
