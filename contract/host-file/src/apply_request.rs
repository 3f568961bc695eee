//! Body of the request that applies a host file.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::HostConfig;

/// Body of `POST /1.0/apply`: desired state of the host. Exactly one of `toml` and `config` is
/// required; with `toml`, errors name the line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// Host file as TOML text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toml: Option<String>,
    /// Name of the file, for error messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Host file as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<HostConfig>,
}

impl PartialSchema for ApplyRequest {
    fn schema() -> RefOr<Schema> {
        let text = |description| {
            ObjectBuilder::new().schema_type(Type::String).description(Some(description))
        };
        let body = |title, description, name, value: RefOr<Schema>| {
            ObjectBuilder::new()
                .title(Some(title))
                .description(Some(description))
                .property(name, value)
                .required(name)
                .property("file", text("Name of the file, which errors contain."))
                .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        };
        let config = Ref::from_schema_name(HostConfig::name()).into();
        let toml = text("The host file as text.").into();
        OneOfBuilder::new()
            .description(Some("Desired state of the host: a host file as text or as a value."))
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
