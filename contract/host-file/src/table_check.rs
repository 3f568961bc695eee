//! Check of one table against the table of keys, so that every invalid key is reported by name.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::finding::{ERRORS_MAX, Finding, FindingLocation};
use crate::renamed_input::replace_old_names_in_table;
use crate::{ErrorCode, Form, Key, ResourceKind, quote};

/// Largest length in characters of an unknown key for which a similar key is suggested.
const SUGGESTION_CHARS_MAX: usize = 40;

/// Replaces old names of keys in `table`, checks it and deserializes it.
///
/// # Errors
/// Every fault of its keys and values; never empty.
pub(crate) fn read_table<T: DeserializeOwned>(
    location: FindingLocation,
    mut table: Map<String, Value>,
) -> Result<T, Vec<Finding>> {
    let mut findings = replace_old_names_in_table(location, &mut table, &mut Vec::new());
    findings.extend(check_table(location, &table));
    if !findings.is_empty() {
        return Err(findings);
    }
    drop_nulls(&mut table);
    serde_json::from_value(Value::Object(table)).map_err(|error| {
        vec![Finding {
            location,
            field: None,
            code: ErrorCode::Malformed,
            message: error.to_string(),
        }]
    })
}

/// Removes keys with the value null, JSON's notation of an absent key.
fn drop_nulls(table: &mut Map<String, Value>) {
    table.retain(|_, value| !value.is_null());
    for value in table.values_mut() {
        if let Value::Object(inner) = value {
            inner.retain(|_, value| !value.is_null());
        }
    }
}

/// Removes nulls that a merge patch left at optional keys, where removing an absent key has no
/// effect. Nulls at other keys remain and are reported by [`check_table`].
pub(crate) fn remove_nulls_of_optional_keys(kind: ResourceKind, table: &mut Map<String, Value>) {
    let is_removed = |name: &str| kind.key(name).is_some_and(|key| !key.required);
    table.retain(|name, value| !(value.is_null() && is_removed(name)));
    for (name, value) in table {
        if let (Some(Form::Table(inner)), Value::Object(table)) =
            (kind.key(name).map(|key| key.form), value)
        {
            remove_nulls_of_optional_keys(inner, table);
        }
    }
}

/// Returns every fault of the keys and values of `table`, without rules that relate several keys.
pub(crate) fn check_table(location: FindingLocation, table: &Map<String, Value>) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_keys(location, location.kind, "", table, CheckMode::Whole, &mut findings);
    findings
}

/// Returns every fault of a merge patch of a table: keys may be absent, and null removes optional
/// keys.
pub(crate) fn check_patch(location: FindingLocation, patch: &Map<String, Value>) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_keys(location, location.kind, "", patch, CheckMode::Patch, &mut findings);
    findings
}

/// Whether a table is complete or a merge patch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckMode {
    Whole,
    Patch,
}

fn check_keys(
    location: FindingLocation,
    kind: ResourceKind,
    prefix: &str,
    table: &Map<String, Value>,
    mode: CheckMode,
    findings: &mut Vec<Finding>,
) {
    for (name, value) in table {
        if findings.len() >= ERRORS_MAX {
            return;
        }
        let field = format!("{prefix}{name}");
        match kind.key(name) {
            None => findings.push(location.finding(
                ErrorCode::UnknownKey,
                &quote(&field),
                unknown_key(kind, name),
            )),
            Some(key) => check_value(location, key, &field, value, mode, findings),
        }
    }
    if mode == CheckMode::Patch {
        return;
    }
    for key in kind.keys().iter().filter(|key| key.required && !table.contains_key(key.name)) {
        findings.push(location.finding(
            ErrorCode::MissingKey,
            &format!("{prefix}{}", key.name),
            missing_key(kind, key),
        ));
    }
}

fn check_value(
    location: FindingLocation,
    key: &Key,
    field: &str,
    value: &Value,
    mode: CheckMode,
    findings: &mut Vec<Finding>,
) {
    if key.form.accepts(value) {
        // The tables in the file are resources, which are checked separately.
        if location.kind == ResourceKind::File {
            return;
        }
        if let (Form::Table(inner), Value::Object(table)) = (key.form, value) {
            check_keys(location, inner, &format!("{field}."), table, mode, findings);
        }
        if let (Form::Tables(inner), Value::Array(tables)) = (key.form, value) {
            for (index, table) in tables.iter().enumerate() {
                let Value::Object(table) = table else { continue };
                let prefix = format!("{field}[{index}].");
                check_keys(location, inner, &prefix, table, CheckMode::Whole, findings);
            }
        }
        return;
    }
    if value.is_null() && (key.permits_null() || (mode == CheckMode::Patch && !key.required)) {
        return;
    }
    let code =
        if key.form.is_right_type(value) { ErrorCode::InvalidValue } else { ErrorCode::Malformed };
    let message = format!("must be {}, not {}", key.form.describe(), quote(&value.to_string()));
    findings.push(location.finding(code, field, message));
}

fn missing_key(kind: ResourceKind, key: &Key) -> String {
    match kind {
        ResourceKind::DiskVhostUser => {
            format!("missing; set it to {}, or remove the table", key.form.describe())
        }
        ResourceKind::Api => format!(
            "missing; a TCP listener needs an address, TLS and a token: set `{}` to {}",
            key.name,
            key.form.describe()
        ),
        _ => format!("missing; set it to {}", key.form.describe()),
    }
}

fn unknown_key(kind: ResourceKind, name: &str) -> String {
    let similar = (name.chars().count() <= SUGGESTION_CHARS_MAX)
        .then(|| {
            kind.keys()
                .iter()
                .map(|key| (strsim::osa_distance(name, key.name), key.name))
                .min()
                .filter(|(distance, key)| *distance <= 1 + key.len() / 4)
        })
        .flatten();
    match similar {
        Some((_, key)) => format!("the key does not exist; did you mean `{key}`?"),
        None => {
            let keys: Vec<_> = kind.keys().iter().map(|key| format!("`{}`", key.name)).collect();
            format!("the key does not exist; the keys here are {}", keys.join(", "))
        }
    }
}

#[cfg(test)]
#[path = "table_check_tests.rs"]
mod tests;
