//! Old names in host files and request bodies: both names of a key are accepted, and the tree of
//! values contains the new one afterwards.

use serde_json::{Map, Value};

use crate::finding::{Finding, FindingLocation};
use crate::renames::{OldName, Rename, renamed_fields};
use crate::{ErrorCode, Form, Kind};

/// Replaces old names in an object of this component by the new ones. If both names are present
/// with the same value, the old one is removed, without a call of `found`.
///
/// # Errors
/// Renames of which both names are present with different values; never empty. Of these, both names
/// remain in the table.
pub(crate) fn accept(
    schema: &str,
    table: &mut Map<String, Value>,
    mut found: impl FnMut(&'static Rename),
) -> Result<(), Vec<&'static Rename>> {
    let mut conflicts = Vec::new();
    for rename in renamed_fields(schema) {
        let Some(old) = table.get(rename.old) else { continue };
        match table.get(rename.new) {
            Some(new) if new != old => conflicts.push(rename),
            Some(_) => {
                table.remove(rename.old);
            }
            None => {
                if let Some(value) = table.remove(rename.old) {
                    table.insert(rename.new.to_owned(), value);
                }
                found(rename);
            }
        }
    }
    if conflicts.is_empty() { Ok(()) } else { Err(conflicts) }
}

/// Returns the message about two names of one key with different values.
pub(crate) fn conflict(rename: &Rename) -> String {
    format!(
        "has another value than its old name `{}`, which means the same; remove `{}`",
        rename.old, rename.old
    )
}

/// Replaces old names in a table of the host file and its nested tables. Returns a fault for each
/// key whose names have different values.
pub(crate) fn accept_table(
    place: FindingLocation,
    table: &mut Map<String, Value>,
    old_names: &mut Vec<OldName>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    accept_nested(place, place.kind, "", table, old_names, &mut findings);
    findings
}

fn accept_nested(
    place: FindingLocation,
    kind: Kind,
    prefix: &str,
    table: &mut Map<String, Value>,
    old_names: &mut Vec<OldName>,
    findings: &mut Vec<Finding>,
) {
    let name = table.get("name").filter(|name| Form::Name.accepts(name));
    let name = name.and_then(Value::as_str).map(str::to_owned);
    let conflicts = accept(kind.schema_name(), table, |rename| {
        old_names.push(OldName {
            resource: place.resource(name.as_deref().filter(|_| prefix.is_empty())),
            field: format!("{prefix}{}", rename.old),
            rename,
            file: None,
            line: None,
        });
    });
    for rename in conflicts.err().unwrap_or_default() {
        let field = format!("{prefix}{}", rename.new);
        findings.push(place.finding(ErrorCode::InvalidValue, &field, conflict(rename)));
        table.remove(rename.old);
    }
    for key in kind.keys() {
        match (key.form, table.get_mut(key.name)) {
            (Form::Table(inner), Some(Value::Object(table))) => {
                let prefix = format!("{prefix}{}.", key.name);
                accept_nested(place, inner, &prefix, table, old_names, findings);
            }
            (Form::Tables(inner), Some(Value::Array(tables))) => {
                for (index, table) in tables.iter_mut().enumerate() {
                    let Value::Object(table) = table else { continue };
                    let prefix = format!("{prefix}{}[{index}].", key.name);
                    accept_nested(place, inner, &prefix, table, old_names, findings);
                }
            }
            _ => {}
        }
    }
}
