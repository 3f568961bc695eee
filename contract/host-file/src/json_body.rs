//! Configuration in JSON bodies: whole resources and merge patches. They pass the same checks as
//! the host file, so that errors name the key.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::document::{read_document, replace_old_names_in_document};
use crate::finding::FindingLocation;
use crate::renamed_input::replace_old_names_in_table;
use crate::{
    ApiError, ApplyRequest, ClusterConfig, ErrorCode, HostConfig, Name, OldNameUse, PowerConfig,
    Resource, ResourceKind, from_value_with_renames, locate_errors, old_names_in_file, parse_json,
    parse_toml, quote, table_check,
};

/// Largest accepted body in bytes.
pub const JSON_BYTES_MAX: usize = 4 << 20;
/// Largest nesting depth at which a patch is merged; configuration has two levels.
const PATCH_DEPTH_MAX: usize = 8;

/// Parses the body of a `POST` or `PUT` of one resource. [`validate`](crate::validate) checks
/// references to other resources afterwards.
///
/// # Errors
/// Every fault of its keys; never empty.
pub fn parse_resource<T: Resource>(body: &[u8]) -> Result<T, Vec<ApiError>> {
    let table = object(body)?;
    read_resource(table)
}

/// Applies a JSON merge patch (RFC 7386) to a resource: keys in the patch replace those of the
/// resource, `null` removes them. The name cannot change.
///
/// # Errors
/// Every fault of the result; never empty.
pub fn patch_resource<T: Resource>(resource: &T, patch: &[u8]) -> Result<T, Vec<ApiError>> {
    let patch = read_patch(T::KIND, patch)?;
    let label = format!("{}/{}", T::KIND.noun(), resource.name());
    if patch.get("name").is_some_and(|name| *name != resource.name().as_str()) {
        return Err(vec![
            ApiError::new(
                ErrorCode::InvalidValue,
                "a name cannot be changed; delete the resource and create another",
            )
            .with_resource(label)
            .with_field("name"),
        ]);
    }
    let Ok(Value::Object(mut table)) = serde_json::to_value(resource) else {
        return Err(vec![
            ApiError::new(ErrorCode::InvalidValue, "contains a path that is not UTF-8")
                .with_resource(label),
        ]);
    };
    merge(&mut table, patch, PATCH_DEPTH_MAX);
    table_check::remove_nulls_of_optional_keys(T::KIND, &mut table);
    read_resource(table)
}

/// Parses the body of `PUT /1.0/power`.
///
/// # Errors
/// Every fault of its keys; never empty.
pub fn parse_power(body: &[u8]) -> Result<PowerConfig, Vec<ApiError>> {
    read_section(ResourceKind::Power, object(body)?)
}

/// Applies a JSON merge patch (RFC 7386) to `[power]`, or to an empty table if it is absent.
///
/// # Errors
/// Every fault of the result; never empty.
pub fn patch_power(
    power: Option<&PowerConfig>,
    patch: &[u8],
) -> Result<PowerConfig, Vec<ApiError>> {
    patch_section(ResourceKind::Power, power, patch)
}

/// Parses the body of `PUT /1.0/cluster`.
///
/// # Errors
/// Every fault of its keys; never empty.
pub fn parse_cluster(body: &[u8]) -> Result<ClusterConfig, Vec<ApiError>> {
    read_section(ResourceKind::Cluster, object(body)?)
}

/// Applies a JSON merge patch (RFC 7386) to `[cluster]`, or to an empty table if it is absent.
///
/// # Errors
/// Every fault of the result; never empty.
pub fn patch_cluster(
    cluster: Option<&ClusterConfig>,
    patch: &[u8],
) -> Result<ClusterConfig, Vec<ApiError>> {
    patch_section(ResourceKind::Cluster, cluster, patch)
}

/// Checks a merge patch (RFC 7386) of a table of this kind, independent of the table that it
/// changes.
///
/// # Errors
/// Every fault of its keys and values; never empty.
pub fn check_patch(kind: ResourceKind, patch: &[u8]) -> Result<(), Vec<ApiError>> {
    let patch = read_patch(kind, patch)?;
    let findings = table_check::check_patch(FindingLocation::new(kind, 0), &patch);
    match findings.is_empty() {
        true => Ok(()),
        false => Err(findings.into_iter().map(|finding| finding.into_error(None)).collect()),
    }
}

