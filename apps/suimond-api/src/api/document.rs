//! Parts of the OpenAPI document derived from rules: constraints of configuration keys, error
//! responses, authentication, links between operations.

use suimon_contract::{
    ErrorBody, ErrorCode, RENAMES, RenamedItem, ResourceKind, command_of, describe_keys,
    describe_renames, kind_example,
};
use utoipa::ToSchema;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::link::Link;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Deprecated, OpenApi, Ref, RefOr, Required, Response, Schema};

/// Extension of an operation with the name of its command.
const COMMAND: &str = "x-suimon-command";

/// Name of the security scheme.
const TOKEN: &str = "token";

/// Error response: status, name of its component, meaning.
struct ErrorResponse {
    status: u16,
    name: &'static str,
    meaning: &'static str,
}

const MALFORMED: ErrorResponse = ErrorResponse {
    status: 400,
    name: "Malformed",
    meaning: "The body is not JSON, or a value has the wrong type.",
};
const UNAUTHORIZED: ErrorResponse = ErrorResponse {
    status: 401,
    name: "Unauthorized",
    meaning: "The bearer token is missing or wrong. Only over TCP: the Unix socket requires none. The \
              response to a wrong token is delayed by 0.25 to 10 s, and its connection is closed.",
};
const FORBIDDEN: ErrorResponse = ErrorResponse {
    status: 403,
    name: "Forbidden",
    meaning: "The token permits reading metrics only (only over TCP), or the host denies the daemon a \
              permission that the request needs.",
};
const NOT_FOUND: ErrorResponse = ErrorResponse {
    status: 404,
    name: "NotFound",
    meaning: "No object has the name or number in the path.",
};
const BODY_TIMEOUT: ErrorResponse = ErrorResponse {
    status: 408,
    name: "BodyTimeout",
    meaning: "The body of the request was not received within 10 s.",
};
const CONFLICT: ErrorResponse = ErrorResponse {
    status: 409,
    name: "Conflict",
    meaning: "The object exists already or is in use, or its present state does not permit the request.",
};
const TOO_LARGE: ErrorResponse = ErrorResponse {
    status: 413,
    name: "BodyTooLarge",
    meaning: "The body of the request is larger than 4 MiB.",
};
const UNPROCESSABLE: ErrorResponse = ErrorResponse {
    status: 422,
    name: "Unprocessable",
    meaning: "A key or parameter is unknown or missing, a value is out of its range, or a rule is \
              violated that JSON Schema cannot express, such as a reference to a missing resource.",
};
const UPGRADE_REQUIRED: ErrorResponse = ErrorResponse {
    status: 426,
    name: "UpgradeRequired",
    meaning: "The header `Upgrade` does not name the protocol of this operation.",
};
const HOST_ERROR: ErrorResponse = ErrorResponse {
    status: 500,
    name: "HostError",
    meaning: "An error of the host or of the daemon prevented the request.",
};

const REFUSALS: [ErrorResponse; 10] = [
    MALFORMED,
    UNAUTHORIZED,
    FORBIDDEN,
    NOT_FOUND,
    BODY_TIMEOUT,
    CONFLICT,
    TOO_LARGE,
    UNPROCESSABLE,
    UPGRADE_REQUIRED,
    HOST_ERROR,
];

/// Status in a handler's description that stands for the errors that a host can cause. [`complete`]
/// replaces it by the actual statuses.
const HOST_ERRORS: &str = "4XX";

/// Completes a document generated from the descriptions of the handlers.
pub(super) fn complete(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    describe_keys(&mut components.schemas);
    describe_renames(&mut components.schemas);
    components.schemas.values_mut().for_each(close_tagged);
    components.responses.extend(
        REFUSALS.iter().map(|refusal| (refusal.name.to_owned(), RefOr::T(refusal.response()))),
    );
    let mut token = Http::new(HttpAuthScheme::Bearer);
    token.description =
        Some("Token in the file that `token_file` of `[api]` names. Over TCP only.".to_owned());
    components.add_security_scheme(TOKEN, SecurityScheme::Http(token));
    let no_scopes: [&str; 0] = [];
    document.security =
        Some(vec![SecurityRequirement::default(), SecurityRequirement::new(TOKEN, no_scopes)]);

    let operation_ids: Vec<String> = document
        .paths
        .paths
        .values()
        .flat_map(operations)
        .filter_map(|operation| operation.operation_id.clone())
        .collect();
    for (path, item) in &mut document.paths.paths {
        for operation in operations_mut(item) {
            add_error_responses(path, operation);
            link(path, operation, &operation_ids);
            describe_body(operation);
            describe_responses(operation);
            name_command(operation);
        }
    }
    describe_old_paths(document);
}

