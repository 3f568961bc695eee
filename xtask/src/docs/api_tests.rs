use serde_json::json;

use super::page;

#[test]
fn a_request_is_shown_with_body_statuses_command_and_parameters() {
    let document = json!({
        "components": {
            "responses": {"NotFound": {"description": "No | such\nobject."}},
            "schemas": {"Count": {"type": "integer", "minimum": 1, "default": 5}},
        },
        "paths": {"/1.0/vms/{name}/stop": {"post": {
            "tags": ["vms"], "summary": "Stops.", "description": "It\nwaits.",
            "x-suimon-command": "suimon vm stop",
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/x/StopVmRequest"}}}},
            "responses": {"202": {}, "404": {"$ref": "#/components/responses/NotFound"}},
            "parameters": [
                {"name": "name", "in": "path", "schema": {"type": "string"}},
                {"name": "n", "in": "query", "description": "Number.",
                 "schema": {"$ref": "#/components/schemas/Count"}},
            ],
        }}},
    });
    let page = page(&document).unwrap();
    for line in [
        "| `POST /1.0/vms/{name}/stop` | `StopVmRequest` | 202, 404 | `suimon vm stop` | Stops. It waits. |",
        "| 404 | No \\| such object. |",
        "| `n` | query | integer from 1 default 5 | Number. |",
    ] {
        assert!(page.lines().any(|actual| actual == line), "{line}\n{page}");
    }
    assert!(!page.contains("| `name` |"), "{page}");
}

#[test]
fn an_operation_without_a_tag_is_refused() {
    let document =
        json!({"components": {"responses": {}}, "paths": {"/": {"get": {"summary": "x"}}}});
    assert!(page(&document).is_err());
}