/// Returns the old names in the body of a request that contains a table of this kind, complete or
/// as a merge patch; empty if the body is invalid.
pub fn old_names_in_table(kind: ResourceKind, body: &[u8]) -> Vec<OldNameUse> {
    let mut old_names = Vec::new();
    if let Ok(mut table) = object(body) {
        replace_old_names_in_table(FindingLocation::new(kind, 0), &mut table, &mut old_names);
    }
    old_names
}

/// Returns the old names in the body of `POST /1.0/apply`; empty if the body is invalid.
pub fn old_names_in_apply(body: &[u8]) -> Vec<OldNameUse> {
    match object(body) {
        Ok(mut table) => match (table.remove("config"), table.get("toml")) {
            (Some(Value::Object(mut config)), None) => replace_old_names_in_document(&mut config),
            (None, Some(Value::String(text))) => {
                old_names_in_file(text, table.get("file").and_then(Value::as_str))
            }
            _ => Vec::new(),
        },
        Err(_) => Vec::new(),
    }
}

/// Parses a merge patch and replaces old names of keys in it by the new ones.
fn read_patch(kind: ResourceKind, patch: &[u8]) -> Result<Map<String, Value>, Vec<ApiError>> {
    let mut patch = object(patch)?;
    let findings =
        replace_old_names_in_table(FindingLocation::new(kind, 0), &mut patch, &mut Vec::new());
    match findings.is_empty() {
        true => Ok(patch),
        false => Err(findings.into_iter().map(|finding| finding.into_error(None)).collect()),
    }
}

/// Parses the body of a request other than configuration.
///
/// # Errors
/// `malformed` or `unknown_key` if the body is not JSON or violates the type's schema,
/// `invalid_value` if a text violates the syntax of its type.
pub fn parse_request<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    parse_request_with_old_names(body).map(|(request, _)| request)
}

/// As [`parse_request`]; also returns the old names in the body.
///
/// # Errors
/// Those of [`parse_request`].
pub fn parse_request_with_old_names<T: DeserializeOwned>(
    body: &[u8],
) -> Result<(T, Vec<OldNameUse>), ApiError> {
    let (request, renames) = from_value_with_renames(tree(body)?).map_err(wrong_request)?;
    let old_names = renames.into_iter().map(|rename| OldNameUse {
        resource: None,
        field: rename.old.to_owned(),
        rename,
        file: None,
        line: None,
    });
    Ok((request, old_names.collect()))
}

#[allow(clippy::needless_pass_by_value, reason = "argument of map_err")]
fn wrong_request(error: serde_json::Error) -> ApiError {
    let text = format!("the body cannot be read: {error}");
    if let Some(name) = text.split("unknown field `").nth(1).and_then(|rest| rest.split('`').next())
    {
        return ApiError::new(ErrorCode::UnknownKey, &text).with_field(quote(name));
    }
    let violates = SCHEMA_VIOLATIONS.iter().any(|violation| text.contains(violation));
    let code = if violates { ErrorCode::Malformed } else { ErrorCode::InvalidValue };
    ApiError::new(code, text)
}

/// Beginnings of serde's messages about violations of a type's schema. Other messages come from
/// types that parse texts themselves.
const SCHEMA_VIOLATIONS: [&str; 6] = [
    "invalid type: ",
    "invalid value: ",
    "invalid length ",
    "missing field ",
    "unknown variant ",
    "did not match any variant",
];

fn patch_section<T: Serialize + DeserializeOwned>(
    kind: ResourceKind,
    section: Option<&T>,
    patch: &[u8],
) -> Result<T, Vec<ApiError>> {
    let patch = read_patch(kind, patch)?;
    let mut table = match section.map(serde_json::to_value) {
        Some(Ok(Value::Object(table))) => table,
        _ => Map::new(),
    };
    merge(&mut table, patch, PATCH_DEPTH_MAX);
    table_check::remove_nulls_of_optional_keys(kind, &mut table);
    read_section(kind, table)
}

fn read_section<T: DeserializeOwned>(
    kind: ResourceKind,
    table: Map<String, Value>,
) -> Result<T, Vec<ApiError>> {
    table_check::read_table(FindingLocation::new(kind, 0), table)
        .map_err(|findings| findings.into_iter().map(|finding| finding.into_error(None)).collect())
}