/// Adds the old paths of renamed ones, with deprecated operations.
fn describe_old_paths(document: &mut OpenApi) {
    let last = |path: &'static str| path.rsplit('/').next().unwrap_or(path);
    for rename in RENAMES.iter().filter(|rename| rename.item == RenamedItem::ApiPath) {
        let Some(mut item) = document.paths.paths.get(rename.new).cloned() else { continue };
        for operation in operations_mut(&mut item) {
            operation.deprecated = Some(Deprecated::True);
            operation.description = Some(format!(
                "Use `{}`. Version {} removes this path.",
                rename.new, rename.removed_in
            ));
            let id = operation.operation_id.take();
            operation.operation_id = id.map(|id| id.replace(last(rename.new), last(rename.old)));
        }
        document.paths.paths.insert(rename.old.to_owned(), item);
    }
}

impl ErrorResponse {
    fn response(&self) -> Response {
        let mut description = self.meaning.to_owned();
        let codes: Vec<String> = ErrorCode::ALL
            .into_iter()
            .filter(|code| code.http_status() == self.status)
            .map(|code| format!("`{code}`"))
            .collect();
        if !codes.is_empty() {
            description.push_str(&format!(" Codes: {}.", codes.join(", ")));
        }
        let body = Ref::from_schema_name(ErrorBody::name());
        Response::builder()
            .description(description)
            .content("application/json", Content::new(Some(body)))
            .build()
    }
}

/// Adds the name of the equivalent command of `suimon`.
fn name_command(operation: &mut Operation) {
    let command = operation.operation_id.as_deref().and_then(command_of);
    if let Some(command) = command {
        operation.extensions =
            Some(Extensions::from_iter([(COMMAND, format!("suimon {command}"))]));
    }
}

/// Adds the error responses that every operation has.
fn add_error_responses(path: &str, operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let has_host_errors = responses.remove(HOST_ERRORS).is_some();
    responses.remove("5XX");
    responses.remove("404");
    let is_upgraded = responses.contains_key("101");
    let has_body = operation.request_body.is_some();
    let has_parameters = operation.parameters.as_ref().is_some_and(|parameters| {
        parameters.iter().any(|parameter| parameter.parameter_in == ParameterIn::Query)
    });
    let mut refusals = vec![UNAUTHORIZED, HOST_ERROR];
    // The metrics token permits this path and no other.
    if path != crate::tcp_api::METRICS_PATH {
        refusals.push(FORBIDDEN);
    }
    if has_host_errors || has_parameters || has_body {
        refusals.push(MALFORMED);
    }
    if has_host_errors || path.contains('{') {
        refusals.push(NOT_FOUND);
    }
    if has_host_errors || has_parameters {
        refusals.push(UNPROCESSABLE);
    }
    if has_host_errors {
        refusals.push(CONFLICT);
    }
    if has_body {
        refusals.extend([BODY_TIMEOUT, TOO_LARGE]);
    }
    if is_upgraded {
        refusals.push(UPGRADE_REQUIRED);
    }
    for refusal in refusals {
        let reference = Ref::from_response_name(refusal.name);
        operation.responses.responses.insert(refusal.status.to_string(), reference.into());
    }
}

/// Returns a link that passes one parameter. utoipa 5.5 serializes the field `operationId` in snake
/// case, so it is added as an extension.
fn link_to(operation_id: &str, parameter: &str, value: &str) -> Link {
    let id = Extensions::from_iter([("operationId", operation_id)]);
    Link::builder().parameter(parameter, value).extensions(Some(id)).build()
}

