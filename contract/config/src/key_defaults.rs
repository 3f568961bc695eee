//! Defaults of keys, derived from the configuration types.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::examples::example_of;
use crate::kind_type::with_type;
use crate::{Form, Key, ResourceKind};

/// Returns the default value of a key; `None` if the key is required or absence is not equivalent
/// to any value.
pub fn default_of(kind: ResourceKind, key: &str) -> Option<Value> {
    // Asked for each key of each object that is written, and for help at each start of a program.
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
    let minimal = example_of(kind)?;
    let full = filled_in_as(kind, &minimal)?;
    if let Some(value) = full.get(key.name) {
        return Some(value.clone());
    }
    if !key.has_default {
        return None;
    }
    // Types do not serialize some defaults. The default is then the candidate that changes nothing.
    candidates(key.form).into_iter().find(|value| {
        let mut explicit = minimal.clone();
        if let Value::Object(table) = &mut explicit {
            table.insert(key.name.to_owned(), value.clone());
        }
        filled_in_as(kind, &explicit).as_ref() == Some(&full)
    })
}

/// Returns all values of a form with few values.
fn candidates(form: Form) -> Vec<Value> {
    match form {
        Form::Flag => vec![false.into(), true.into()],
        Form::OneOf(words) => words.iter().map(|word| Value::from(*word)).collect(),
        Form::Tables(_) => vec![Value::Array(Vec::new())],
        _ => Vec::new(),
    }
}

/// Returns a table of this kind with the defaults of absent keys.
fn filled_in_as(kind: ResourceKind, minimal: &Value) -> Option<Map<String, Value>> {
    with_type!(kind, Config => filled_in::<Config>(minimal))
}

/// Returns a table with the defaults of absent keys.
fn filled_in<T: Serialize + DeserializeOwned>(minimal: &Value) -> Option<Map<String, Value>> {
    Some(as_table(&serde_json::from_value::<T>(minimal.clone()).ok()?))
}

/// Returns a table of the configuration as a tree of values.
pub fn as_table<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(table)) => table,
        _ => Map::new(),
    }
}
