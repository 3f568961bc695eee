//! Configuration in JSON bodies: whole resources and merge patches. The same
//! checks as for the host file, so that errors name the key.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::document::read_document;
use crate::finding::Place;
use crate::json_tree::JsonTree;
use crate::strict::Strict;
use crate::{
    ApiError, ApplyRequest, ClusterConfig, DiskConfig, DiskStatus, ErrorCode, HostConfig, Kind,
    Name, NicConfig, NicStatus, NodeConfig, NodeStatus, PfConfig, PfStatus, PowerConfig,
    QosPolicyConfig, QosPolicyStatus, StoreConfig, StoreStatus, SwitchConfig, SwitchStatus,
    TeamConfig, TeamStatus, UplinkConfig, UplinkStatus, VmConfig, VmStatus, locate_errors,
    parse_toml, shape,
};

/// Largest body, in bytes.
pub const JSON_BYTES_MAX: usize = 4 << 20;
/// Deepest nesting a patch is followed into; configuration has two levels.
const PATCH_DEPTH_MAX: usize = 8;

/// A resource with a name, of which a host has several: a switch, an uplink, a
/// team, a NIC, a store, a QoS policy, a disk, a VM, an adapter with SR-IOV or another node. Each
/// kind is a collection of the API.
pub trait Resource: Serialize + DeserializeOwned + ToSchema + Clone + PartialEq {
    /// What is observed of it.
    type Status: Serialize + DeserializeOwned + ToSchema;

    /// Its kind.
    const KIND: Kind;

    /// Path of the collection below the API's root, like `nics`.
    const PATH: &'static str;

    /// Its name.
    fn name(&self) -> &Name;

    /// The resources of this kind in desired state.
    fn all(config: &HostConfig) -> &Vec<Self>;

    /// The same, to change them.
    fn all_mut(config: &mut HostConfig) -> &mut Vec<Self>;
}

macro_rules! resource {
    ($type:ty, $status:ty, $kind:expr, $list:ident, $path:literal) => {
        impl Resource for $type {
            type Status = $status;

            const KIND: Kind = $kind;

            const PATH: &'static str = $path;

            fn name(&self) -> &Name {
                &self.name
            }

            fn all(config: &HostConfig) -> &Vec<Self> {
                &config.$list
            }

            fn all_mut(config: &mut HostConfig) -> &mut Vec<Self> {
                &mut config.$list
            }
        }
    };
}

resource!(SwitchConfig, SwitchStatus, Kind::Switch, switches, "switches");
resource!(UplinkConfig, UplinkStatus, Kind::Uplink, uplinks, "uplinks");
resource!(TeamConfig, TeamStatus, Kind::Team, teams, "teams");
resource!(NicConfig, NicStatus, Kind::Nic, nics, "nics");
resource!(StoreConfig, StoreStatus, Kind::Store, stores, "stores");
resource!(QosPolicyConfig, QosPolicyStatus, Kind::QosPolicy, qos_policies, "qos-policies");
resource!(DiskConfig, DiskStatus, Kind::Disk, disks, "disks");
resource!(VmConfig, VmStatus, Kind::Vm, vms, "vms");
resource!(PfConfig, PfStatus, Kind::Pf, pfs, "pfs");
resource!(NodeConfig, NodeStatus, Kind::Node, nodes, "nodes");

/// Reads the body of a `POST` or `PUT` of one resource. Whether it fits the rest
/// of the host is asked of [`validate`](crate::validate) afterwards.
///
/// # Errors
/// All that is wrong with its keys; never empty.
pub fn parse_resource<T: Resource>(body: &[u8]) -> Result<T, Vec<ApiError>> {
    let table = object(body)?;
    read_resource(table)
}

