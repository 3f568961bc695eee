//! Bodies of requests that are not configuration itself.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{DiskFormat, DiskKind, HostConfig, StoreFile};

/// `POST /1.0/apply`: make the host be as described. Exactly one of `toml` and
/// `config` is given; with `toml`, errors name the line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The host file as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toml: Option<String>,
    /// Its name, for errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The host file as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<HostConfig>,
}

impl PartialSchema for ApplyRequest {
    fn schema() -> RefOr<Schema> {
        let text = |about| ObjectBuilder::new().schema_type(Type::String).description(Some(about));
        let body = |title, about, name, value: RefOr<Schema>| {
            ObjectBuilder::new()
                .title(Some(title))
                .description(Some(about))
                .property(name, value)
                .required(name)
                .property("file", text("Name of the file, for errors."))
                .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        };
        let config = Ref::from_schema_name(HostConfig::name()).into();
        let toml = text("The host file as text.").into();
        OneOfBuilder::new()
            .description(Some("What the host is to be: the host file as text or as a value."))
            .item(body("ApplyFile", "The host file as text; errors name the line.", "toml", toml))
            .item(body("ApplyConfig", "The host file as a value.", "config", config))
            .examples([json!({ "config": { "switch": [{ "name": "lan", "kind": "private" }] } })])
            .into()
    }
}

impl ToSchema for ApplyRequest {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((HostConfig::name().into_owned(), HostConfig::schema()));
        HostConfig::schemas(schemas);
    }
}

/// `POST /1.0/queues/{port}/{rx|tx}/{index}/move`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveQueueRequest {
    /// The processor that is to own it.
    #[schema(minimum = 0, maximum = 65_535)]
    pub processor: u16,
}

/// `POST /1.0/disks/{name}/convert`: a copy of the disk in another file of its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvertDiskRequest {
    /// The new file, relative to the store's path; it is not there yet.
    pub file: StoreFile,
    /// Its format; not `pass-through`.
    pub format: DiskFormat,
    /// Its kind, `fixed` or `dynamic`; what is usual for the format if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DiskKind>,
}

/// `POST /1.0/disks/{name}/snapshot`: what the disk has now stays in its file, and what is
/// written from now on goes to a new differencing file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotDiskRequest {
    /// The new file, relative to the store's path; it is not there yet.
    pub file: StoreFile,
}

/// Seconds for which each pattern is measured unless told otherwise.
pub const MEASURE_SECONDS_DEFAULT: u64 = 10;
/// And at most.
pub const MEASURE_SECONDS_MAX: u64 = 600;

/// `POST /1.0/stores/{name}/measure`: what the store can do. The body may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureStoreRequest {
    /// Seconds for which each pattern is measured, 1 to 600; 10 if absent.
    #[schema(minimum = 1, maximum = 600)]
    pub seconds: u64,
    /// Measure although VMs or NBD clients use disks of the store: they get less meanwhile,
    /// and what is measured is what they leave.
    pub beside: bool,
}

impl Default for MeasureStoreRequest {
    fn default() -> Self {
        Self { seconds: MEASURE_SECONDS_DEFAULT, beside: false }
    }
}
