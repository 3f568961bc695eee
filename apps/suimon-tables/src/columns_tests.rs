use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

const DOCUMENT: &str = include_str!("../../../contract/openapi.json");

/// Returns the schema that a reference names, or the schema itself.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let of_option = schema["oneOf"].as_array().or_else(|| schema["allOf"].as_array());
    let schema = of_option
        .and_then(|alternatives| {
            alternatives.iter().find(|alternative| alternative["$ref"].is_string())
        })
        .unwrap_or(schema);
    match schema["$ref"].as_str() {
        Some(reference) => document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("no {reference}")),
        None => schema,
    }
}

/// Returns true if a value of the schema has a field at this path.
fn has_field(document: &Value, schema: &Value, path: &str) -> bool {
    let schema = resolved(document, schema);
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, is_list) = match first.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (first, false),
    };
    let mut field = &schema["properties"][name];
    if field.is_null() {
        return false;
    }
    if is_list {
        field = &resolved(document, field)["items"];
    }
    rest.is_empty() || has_field(document, field, rest)
}

#[test]
fn fields_of_columns_are_fields_of_the_api() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    for columns in TABLES {
        let Some(name) = columns.schema else { continue };
        let schema = &document["components"]["schemas"][name];
        assert!(schema.is_object(), "the API has no schema {name}");
        for column in columns.columns {
            for field in column.json_fields.split(", ").filter(|field| !field.is_empty()) {
                let exists = has_field(&document, schema, field);
                assert!(exists, "{:?}: {}: {name} has no {field}", columns.commands, column.title);
            }
        }
    }
}

#[test]
fn fields_of_top_are_in_its_json() {
    let rates = serde_json::to_value(crate::top::example::example()).unwrap();
    for columns in TABLES.iter().filter(|columns| columns.schema.is_none()) {
        let first = columns.json_path.split(", ").next().unwrap_or_default();
        let row = match first.strip_suffix("[]") {
            Some(list) => &rates[list][0],
            None => &rates[first],
        };
        assert!(row.is_object(), "{}: {rates}", columns.json_path);
        for field in columns.columns.iter().flat_map(|column| column.json_fields.split(", ")) {
            // The reason is present only while power is unknown.
            if field == "unavailable_reason" {
                continue;
            }
            let pointer = format!("/{}", field.replace("[]", "/0").replace('.', "/"));
            assert!(row.pointer(&pointer).is_some(), "{}: no {field} in {row}", columns.json_path);
        }
    }
}

#[test]
fn columns_have_a_meaning_and_tables_are_unique() {
    let mut names = BTreeSet::new();
    for columns in TABLES {
        for column in columns.columns {
            assert!(column.meaning.ends_with('.'), "{}: {}", column.title, column.meaning);
        }
        assert!(
            names.insert((columns.commands, columns.row_object)),
            "{} occurs twice",
            columns.row_object
        );
    }
}

#[test]
fn every_table_is_on_the_page() {
    let sources = [
        include_str!("columns/cluster.rs"),
        include_str!("columns/data_plane.rs"),
        include_str!("columns/host.rs"),
        include_str!("columns/network.rs"),
        include_str!("columns/sriov.rs"),
        include_str!("columns/storage.rs"),
        include_str!("columns/top.rs"),
    ];
    let defined: usize = sources.iter().map(|text| text.matches(": Columns = ").count()).sum();
    assert_eq!(TABLES.len(), defined);
}
