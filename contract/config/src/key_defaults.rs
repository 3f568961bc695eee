//! Defaults of keys, derived from the configuration types.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::examples::kind_example;
use crate::kind_type::with_type;
use crate::{Form, Key, ResourceKind};

/// Returns the default value of a key; `None` if the key is required or absence is not equivalent
/// to any value.
pub fn key_default(kind: ResourceKind, key: &str) -> Option<Value> {
    // The result is cached: writers of objects call this function for each key, and the command
    // line calls it for its help at each start.
    static DEFAULTS: Mutex<BTreeMap<(ResourceKind, &str), Option<Value>>> =
        Mutex::new(BTreeMap::new());
    let definition = kind.key(key)?;
    let mut defaults = DEFAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    defaults
        .entry((kind, definition.name))
        .or_insert_with(|| find_default(kind, definition))
        .clone()
}

fn find_default(kind: ResourceKind, key: &Key) -> Option<Value> {
    if key.required {
        return None;
    }
    let minimal = kind_example(kind)?;
    let full = filled_in_as(kind, &minimal)?;
    if let Some(value) = full.get(key.name) {
        return Some(value.clone());
    }
    if !key.has_default {
        return None;
    }
    // Some types omit a default value when they are serialized. The default of such a key is the
    // candidate that, given explicitly, results in the same table as the absent key.
    candidates(key.form).into_iter().find(|value| {
        let mut explicit = minimal.clone();
        if let Value::Object(table) = &mut explicit {
            table.insert(key.name.to_owned(), value.clone());
        }
        filled_in_as(kind, &explicit).as_ref() == Some(&full)
    })
}

/// Returns every value of a form that permits few values (Booleans, keywords), and the empty array
/// for arrays of tables; empty for all other forms.
fn candidates(form: Form) -> Vec<Value> {
    match form {
        Form::Flag => vec![false.into(), true.into()],
        Form::OneOfKeywords(words) => words.iter().map(|word| Value::from(*word)).collect(),
        Form::Tables(_) => vec![Value::Array(Vec::new())],
        _ => Vec::new(),
    }
}

/// Returns the table `minimal` of this kind with the defaults of absent keys; `None` if it does not
/// match the kind's type.
fn filled_in_as(kind: ResourceKind, minimal: &Value) -> Option<Map<String, Value>> {
    with_type!(kind, Config => filled_in::<Config>(minimal))
}

/// Returns the table `minimal` with the defaults of absent keys; `None` if it does not match `T`.
fn filled_in<T: Serialize + DeserializeOwned>(minimal: &Value) -> Option<Map<String, Value>> {
    Some(as_table(&serde_json::from_value::<T>(minimal.clone()).ok()?))
}

/// Converts a table of the configuration to JSON; empty if a path in it is not UTF-8.
pub fn as_table<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(table)) => table,
        _ => Map::new(),
    }
}