/// Parses the body of `POST /1.0/apply` and validates the host file in it.
///
/// # Errors
/// Every fault; never empty.
pub fn parse_apply(body: &[u8]) -> Result<HostConfig, Vec<ApiError>> {
    let mut table = object(body)?;
    let config = table.remove("config");
    let invalid: Vec<_> =
        table.iter().filter_map(|(key, value)| wrong_in_apply(key, value)).collect();
    if !invalid.is_empty() {
        return Err(invalid);
    }
    let request: ApplyRequest = serde_json::from_value(Value::Object(table))
        .map_err(|error| vec![malformed(&error.to_string())])?;
    match (request.toml, config) {
        (Some(toml), None) => parse_toml(&toml, request.file.as_deref()),
        (None, Some(Value::Object(config))) => read_document(config)
            .map_err(|errors| errors.into_iter().map(|located| located.error).collect()),
        (None, Some(_)) => Err(vec![malformed("`config` must be an object").with_field("config")]),
        _ => Err(vec![malformed("give either `toml` or `config`")]),
    }
}

/// Returns the error for an unknown key of [`ApplyRequest`], or a value of the wrong type; `None`
/// if neither applies.
fn wrong_in_apply(key: &str, value: &Value) -> Option<ApiError> {
    let error = match key {
        "toml" | "file" if value.is_string() => return None,
        "toml" | "file" => malformed("must be a string"),
        _ => ApiError::new(
            ErrorCode::UnknownKey,
            "the key does not exist; the keys here are `toml`, `file`, `config`",
        ),
    };
    Some(error.with_field(quote(key)))
}

/// Returns true if the body of `POST /1.0/apply` contains the host file as text (`toml`). Errors in
/// this text do not violate the API's schema.
pub fn contains_host_file(body: &[u8]) -> bool {
    host_file_in_apply(body).is_some()
}

/// Returns the host file in the body of `POST /1.0/apply`, if the body contains it as text.
pub fn host_file_in_apply(body: &[u8]) -> Option<String> {
    match serde_json::from_slice(body) {
        Ok(ApplyRequest { toml, config: None, .. }) => toml,
        _ => None,
    }
}

/// Adds file and line to errors found after the body of `POST /1.0/apply` was parsed, if the body
/// contains the host file as text.
pub fn locate_errors_of_apply(body: &[u8], errors: &mut [ApiError]) {
    if let Ok(ApplyRequest { toml: Some(text), file, .. }) = serde_json::from_slice(body) {
        locate_errors(&text, file.as_deref(), errors);
    }
}

/// Returns the error `malformed` for a body that the endpoint does not accept.
fn malformed(message: &str) -> ApiError {
    ApiError::new(ErrorCode::Malformed, format!("the body cannot be read: {message}"))
}

fn object(body: &[u8]) -> Result<Map<String, Value>, Vec<ApiError>> {
    match tree(body) {
        Ok(Value::Object(table)) => Ok(table),
        Ok(_) => Err(vec![malformed("must be a JSON object")]),
        Err(error) => Err(vec![error]),
    }
}

fn tree(body: &[u8]) -> Result<Value, ApiError> {
    if body.len() > JSON_BYTES_MAX {
        let message = format!("the body has {} bytes, the limit is {JSON_BYTES_MAX}", body.len());
        return Err(malformed(&message));
    }
    parse_json(body).map_err(|error| malformed(&error.to_string()))
}

fn read_resource<T: Resource>(table: Map<String, Value>) -> Result<T, Vec<ApiError>> {
    let name = table.get("name").and_then(Value::as_str).and_then(|name| name.parse::<Name>().ok());
    table_check::read_table(FindingLocation::new(T::KIND, 0), table).map_err(|findings| {
        findings
            .into_iter()
            .map(|finding| {
                let mut error = finding.into_error(name.as_ref().map(Name::as_str));
                if name.is_none() {
                    error.resource = Some(T::KIND.noun().to_owned());
                }
                error
            })
            .collect()
    })
}

fn merge(table: &mut Map<String, Value>, patch: Map<String, Value>, depth: usize) {
    for (key, value) in patch {
        match (value, depth.checked_sub(1)) {
            (Value::Null, _) => {
                // Null for an absent key is kept, so that the check of the result reports unknown
                // keys.
                if table.remove(&key).is_none() {
                    table.insert(key, Value::Null);
                }
            }
            (Value::Object(inner), Some(depth)) => {
                let slot = table.entry(key).or_insert_with(|| Value::Object(Map::new()));
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(slot) = slot {
                    merge(slot, inner, depth);
                }
            }
            (value, _) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
#[path = "json_body_tests.rs"]
mod tests;
