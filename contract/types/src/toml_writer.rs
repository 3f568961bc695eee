//! Desired state as a host file, for `suimon export`: keys in the order of the
//! reference, defaults left out.

use core::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value};
use toml_edit::{Array, InlineTable, Value as TomlValue};

use crate::{Form, HostConfig, Kind};

/// The host file that [`parse_toml`](crate::parse_toml) reads as `config`, if
/// `config` is valid.
pub fn to_toml(config: &HostConfig) -> String {
    let mut out = String::new();
    let host = object(&config.host);
    if !host.is_empty() {
        write_table(&mut out, Kind::Host, "[host]", &host);
    }
    if let Some(api) = &config.api {
        write_table(&mut out, Kind::Api, "[api]", &object(api));
    }
    for uplink in &config.uplinks {
        write_table(&mut out, Kind::Uplink, "[[uplink]]", &object(uplink));
    }
    for team in &config.teams {
        write_table(&mut out, Kind::Team, "[[team]]", &object(team));
    }
    for switch in &config.switches {
        write_table(&mut out, Kind::Switch, "[[switch]]", &object(switch));
    }
    for nic in &config.nics {
        write_table(&mut out, Kind::Nic, "[[nic]]", &object(nic));
    }
    out
}

/// The value a key has when it is not written, or `None` if that is no value.
pub fn default_of(kind: Kind, key: &str) -> Option<Value> {
    let minimal = match kind {
        Kind::Switch => r#"{"name":"a","kind":"private"}"#,
        Kind::Uplink => r#"{"name":"a","device":"a"}"#,
        Kind::Nic => r#"{"name":"a","switch":"a","backend":"tap"}"#,
        Kind::Team => r#"{"name":"a","members":["a"],"mode":"static"}"#,
        Kind::Offload | Kind::Vmq => "{}",
        Kind::File | Kind::Host | Kind::Api => return None,
    };
    if kind.key(key)?.required {
        return None;
    }
    let full = match kind {
        Kind::Switch => object(&serde_json::from_str::<crate::SwitchConfig>(minimal).ok()?),
        Kind::Uplink => object(&serde_json::from_str::<crate::UplinkConfig>(minimal).ok()?),
        Kind::Team => object(&serde_json::from_str::<crate::TeamConfig>(minimal).ok()?),
        Kind::Nic => object(&serde_json::from_str::<crate::NicConfig>(minimal).ok()?),
        Kind::Vmq => object(&serde_json::from_str::<crate::VmqConfig>(minimal).ok()?),
        _ => object(&serde_json::from_str::<crate::OffloadConfig>(minimal).ok()?),
    };
    full.get(key).cloned()
}

fn object<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(table)) => table,
        _ => Map::new(),
    }
}

fn write_table(out: &mut String, kind: Kind, header: &str, table: &Map<String, Value>) {
    if !out.is_empty() {
        out.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{header}");
    let mut inner_tables = Vec::new();
    for key in kind.keys() {
        let Some(value) = table.get(key.name) else { continue };
        if let (Form::Table(inner), Value::Object(inner_table)) = (key.form, value) {
            inner_tables.push((inner, key.name, inner_table));
        } else if default_of(kind, key.name).as_ref() != Some(value) {
            let _ = writeln!(out, "{} = {}", key.name, to_toml_value(value));
        }
    }
    for (inner, name, inner_table) in inner_tables {
        write_table(out, inner, &format!("[{}.{name}]", kind.word()), inner_table);
    }
}

fn to_toml_value(value: &Value) -> TomlValue {
    match value {
        Value::Bool(flag) => TomlValue::from(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(number) => TomlValue::from(number),
            None => TomlValue::from(number.as_f64().unwrap_or(f64::MAX)),
        },
        Value::String(text) => TomlValue::from(text.as_str()),
        Value::Array(items) => TomlValue::from(Array::from_iter(items.iter().map(to_toml_value))),
        Value::Object(table) => {
            let pairs = table.iter().map(|(key, value)| (key.as_str(), to_toml_value(value)));
            TomlValue::from(InlineTable::from_iter(pairs))
        }
        Value::Null => TomlValue::from(""),
    }
}

#[cfg(test)]
#[path = "toml_writer_tests.rs"]
mod tests;
