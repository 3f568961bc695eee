//! Properties of the OpenAPI document that generators of clients and tests depend on.

use std::collections::BTreeSet;

use serde_json::Value;

fn document() -> Value {
    serde_json::from_str(&crate::api::openapi_document().unwrap()).unwrap()
}

/// Returns every operation with its method and path.
fn operations(document: &Value) -> Vec<(String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter();
            methods.map(move |(method, operation)| (format!("{method} {path}"), operation.clone()))
        })
        .collect()
}

#[test]
fn operations_have_unique_names_that_begin_with_a_verb() {
    let document = document();
    let mut names = BTreeSet::new();
    let verbs = [
        "abandon", "activate", "add", "apply", "cancel", "capture", "change", "check", "compact",
        "compare", "connect", "convert", "create", "delete", "drain", "export", "follow",
        "forecast", "freeze", "init", "inspect", "kill", "leave", "list", "measure", "merge",
        "migrate", "move", "pause", "prepare", "relink", "remove", "reopen", "repair", "replace",
        "request", "reset", "resume", "show", "snapshot", "start", "stop", "thaw", "undrain",
        "wait", "withdraw",
    ];
    for (endpoint, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert!(verbs.contains(&id.split('_').next().unwrap()), "{endpoint}: {id}");
        assert!(names.insert(id.clone()), "{id} twice");
        assert!(operation["summary"].is_string() || operation["description"].is_string(), "{id}");
    }
}

#[test]
fn refusals_are_described() {
    let document = document();
    for (endpoint, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        let has_response = |status: &str| responses.contains_key(status);
        assert!(!responses.keys().any(|status| status.contains('X')), "{endpoint}: {responses:?}");
        assert!(has_response("401") && has_response("500"), "{endpoint}");
        assert_eq!(has_response("403"), endpoint != "get /metrics", "{endpoint}");
        assert!(!endpoint.contains('{') || has_response("404"), "{endpoint}");
        if operation.get("requestBody").is_some() {
            for status in ["400", "408", "409", "413", "422"] {
                assert!(has_response(status), "{endpoint} {status}");
            }
        }
    }
}

#[test]
fn links_lead_to_operations_with_their_parameters() {
    let document = document();
    let operations = operations(&document);
    let mut linked = BTreeSet::new();
    for (endpoint, operation) in &operations {
        for response in operation["responses"].as_object().unwrap().values() {
            for (name, link) in response["links"].as_object().into_iter().flatten() {
                let id = link["operationId"].as_str().unwrap();
                let target =
                    operations.iter().find(|(_, operation)| operation["operationId"] == id);
                let (_, target) = target.unwrap_or_else(|| panic!("{endpoint}: {name}: {id}"));
                for parameter in link["parameters"].as_object().unwrap().keys() {
                    let parameters = target["parameters"].as_array().unwrap();
                    assert!(
                        parameters.iter().any(|described| described["name"] == **parameter),
                        "{endpoint}: {name}"
                    );
                }
                linked.insert(id.to_owned());
            }
        }
    }
    for id in ["show_nic", "delete_disk", "change_vm", "wait_operation", "show_arrival"] {
        assert!(linked.contains(id), "{id} of {linked:?}");
    }
}

#[test]
fn whole_numbers_of_requests_have_a_range() {
    let document = document();
    for (endpoint, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            check_ranges(&document, &parameter["schema"], &mut BTreeSet::new(), &endpoint);
        }
        for content in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            check_ranges(&document, &content.1["schema"], &mut BTreeSet::new(), &endpoint);
        }
    }
}

fn check_ranges(document: &Value, schema: &Value, visited: &mut BTreeSet<String>, endpoint: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        if visited.insert(reference.to_owned()) {
            let component = document.pointer(&reference[1..]).unwrap();
            check_ranges(document, component, visited, &format!("{endpoint} {reference}"));
        }
        return;
    }
    let is_whole = schema["type"] == "integer"
        || schema["type"]
            .as_array()
            .is_some_and(|types| types.iter().any(|type_name| type_name == "integer"));
    let is_bounded = schema.get("enum").is_some()
        || (schema["minimum"].is_number() && schema["maximum"].is_number());
    assert!(!is_whole || is_bounded, "{endpoint}: {schema}");
    for property in schema["properties"].as_object().into_iter().flatten() {
        check_ranges(document, property.1, visited, &format!("{endpoint}.{}", property.0));
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for subschema in schema[key].as_array().into_iter().flatten() {
            check_ranges(document, subschema, visited, endpoint);
        }
    }
    if schema["items"].is_object() {
        check_ranges(document, &schema["items"], visited, endpoint);
    }
}

#[test]
fn changed_values_may_be_of_any_type() {
    let document = document();
    let change = &document["components"]["schemas"]["FieldChange"]["properties"];
    for name in ["from", "to"] {
        assert_eq!(change[name].get("type"), None, "{name}: {}", change[name]);
    }
}

#[test]
fn bodies_that_are_configuration_have_an_example() {
    let document = document();
    let mut count = 0;
    for (endpoint, operation) in operations(&document) {
        let content = &operation["requestBody"]["content"]["application/json"];
        let reference = content["schema"]["$ref"].as_str().unwrap_or_default();
        if reference.ends_with("Config") {
            assert!(content["example"].is_object(), "{endpoint}");
            count += 1;
        }
    }
    assert!(count >= 22, "{count}");
}

#[test]
fn renamed_fields_and_paths_are_deprecated_beside_the_new_ones() {
    let document = document();
    for rename in suimon_contract::RENAMES {
        match rename.item {
            suimon_contract::RenamedItem::Field { schema } => {
                let properties = &document["components"]["schemas"][schema]["properties"];
                assert!(properties[rename.new].is_object(), "{rename:?}");
                assert_eq!(properties[rename.old]["deprecated"], true, "{rename:?}");
            }
            suimon_contract::RenamedItem::ApiPath => {
                let get_operation = |path: &str| document["paths"][path]["get"].clone();
                assert!(get_operation(rename.new)["deprecated"].is_null(), "{rename:?}");
                assert_eq!(get_operation(rename.old)["deprecated"], true, "{rename:?}");
            }
            _ => {}
        }
    }
}
