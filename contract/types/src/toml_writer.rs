//! Conversion of desired state to a host file, for `suimon export`: keys in the order of the
//! reference, without defaults.

use core::fmt::Write;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml_edit::{Array, InlineTable, Value as TomlValue};

use crate::examples::example_of;
use crate::{ByteSize, Form, HostConfig, Key, Kind};

/// Returns the host file that [`parse_toml`](crate::parse_toml) parses to `config`, provided that
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
    if let Some(console) = &config.console {
        write_table(&mut out, Kind::Console, "[console]", &object(console));
    }
    if let Some(lab) = &config.lab {
        write_table(&mut out, Kind::Lab, "[lab]", &object(lab));
    }
    if let Some(power) = &config.power {
        write_table(&mut out, Kind::Power, "[power]", &object(power));
    }
    if let Some(cluster) = &config.cluster {
        write_table(&mut out, Kind::Cluster, "[cluster]", &object(cluster));
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
    for store in &config.stores {
        write_table(&mut out, Kind::Store, "[[store]]", &object(store));
    }
    for policy in &config.qos_policies {
        write_table(&mut out, Kind::QosPolicy, "[[qos_policy]]", &object(policy));
    }
    for disk in &config.disks {
        write_table(&mut out, Kind::Disk, "[[disk]]", &object(disk));
    }
    for vm in &config.vms {
        write_table(&mut out, Kind::Vm, "[[vm]]", &object(vm));
    }
    for pf in &config.pfs {
        write_table(&mut out, Kind::Pf, "[[pf]]", &object(pf));
    }
    for node in &config.nodes {
        write_table(&mut out, Kind::Node, "[[node]]", &object(node));
    }
    out
}

/// Returns the default value of a key; `None` if the key is required or absence is not equivalent
/// to any value.
pub fn default_of(kind: Kind, key: &str) -> Option<Value> {
    // Asked for each key of each object that is written, and for help at each start of a program.
    static DEFAULTS: Mutex<BTreeMap<(Kind, &str), Option<Value>>> = Mutex::new(BTreeMap::new());
    let known = kind.key(key)?;
    let mut defaults = DEFAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    defaults.entry((kind, known.name)).or_insert_with(|| find_default(kind, known)).clone()
}

fn find_default(kind: Kind, known: &Key) -> Option<Value> {
    if known.required {
        return None;
    }
    let minimal = example_of(kind)?;
    let full = filled_in_as(kind, &minimal)?;
    if let Some(value) = full.get(known.name) {
        return Some(value.clone());
    }
    if !known.has_default {
        return None;
    }
    // Types do not serialize some defaults. The default is then the candidate that changes nothing.
    candidates(known.form).into_iter().find(|value| {
        let mut written = minimal.clone();
        if let Value::Object(table) = &mut written {
            table.insert(known.name.to_owned(), value.clone());
        }
        filled_in_as(kind, &written).as_ref() == Some(&full)
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

fn filled_in_as(kind: Kind, minimal: &Value) -> Option<Map<String, Value>> {
    match kind {
        Kind::Switch => filled_in::<crate::SwitchConfig>(minimal),
        Kind::Uplink => filled_in::<crate::UplinkConfig>(minimal),
        Kind::Team => filled_in::<crate::TeamConfig>(minimal),
        Kind::Nic => filled_in::<crate::NicConfig>(minimal),
        Kind::Store => filled_in::<crate::StoreConfig>(minimal),
        Kind::QosPolicy => filled_in::<crate::QosPolicyConfig>(minimal),
        Kind::Disk => filled_in::<crate::DiskConfig>(minimal),
        Kind::Vm => filled_in::<crate::VmConfig>(minimal),
        Kind::Lab => filled_in::<crate::LabConfig>(minimal),
        Kind::Power => filled_in::<crate::PowerConfig>(minimal),
        Kind::Cluster => filled_in::<crate::ClusterConfig>(minimal),
        Kind::ClusterTls => filled_in::<crate::ClusterTls>(minimal),
        Kind::Pf => filled_in::<crate::PfConfig>(minimal),
        Kind::Vf => filled_in::<crate::VfConfig>(minimal),
        Kind::Node => filled_in::<crate::NodeConfig>(minimal),
        Kind::Vmq => filled_in::<crate::VmqConfig>(minimal),
        Kind::DiskQos => filled_in::<crate::DiskQos>(minimal),
        Kind::DiskVhostUser => filled_in::<crate::DiskVhostUser>(minimal),
        Kind::DiskNbd => filled_in::<crate::DiskNbd>(minimal),
        Kind::Offload => filled_in::<crate::OffloadConfig>(minimal),
        Kind::File | Kind::Host | Kind::Api | Kind::Console => None,
    }
}

/// Returns a table with the defaults of absent keys.
fn filled_in<T: Serialize + DeserializeOwned>(minimal: &Value) -> Option<Map<String, Value>> {
    Some(object(&serde_json::from_value::<T>(minimal.clone()).ok()?))
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
            inner_tables.push((inner, format!("[{}.{}]", kind.word(), key.name), inner_table));
        } else if let (Form::Tables(inner), Value::Array(tables)) = (key.form, value) {
            let header = format!("[[{}.{}]]", kind.word(), key.name);
            let tables = tables.iter().filter_map(Value::as_object);
            inner_tables.extend(tables.map(|table| (inner, header.clone(), table)));
        } else if default_of(kind, key.name).as_ref() != Some(value) {
            let _ = writeln!(out, "{} = {}", key.name, written(key.form, value));
        }
    }
    for (inner, header, inner_table) in inner_tables {
        write_table(out, inner, &header, inner_table);
    }
}

/// Returns a value in the notation preferred by users: sizes with their unit.
fn written(form: Form, value: &Value) -> TomlValue {
    let size = value.as_u64().map(ByteSize::new).filter(|size| size.has_unit());
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