/// Adds missing descriptions of responses, and the header `Location` of accepted changes.
fn describe_responses(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            response.description = match status.as_str() {
                "101" => "The connection carries the protocol that `Upgrade` names.",
                "202" => "Accepted. The body is the operation or request that was created.",
                "204" => "Done.",
                _ => "Success.",
            }
            .to_owned();
        }
        let begins_operation = response.content.values().any(|content| {
            let Some(RefOr::Ref(reference)) = &content.schema else { return false };
            reference.ref_location.ends_with("/Operation")
        });
        if status == "202" && begins_operation {
            let path = ObjectBuilder::new().schema_type(Type::String);
            let header = HeaderBuilder::new()
                .schema(path.build())
                .description(Some("Path of the operation."))
                .build();
            response.headers.insert("Location".to_owned(), header);
        }
    }
}

/// Excludes additional keys from the variants of an externally tagged enum.
fn close_tagged(schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::OneOf(one_of)) = schema else { return };
    for item in &mut one_of.items {
        let RefOr::T(Schema::Object(object)) = item else { continue };
        if object.properties.len() == 1 && object.required.len() == 1 {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
    }
}

/// Adds links to the operations that usually follow this one.
fn link(path: &str, operation: &mut Operation, operation_ids: &[String]) {
    let Some(id) = operation.operation_id.clone() else { return };
    let is_known = |id: &String| operation_ids.contains(id);
    let mut add = |status: &str, name: &str, operation_id: String, parameter: &str, value: &str| {
        let response = operation.responses.responses.get_mut(status);
        let Some(RefOr::T(response)) = response.filter(|_| is_known(&operation_id)) else { return };
        response.links.insert(name.to_owned(), link_to(&operation_id, parameter, value).into());
    };
    let operation_id = "$response.body#/id";
    if !matches!(id.as_str(), "request_lab_run") {
        for (name, target) in [
            ("operation", "show_operation"),
            ("wait", "wait_operation"),
            ("follow", "follow_operation"),
            ("cancel", "cancel_operation"),
        ] {
            add("202", name, target.to_owned(), "id", operation_id);
        }
    }
    if let Some(kind) = id.strip_prefix("add_") {
        for verb in ["show", "change", "replace", "delete"] {
            add("202", verb, format!("{verb}_{kind}"), "name", "$request.body#/name");
        }
    }
    if let Some(kind) = id.strip_prefix("show_").filter(|_| path.ends_with("/{name}")) {
        for verb in ["change", "replace", "delete"] {
            add("200", verb, format!("{verb}_{kind}"), "name", "$request.path.name");
        }
    }
    match id.as_str() {
        "list_operations" => {
            add("200", "operation", "show_operation".to_owned(), "id", "$response.body#/0/id");
        }
        "show_operation" => {
            add("200", "cancel", "cancel_operation".to_owned(), "id", "$request.path.id");
        }
        "prepare_arrival" => {
            for verb in ["show", "activate", "abandon"] {
                add("202", verb, format!("{verb}_arrival"), "id", "$request.body#/id");
            }
        }
        "request_lab_run" => {
            add("202", "withdraw", "withdraw_lab_request".to_owned(), "id", operation_id);
        }
        "list_lab_runs" => {
            for (name, target) in [("run", "show_lab_run"), ("report", "show_lab_report")] {
                add("200", name, target.to_owned(), "id", "$response.body#/0/id");
            }
        }
        _ => {}
    }
}

/// Sets whether the body is required, and adds an example to configuration bodies.
fn describe_body(operation: &mut Operation) {
    let Some(body) = &mut operation.request_body else { return };
    body.required = Some(Required::True);
    for content in body.content.values_mut() {
        // The body is optional, and null is not accepted as a body.
        if let Some(RefOr::T(Schema::OneOf(one_of))) = &mut content.schema
            && let Some(RefOr::Ref(reference)) = one_of.items.pop()
        {
            content.schema = Some(reference.into());
            body.required = Some(Required::False);
        }
        let Some(RefOr::Ref(reference)) = &content.schema else { continue };
        let name = reference.ref_location.rsplit('/').next().unwrap_or_default();
        let kind = ResourceKind::ALL.into_iter().find(|kind| kind.schema_name() == name);
        content.example = kind.and_then(kind_example);
    }
}

fn operations(item: &PathItem) -> impl Iterator<Item = &Operation> {
    [&item.get, &item.put, &item.post, &item.patch, &item.delete].into_iter().flatten()
}

fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete]
        .into_iter()
        .flatten()
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
