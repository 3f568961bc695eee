//! Parser of the host file: TOML text to desired state, with the line of each error.

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::document::{read_document, replace_old_names_in_document};
use crate::toml_lines::TomlLines;
use crate::{ApiError, ErrorCode, HostConfig, OldNameUse, RENAMES, RenamedItem};

/// Largest host file in bytes.
pub const TOML_BYTES_MAX: usize = 1 << 20;
/// Largest nesting depth that is examined. The deepest keys, such as `nic[0].offload.KEY`, have
/// depth 4.
const DEPTH_MAX: usize = 6;
/// Largest number of reported syntax errors; further ones usually result from the first.
const SYNTAX_ERRORS_MAX: usize = 8;

/// Parses and validates a host file. `file` is its name for error messages.
///
/// # Errors
/// Every fault, with line, resource and key as far as known; never empty. If the text is not valid
/// TOML, only syntax errors are reported.
pub fn parse_toml(text: &str, file: Option<&str>) -> Result<HostConfig, Vec<ApiError>> {
    let located = |mut error: ApiError, line: Option<usize>| {
        error.file = file.map(str::to_owned);
        error.line = line;
        error
    };
    if text.len() > TOML_BYTES_MAX {
        let message = format!(
            "the file has {} bytes, the limit is {TOML_BYTES_MAX}; split it or remove comments",
            text.len()
        );
        return Err(vec![located(ApiError::new(ErrorCode::Malformed, message), None)]);
    }
    let mut lines = TomlLines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .take(SYNTAX_ERRORS_MAX)
            .map(|error| {
                let line = error.span().map(|span| lines.line_of(span.start));
                let message =
                    format!("the file is not valid TOML: {}", error.message().replace('\n', "; "));
                located(ApiError::new(ErrorCode::Malformed, message), line)
            })
            .collect());
    }
    let root = to_json_table(table.get_ref(), "", 0, &mut lines);
    read_document(root).map_err(|errors| {
        let mut errors: Vec<_> = errors
            .into_iter()
            .map(|located_error| {
                let line =
                    lines.line_of_key(&located_error.path, located_error.error.field.as_deref());
                located(located_error.error, line)
            })
            .collect();
        errors.sort_by_key(|error| error.line);
        errors
    })
}

/// Returns the old names in a host file, with their lines; empty if the text is not valid TOML.
/// `file` is its name for warnings.
pub fn old_names_in_file(text: &str, file: Option<&str>) -> Vec<OldNameUse> {
    if text.len() > TOML_BYTES_MAX {
        return Vec::new();
    }
    let mut lines = TomlLines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Vec::new();
    }
    let mut root = to_json_table(table.get_ref(), "", 0, &mut lines);
    let tables = root.clone();
    let mut old_names = replace_old_names_in_document(&mut root);
    for old in &mut old_names {
        let path = old.resource.as_deref().and_then(|resource| path_of(&tables, resource));
        old.line = path.and_then(|path| lines.line_of_key(&path, Some(&old.field)));
        old.file = file.map(str::to_owned);
    }
    old_names.sort_by_key(|old| old.line);
    old_names
}

/// Adds file and line to errors that name a resource and were found after parsing, such as a device
/// that does not exist.
pub fn locate_errors(text: &str, file: Option<&str>, errors: &mut [ApiError]) {
    if text.len() > TOML_BYTES_MAX || errors.iter().all(|error| error.line.is_some()) {
        return;
    }
    let mut lines = TomlLines::new(text);
    let (table, _) = DeTable::parse_recoverable(text);
    let root = to_json_table(table.get_ref(), "", 0, &mut lines);
    for error in errors.iter_mut().filter(|error| error.line.is_none()) {
        let Some(resource) = &error.resource else { continue };
        let Some(path) = path_of(&root, resource) else { continue };
        error.line = lines.line_of_key(&path, error.field.as_deref());
        if error.line.is_some() {
            error.file = file.map(str::to_owned);
        }
    }
}

/// Returns the path of the table of a resource: `nic[2]` for `nic/web`; `None` if the file does not
/// contain the resource.
fn path_of(root: &Map<String, Value>, resource: &str) -> Option<String> {
    let Some((kind, name)) = resource.split_once('/') else {
        return Some(resource.to_owned());
    };
    let tables = root.get(kind)?.as_array()?;
    let has_name = |table: &Value| table.get("name").is_some_and(|value| value == name);
    let index = tables.iter().position(has_name)?;
    Some(format!("{kind}[{index}]"))
}

/// Converts the table to JSON, the input of the checks, and records the line of every key in
/// `lines`. Values nested deeper than any key are omitted, since the memory for their paths would
/// grow with the square of the file size.
fn to_json_table(
    table: &DeTable<'_>,
    path: &str,
    depth: usize,
    lines: &mut TomlLines,
) -> Map<String, Value> {
    let mut json = Map::new();
    if depth >= DEPTH_MAX {
        return json;
    }
    for (key, value) in table {
        let name = key.get_ref();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        lines.record(path.clone(), key.span().start);
        note_new_names(&path, name, key.span().start, lines);
        json.insert(name.to_string(), to_json(value, &path, depth + 1, lines));
    }
    json
}

/// Records the line of a key with an old name for its new names too, since errors state the new
/// ones.
fn note_new_names(path: &str, name: &str, offset: usize, lines: &mut TomlLines) {
    for rename in RENAMES.iter().filter(|rename| rename.old == name) {
        let is_field = matches!(rename.item, RenamedItem::Field { .. });
        if let Some(table) = path.strip_suffix(name).filter(|_| is_field) {
            lines.record_if_absent(format!("{table}{}", rename.new), offset);
        }
    }
}

fn to_json(value: &Spanned<DeValue<'_>>, path: &str, depth: usize, lines: &mut TomlLines) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Integer(number) => integer(number.as_str(), number.radix()),
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .map_or_else(|_| Value::from(number.as_str()), Value::from),
        // No key accepts a date. An object matches none of the keys that accept a number or text.
        DeValue::Datetime(date) => {
            let mut object = Map::new();
            object.insert("date".to_owned(), Value::from(date.to_string()));
            Value::Object(object)
        }
        DeValue::Array(_) if depth >= DEPTH_MAX => Value::Array(Vec::new()),
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    let path = format!("{path}[{index}]");
                    lines.record(path.clone(), item.span().start);
                    to_json(item, &path, depth + 1, lines)
                })
                .collect(),
        ),
        DeValue::Table(table) => Value::Object(to_json_table(table, path, depth, lines)),
    }
}

/// Converts an integer. One beyond 64 bits becomes a value outside the range of every key.
fn integer(digits: &str, radix: u32) -> Value {
    let parsed = i128::from_str_radix(digits, radix).ok();
    match parsed {
        Some(number) => match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) => Value::from(number),
            _ => Value::from(u64::MAX),
        },
        None => Value::from(u64::MAX),
    }
}

#[cfg(test)]
#[path = "toml_file_tests.rs"]
mod tests;
