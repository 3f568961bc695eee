//! The reference page of the REST API, from its OpenAPI document.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

const INTRODUCTION: &str = "<!-- Made by `cargo xtask docs` of contract/openapi.json. -->\n\n# REST API\n\n\
HTTP/1.1 with JSON on the Unix socket of the daemon (`/run/suimon/suimon.sock` by default), and with `[api]` \
on TCP with TLS and a bearer token. `suimon openapi` prints the OpenAPI 3.1 document with all types, ranges, \
patterns, defaults and examples; this page lists its operations. [renames.md](renames.md) lists old names, \
which stay valid until a later version.\n\n\
A request that changes desired state returns 202 with an operation and its path in the header `Location`. \
`GET /1.0/operations/{id}/wait` returns when the operation has ended. With `dry_run=true` the request returns \
200 with the plan and changes nothing. `null` stands for an absent key without a default; in a merge patch it \
removes the key.\n\n\
A response that is not a success has an `ErrorBody` with one or more errors; [errors.md](errors.md) lists \
their codes.\n\n";

/// Methods in the order of the page.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Returns the reference page of the REST API.
pub(super) fn page(document: &Value) -> Result<String> {
    let mut text = INTRODUCTION.to_owned();
    statuses(&mut text, document)?;
    let mut tags: BTreeMap<&str, Vec<Request<'_>>> = BTreeMap::new();
    let paths = document["paths"].as_object().context("the OpenAPI document has no paths")?;
    for (path, item) in paths {
        for method in METHODS {
            let operation = &item[method];
            // Old paths of renamed ones are on the page of renames.
            if operation.is_object() && operation["deprecated"] != true {
                let tag = operation["tags"][0].as_str().context("an operation has no tag")?;
                tags.entry(tag).or_default().push(Request { method, path, operation });
            }
        }
    }
    for (tag, requests) in tags {
        section(&mut text, document, tag, &requests)?;
    }
    Ok(text)
}

/// An operation with its method and path.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    operation: &'a Value,
}

fn statuses(text: &mut String, document: &Value) -> Result<()> {
    text.push_str("## Statuses\n\n| status | meaning |\n|---|---|\n");
    text.push_str(
        "| 101 | The connection carries the protocol that `Upgrade` names from then on. |\n",
    );
    text.push_str(
        "| 200 | Success. |\n| 202 | Accepted: the body is an operation or a request. |\n",
    );
    text.push_str("| 204 | Success without a body. |\n");
    let responses = document["components"]["responses"].as_object();
    let responses = responses.context("the OpenAPI document has no responses")?;
    let mut meanings = BTreeMap::new();
    for item in document["paths"].as_object().into_iter().flatten().map(|(_, item)| item) {
        for operation in METHODS.iter().map(|method| &item[*method]) {
            for (status, response) in operation["responses"].as_object().into_iter().flatten() {
                let name =
                    response["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
                let meaning = name.and_then(|name| responses[name]["description"].as_str());
                if let Some(meaning) = meaning {
                    meanings.insert(status, meaning);
                }
            }
        }
    }
    for (status, meaning) in meanings {
        text.push_str(&format!("| {status} | {} |\n", cell(meaning)));
    }
    text.push('\n');
    Ok(())
}

fn section(text: &mut String, document: &Value, tag: &str, requests: &[Request<'_>]) -> Result<()> {
    text.push_str(&format!("## {tag}\n\n"));
    text.push_str("| request | body | statuses | command | description |\n|---|---|---|---|---|\n");
    let mut parameters = BTreeSet::new();
    for request in requests {
        let Request { method, path, operation } = request;
        let statuses: Vec<&str> = operation["responses"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(s, _)| s.as_str())
            .collect();
        let summary = operation["summary"].as_str().context("an operation has no summary")?;
        let description = operation["description"].as_str().unwrap_or_default();
        let command = operation["x-suimon-command"].as_str();
        text.push_str(&format!(
            "| `{} {path}` | {} | {} | {} | {} |\n",
            method.to_uppercase(),
            body(operation),
            statuses.join(", "),
            command.map_or("–".to_owned(), |command| format!("`{command}`")),
            cell(format!("{summary} {description}").trim()),
        ));
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            parameters.extend(parameter_row(document, parameter));
        }
    }
    text.push('\n');
    if !parameters.is_empty() {
        text.push_str("| parameter | in | value | meaning |\n|---|---|---|---|\n");
        parameters.iter().for_each(|row| text.push_str(row));
        text.push('\n');
    }
    Ok(())
}

/// Returns the types of the body.
fn body(operation: &Value) -> String {
    let content = operation["requestBody"]["content"].as_object();
    let types = content.into_iter().flatten().map(|(_, media)| type_name(&media["schema"]));
    let types: BTreeSet<String> = types.collect();
    if types.is_empty() {
        "–".to_owned()
    } else {
        types.into_iter().collect::<Vec<_>>().join(", ")
    }
}

/// Returns the row of a parameter; `None` for names and numbers in paths, which explain themselves.
fn parameter_row(document: &Value, parameter: &Value) -> Option<String> {
    let (name, location) = (parameter["name"].as_str()?, parameter["in"].as_str()?);
    let meaning = parameter["description"].as_str().unwrap_or_default();
    if location == "path" && meaning.is_empty() {
        return None;
    }
    let mut schema = &parameter["schema"];
    if let Some(reference) = schema["$ref"].as_str() {
        schema = document.pointer(reference.trim_start_matches('#')).unwrap_or(schema);
    }
    let mut value = type_name(schema);
    for (key, word) in [("minimum", "from"), ("maximum", "to"), ("default", "default")] {
        if !schema[key].is_null() {
            value.push_str(&format!(" {word} {}", schema[key]));
        }
    }
    Some(format!("| `{name}` | {location} | {} | {} |\n", cell(&value), cell(meaning)))
}

/// Returns the name of a type: of a reference, its last part.
fn type_name(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return format!("`{}`", reference.rsplit('/').next().unwrap_or_default());
    }
    if let Some(values) = schema["enum"].as_array() {
        let quoted: Vec<String> =
            values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`")).collect();
        return quoted.join(", ");
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        return format!("`{pattern}`");
    }
    match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "object".to_owned(),
    }
}

/// Returns text as the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