/// Applies a JSON merge patch (RFC 7386) to a resource: keys in the patch replace
/// those of the resource, `null` removes them. The name stays.
///
/// # Errors
/// All that is wrong with the result; never empty.
pub fn patch_resource<T: Resource>(resource: &T, patch: &[u8]) -> Result<T, Vec<ApiError>> {
    let patch = object(patch)?;
    let place = format!("{}/{}", T::KIND.word(), resource.name());
    if patch.get("name").is_some_and(|name| *name != resource.name().as_str()) {
        return Err(vec![
            ApiError::new(
                ErrorCode::InvalidValue,
                "a name cannot be changed; delete the resource and create another",
            )
            .about(place)
            .field("name"),
        ]);
    }
    let Ok(Value::Object(mut table)) = serde_json::to_value(resource) else {
        return Err(vec![
            ApiError::new(ErrorCode::InvalidValue, "has a path that is not UTF-8").about(place),
        ]);
    };
    merge(&mut table, patch, PATCH_DEPTH_MAX);
    shape::drop_removed(T::KIND, &mut table);
    read_resource(table)
}

/// Reads the body of `PUT /1.0/power`.
///
/// # Errors
/// All that is wrong with its keys; never empty.
pub fn parse_power(body: &[u8]) -> Result<PowerConfig, Vec<ApiError>> {
    read_section(Kind::Power, object(body)?)
}

/// Applies a JSON merge patch (RFC 7386) to `[power]`, which may not be there yet.
///
/// # Errors
/// All that is wrong with the result; never empty.
pub fn patch_power(
    power: Option<&PowerConfig>,
    patch: &[u8],
) -> Result<PowerConfig, Vec<ApiError>> {
    patch_section(Kind::Power, power, patch)
}

/// Reads the body of `PUT /1.0/cluster`.
///
/// # Errors
/// All that is wrong with its keys; never empty.
pub fn parse_cluster(body: &[u8]) -> Result<ClusterConfig, Vec<ApiError>> {
    read_section(Kind::Cluster, object(body)?)
}

/// Applies a JSON merge patch (RFC 7386) to `[cluster]`, which may not be there yet.
///
/// # Errors
/// All that is wrong with the result; never empty.
pub fn patch_cluster(
    cluster: Option<&ClusterConfig>,
    patch: &[u8],
) -> Result<ClusterConfig, Vec<ApiError>> {
    patch_section(Kind::Cluster, cluster, patch)
}

/// Checks a merge patch (RFC 7386) of a table of this kind by itself, before the table that it
/// changes is known.
///
/// # Errors
/// All that is wrong with its keys and values; never empty.
pub fn check_patch(kind: Kind, patch: &[u8]) -> Result<(), Vec<ApiError>> {
    let patch = object(patch)?;
    let findings = shape::check_patch(Place::new(kind, 0), &patch);
    match findings.is_empty() {
        true => Ok(()),
        false => Err(findings.into_iter().map(|found| found.into_error(None)).collect()),
    }
}

/// Reads the body of a request that is no configuration.
///
/// # Errors
/// It is not JSON or violates the type's schema (`malformed`, `unknown_key`), or a text has not
/// the syntax of its type (`invalid_value`).
pub fn parse_request<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let JsonTree(value) = tree(body)?;
    T::deserialize(Strict(value)).map_err(|error| {
        let text = error.to_string();
        let text = format!("the body cannot be read: {text}");
        if let Some(name) =
            text.split("unknown field `").nth(1).and_then(|rest| rest.split('`').next())
        {
            return ApiError::new(ErrorCode::UnknownKey, &text).field(shape::quote(name));
        }
        let violates = SCHEMA_VIOLATIONS.iter().any(|violation| text.contains(violation));
        let code = if violates { ErrorCode::Malformed } else { ErrorCode::InvalidValue };
        ApiError::new(code, text)
    })
}

/// How messages of serde begin that tell of another shape than the type's. Others are those of the
/// types themselves, about texts.
const SCHEMA_VIOLATIONS: [&str; 6] = [
    "invalid type: ",
    "invalid value: ",
    "invalid length ",
    "missing field ",
    "unknown variant ",
    "did not match any variant",
];

fn patch_section<T: Serialize + DeserializeOwned>(
    kind: Kind,
    section: Option<&T>,
    patch: &[u8],
) -> Result<T, Vec<ApiError>> {
    let patch = object(patch)?;
    let mut table = match section.map(serde_json::to_value) {
        Some(Ok(Value::Object(table))) => table,
        _ => Map::new(),
    };
    merge(&mut table, patch, PATCH_DEPTH_MAX);
    shape::drop_removed(kind, &mut table);
    read_section(kind, table)
}

