//! Components of configuration agree with the parser and with the types.

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::*;
use crate::form_schema::tests::is_valid;
use crate::{HostConfig, kind_example};

fn types() -> Components {
    let mut schemas = vec![(HostConfig::name().into_owned(), HostConfig::schema())];
    HostConfig::schemas(&mut schemas);
    schemas.into_iter().collect()
}

fn components() -> Map<String, Value> {
    let mut components = types();
    describe_keys(&mut components);
    let Value::Object(schemas) = serde_json::to_value(components).unwrap() else { panic!() };
    schemas
}

fn is_valid_table(schemas: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let schema = &schemas[name];
    let Some(table) = value.as_object() else { return false };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    required.iter().all(|key| table.contains_key(key.as_str().unwrap()))
        && table.iter().all(|(key, value)| {
            let property = &schema["properties"][key];
            property.is_object() && is_valid(property, value)
        })
}

#[test]
fn every_kind_has_a_component_with_every_key() {
    let schemas = components();
    for kind in ResourceKind::ALL {
        let schema = &schemas[kind.schema_name()];
        assert_eq!(schema["additionalProperties"], false, "{kind:?}");
        for key in kind.keys() {
            let property = &schema["properties"][key.name];
            assert!(property["description"].is_string(), "{kind:?} {}: {property}", key.name);
            let is_defaulted = !property["default"].is_null();
            let default = key_default(kind, key.name).filter(|_| key.has_default);
            assert_eq!(is_defaulted, default.is_some(), "{kind:?} {}: {property}", key.name);
            if let Form::OneOfKeywords(words) = key.form {
                assert_eq!(enum_of(&schemas, property), words, "{kind:?} {}", key.name);
            }
        }
    }
}

/// Returns the keywords of a property, or of the component that it refers to.
fn enum_of(schemas: &Map<String, Value>, property: &Value) -> Vec<String> {
    if let Some(reference) = property["$ref"].as_str() {
        return enum_of(schemas, &schemas[reference.rsplit('/').next().unwrap()]);
    }
    if let Some(items) = property["oneOf"].as_array() {
        return items.iter().flat_map(|alternative| enum_of(schemas, alternative)).collect();
    }
    let words = property["enum"].as_array().cloned().unwrap_or_default();
    words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

#[test]
fn null_is_admitted_where_the_type_has_no_default() {
    let (types, schemas) = (types(), components());
    for kind in ResourceKind::ALL {
        let RefOr::T(Schema::Object(object)) = &types[kind.schema_name()] else { panic!() };
        for key in kind.keys().iter().filter(|key| !key.required) {
            let of_type = serde_json::to_string(&object.properties[key.name]).unwrap();
            let label = format!("{kind:?} {}", key.name);
            assert_eq!(of_type.contains("\"null\""), key.permits_null(), "{label}: {of_type}");
            let of_key = schemas[kind.schema_name()]["properties"][key.name].to_string();
            assert_eq!(of_key.contains("\"null\""), key.permits_null(), "{label}: {of_key}");
        }
    }
}

#[test]
fn examples_are_valid() {
    let schemas = components();
    for (kind, example) in
        ResourceKind::ALL.into_iter().filter_map(|kind| Some((kind, kind_example(kind)?)))
    {
        assert!(is_valid_table(&schemas, kind.schema_name(), &example), "{kind:?} {example}");
    }
}

#[test]
fn patches_admit_null_for_optional_keys() {
    let schemas = components();
    for (patch, valid) in [
        (json!({}), true),
        (json!({ "vlan": null, "mtu": null, "offload": null }), true),
        (json!({ "vlan": 7, "offload": { "tx_checksum": null } }), true),
        (json!({ "switch": null }), false),
        (json!({ "vlan": 4095 }), false),
        (json!({ "colour": 1 }), false),
    ] {
        assert_eq!(is_valid_table(&schemas, "NicConfigPatch", &patch), valid, "{patch}");
    }
}
