//! Conversion of desired state to a host file, for `suimon export`: keys in the order of the
//! reference, without defaults.

use core::fmt::Write;

use serde_json::{Map, Value};
use toml_edit::{Array, InlineTable, Value as TomlValue};

use crate::{ByteSize, Form, HostConfig, ResourceKind, as_table, key_default};

/// Returns the host file that [`parse_toml`](crate::parse_toml) parses to `config`, provided that
/// `config` is valid.
pub fn to_toml(config: &HostConfig) -> String {
    let mut out = String::new();
    let file = as_table(config);
    for kind in ResourceKind::ALL {
        let word = kind.noun();
        match file.get(word) {
            Some(Value::Object(section)) if !section.is_empty() => {
                write_table(&mut out, kind, &format!("[{word}]"), section);
            }
            Some(Value::Array(tables)) => {
                for table in tables.iter().filter_map(Value::as_object) {
                    write_table(&mut out, kind, &format!("[[{word}]]"), table);
                }
            }
            _ => {}
        }
    }
    out
}

fn write_table(out: &mut String, kind: ResourceKind, header: &str, table: &Map<String, Value>) {
    if !out.is_empty() {
        out.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{header}");
    let mut inner_tables = Vec::new();
    for key in kind.keys() {
        let Some(value) = table.get(key.name) else { continue };
        if let (Form::Table(inner), Value::Object(inner_table)) = (key.form, value) {
            inner_tables.push((inner, format!("[{}.{}]", kind.noun(), key.name), inner_table));
        } else if let (Form::Tables(inner), Value::Array(tables)) = (key.form, value) {
            let header = format!("[[{}.{}]]", kind.noun(), key.name);
            let tables = tables.iter().filter_map(Value::as_object);
            inner_tables.extend(tables.map(|table| (inner, header.clone(), table)));
        } else if key_default(kind, key.name).as_ref() != Some(value) {
            let _ = writeln!(out, "{} = {}", key.name, preferred_toml_value(key.form, value));
        }
    }
    for (inner, header, inner_table) in inner_tables {
        write_table(out, inner, &header, inner_table);
    }
}

/// Returns a value in the notation preferred by users: sizes with their unit.
fn preferred_toml_value(form: Form, value: &Value) -> TomlValue {
    let size = value.as_u64().map(ByteSize::new).filter(|size| size.is_exact_in_larger_unit());
    match (form, size) {
        (Form::Bytes { .. }, Some(size)) => TomlValue::from(size.to_string()),
        _ => to_toml_value(value),
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
