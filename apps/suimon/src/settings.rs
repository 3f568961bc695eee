//! Arguments `KEY=VALUE` for the keys of a table inside a resource, such as its offloads.

use clap::builder::ValueParser;
use serde_json::{Map, Value};
use suimon_contract::{Form, Key, ResourceKind, rename_of_old_key};

use crate::exit::Failure;
use crate::key_flags::parse_value;
use crate::key_help;

/// Argument `KEY=VALUE`, or `KEY=default`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    key: &'static str,
    /// Value in a merge patch; `Null` for the default.
    value: Value,
}

/// Returns a parser of settings for a table of this kind.
pub(crate) fn parser(kind: ResourceKind) -> ValueParser {
    ValueParser::new(move |text: &str| parse(kind, text))
}

/// Returns the names of the keys that can be set, separated by commas, for help and errors.
pub(crate) fn key_names(kind: ResourceKind) -> String {
    let keys: Vec<_> = kind.keys().iter().map(|key| key.name).collect();
    keys.join(", ")
}

/// Returns the long help of an argument `KEY=VALUE`: `help`, with its list of keys replaced by one
/// line for each key of the tables of these kinds.
pub(crate) fn long_help(help: &str, kinds: &[ResourceKind]) -> String {
    /// Keys that identify an object and are not settings of it.
    const IDENTITY: [&str; 3] = ["name", "node", "index"];
    let lines: String = kinds
        .iter()
        .map(|kind| {
            let keys = kind
                .keys()
                .iter()
                .filter(|key| !IDENTITY.contains(&key.name) && !matches!(key.form, Form::Table(_)));
            key_help::settings_help(*kind, keys)
        })
        .collect();
    let help = help.split_once(" The keys are ").map_or(help, |(text, _)| text);
    format!("{help}\n\nKeys:\n{}", lines.trim_end())
}

/// Returns the merge patch of the table with the given settings.
pub(crate) fn merge_patch(settings: &[Setting]) -> Result<Map<String, Value>, Failure> {
    let mut table = Map::new();
    for Setting { key, value } in settings {
        if table.insert((*key).to_owned(), value.clone()).is_some() {
            return Err(Failure::Usage(format!("`{key}` is given twice; give it once")));
        }
    }
    Ok(table)
}

/// Parses one setting of a table of this kind.
pub(crate) fn parse(kind: ResourceKind, text: &str) -> Result<Setting, String> {
    let Some((name, value_text)) = text.split_once('=') else {
        let only_flags = kind.keys().iter().all(|key| key.form == Form::Flag);
        let forms = if only_flags { "KEY=on, KEY=off" } else { "KEY=VALUE" };
        return Err(format!("must be {forms} or KEY=default; the keys are {}", key_names(kind)));
    };
    let name = rename_of_old_key(kind, name).map_or(name, |rename| rename.new);
    let Some(key) = kind.key(name) else {
        return Err(format!("no key `{name}` exists; the keys are {}", key_names(kind)));
    };
    Ok(Setting { key: key.name, value: parse_setting_value(key, value_text)? })
}

/// Parses a value of a key; `Null` for the default.
pub(crate) fn parse_setting_value(key: &Key, value_text: &str) -> Result<Value, String> {
    let value = match (key.form, value_text) {
        (_, "default") => return Ok(Value::Null),
        // `true` and `false`, as in options and the host file, are accepted, too.
        (Form::Flag, "on" | "true") => Value::Bool(true),
        (Form::Flag, "off" | "false") => Value::Bool(false),
        (Form::Flag, _) => {
            return Err(format!("`{}` must be on, off or default, not `{value_text}`", key.name));
        }
        (form, _) => parse_value(form, value_text),
    };
    if key.form.accepts(&value) {
        Ok(value)
    } else {
        Err(format!(
            "`{}` must be {} or default, not `{value_text}`",
            key.name,
            key.form.describe()
        ))
    }
}