fn read_section<T: DeserializeOwned>(
    kind: Kind,
    table: Map<String, Value>,
) -> Result<T, Vec<ApiError>> {
    shape::read(Place::new(kind, 0), table)
        .map_err(|findings| findings.into_iter().map(|found| found.into_error(None)).collect())
}

/// Reads the body of `POST /1.0/apply` and validates what it describes.
///
/// # Errors
/// All that is wrong; never empty.
pub fn parse_apply(body: &[u8]) -> Result<HostConfig, Vec<ApiError>> {
    let mut table = object(body)?;
    let config = table.remove("config");
    let wrong: Vec<_> =
        table.iter().filter_map(|(key, value)| wrong_in_apply(key, value)).collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let request: ApplyRequest = serde_json::from_value(Value::Object(table))
        .map_err(|error| vec![malformed(&error.to_string())])?;
    match (request.toml, config) {
        (Some(toml), None) => parse_toml(&toml, request.file.as_deref()),
        (None, Some(Value::Object(config))) => read_document(config)
            .map_err(|errors| errors.into_iter().map(|found| found.error).collect()),
        (None, Some(_)) => Err(vec![malformed("`config` must be an object").field("config")]),
        _ => Err(vec![malformed("give either `toml` or `config`")]),
    }
}

/// What is wrong with a key of [`ApplyRequest`] other than `config`.
fn wrong_in_apply(key: &str, value: &Value) -> Option<ApiError> {
    let error = match key {
        "toml" | "file" if value.is_string() => return None,
        "toml" | "file" => malformed("it must be a text"),
        _ => ApiError::new(
            ErrorCode::UnknownKey,
            "there is no such key; the keys here are `toml`, `file`, `config`",
        ),
    };
    Some(error.field(shape::quote(key)))
}

/// Whether the body of `POST /1.0/apply` has the host file as text. Errors in the text are no
/// violations of the API's schema.
pub fn applies_a_file(body: &[u8]) -> bool {
    matches!(serde_json::from_slice(body), Ok(ApplyRequest { toml: Some(_), config: None, .. }))
}

/// Adds file and line to errors that were found after the body of
/// `POST /1.0/apply` was read, if the body has the host file as text.
pub fn locate_errors_of_apply(body: &[u8], errors: &mut [ApiError]) {
    if let Ok(ApplyRequest { toml: Some(text), file, .. }) = serde_json::from_slice(body) {
        locate_errors(&text, file.as_deref(), errors);
    }
}

/// An error for a body that is not what the endpoint takes.
fn malformed(message: &str) -> ApiError {
    ApiError::new(ErrorCode::Malformed, format!("the body cannot be read: {message}"))
}

fn object(body: &[u8]) -> Result<Map<String, Value>, Vec<ApiError>> {
    match tree(body) {
        Ok(JsonTree(Value::Object(table))) => Ok(table),
        Ok(JsonTree(_)) => Err(vec![malformed("it must be a JSON object")]),
        Err(error) => Err(vec![error]),
    }
}

fn tree(body: &[u8]) -> Result<JsonTree, ApiError> {
    if body.len() > JSON_BYTES_MAX {
        let message = format!("it has {} bytes; at most {JSON_BYTES_MAX} are read", body.len());
        return Err(malformed(&message));
    }
    serde_json::from_slice(body).map_err(|error| malformed(&error.to_string()))
}

fn read_resource<T: Resource>(table: Map<String, Value>) -> Result<T, Vec<ApiError>> {
    let name = table.get("name").and_then(Value::as_str).and_then(|name| name.parse::<Name>().ok());
    shape::read(Place::new(T::KIND, 0), table).map_err(|findings| {
        findings
            .into_iter()
            .map(|finding| {
                let mut error = finding.into_error(name.as_ref().map(Name::as_str));
                if name.is_none() {
                    error.resource = Some(T::KIND.word().to_owned());
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
                // A key that is not there stays in as null, so that one that does
                // not exist at all is found wrong and not passed over.
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
