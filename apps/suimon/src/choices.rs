//! Parsers of flags with a fixed set of values defined in the contract.

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns a parser that accepts one of `values`, as serialized by the API.
pub(crate) fn one_of_parser<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    values: &'static [&'static str],
) -> ValueParser {
    let read = |value: String| serde_json::from_value::<T>(Value::from(value));
    PossibleValuesParser::new(values).try_map(read).into()
}
