//! JSON text as a tree of values in which every key of an object is unique.
//!
//! `serde_json` silently keeps the last of several values with the same key. In a configuration the
//! others would be lost unnoticed, while TOML rejects duplicate keys.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::quote;

/// Parses JSON text.
///
/// # Errors
/// The text is not JSON, or an object contains a key twice.
pub fn parse_json(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).map(|JsonTree(value)| value)
}

/// JSON value without duplicate keys in its objects.
struct JsonTree(Value);

impl<'de> Deserialize<'de> for JsonTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    /// JSON and JSON Schema do not distinguish `1.0` from `1` (RFC 8259, section 6): both are
    /// integers.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        if value.fract() == 0.0
            && let Ok(integer) = format!("{value:.0}").parse::<i64>()
        {
            return Ok(Value::Number(integer.into()));
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(JsonTree(value)) = elements.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Map::new();
        while let Some((key, JsonTree(value))) = entries.next_entry::<String, _>()? {
            if table.contains_key(&key) {
                let text = format!("the key `{}` is present twice", quote(&key));
                return Err(A::Error::custom(text));
            }
            table.insert(key, value);
        }
        Ok(Value::Object(table))
    }
}
