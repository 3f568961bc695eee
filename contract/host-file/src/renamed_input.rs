//! Old names in tables of host files and request bodies: both names of a key are accepted, and the
//! tree of values contains the new one afterwards.

use serde_json::{Map, Value};

use crate::finding::{Finding, FindingLocation};
use crate::{ErrorCode, Form, OldNameUse, ResourceKind, name_conflict_message, replace_old_names};

/// Replaces old names in a table of the host file and its nested tables. Returns a fault for each
/// key whose names have different values.
pub(crate) fn replace_old_names_in_table(
    location: FindingLocation,
    table: &mut Map<String, Value>,
    old_names: &mut Vec<OldNameUse>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    accept_nested(location, location.kind, "", table, old_names, &mut findings);
    findings
}

fn accept_nested(
    location: FindingLocation,
    kind: ResourceKind,
    prefix: &str,
    table: &mut Map<String, Value>,
    old_names: &mut Vec<OldNameUse>,
    findings: &mut Vec<Finding>,
) {
    let name = table.get("name").filter(|name| Form::Name.accepts(name));
    let name = name.and_then(Value::as_str).map(str::to_owned);
    let conflicts = replace_old_names(kind.schema_name(), table, |rename| {
        old_names.push(OldNameUse {
            resource: location.resource_label(name.as_deref().filter(|_| prefix.is_empty())),
            field: format!("{prefix}{}", rename.old),
            rename,
            file: None,
            line: None,
        });
    });
    for rename in conflicts.err().unwrap_or_default() {
        let field = format!("{prefix}{}", rename.new);
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            &field,
            name_conflict_message(rename),
        ));
        table.remove(rename.old);
    }
    for key in kind.keys() {
        match (key.form, table.get_mut(key.name)) {
            (Form::Table(inner), Some(Value::Object(table))) => {
                let prefix = format!("{prefix}{}.", key.name);
                accept_nested(location, inner, &prefix, table, old_names, findings);
            }
            (Form::Tables(inner), Some(Value::Array(tables))) => {
                for (index, table) in tables.iter_mut().enumerate() {
                    let Value::Object(table) = table else { continue };
                    let prefix = format!("{prefix}{}[{index}].", key.name);
                    accept_nested(location, inner, &prefix, table, old_names, findings);
                }
            }
            _ => {}
        }
    }
}
