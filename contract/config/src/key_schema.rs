//! OpenAPI components of configuration, generated from the table of keys, so that the document
//! states the rules that the parser checks.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{Object, RefOr, Schema};

use crate::form_schema::{
    byte_size_schema, component_reference, nullable, vlan_range_schema, with_description,
};
use crate::{ChangeEffect, Form, Key, ResourceKind, key_default, key_meaning};

/// Upper limit of sizes not bounded by their key. The pattern of texts stays below it.
const SIZE_BYTES_MAX: u64 = 1 << 60;

/// Components of an OpenAPI document, by name.
pub type Components = BTreeMap<String, RefOr<Schema>>;

/// Replaces the components that describe configuration by components generated from the keys, and
/// adds components for merge patches ([`patch_schema_name`]).
pub fn describe_keys(components: &mut Components) {
    components.insert("ByteSizeText".to_owned(), byte_size_schema(0, SIZE_BYTES_MAX, 1));
    components.insert("VlanRangeText".to_owned(), vlan_range_schema());
    let description = "A file by its path below its store's.";
    components.insert(
        "StoreFile".to_owned(),
        with_description(Form::StoreFile.schema(), description, None),
    );
    for kind in ResourceKind::ALL {
        let Some(schema) = components.get(kind.schema_name()).cloned() else { continue };
        components.insert(kind.schema_name().to_owned(), table(kind, &schema));
        if is_patched(kind) {
            components.insert(patch_schema_name(kind), patch(kind, &schema));
        }
    }
}

/// Returns the name of the component that describes a merge patch (RFC 7386) of a table of this
/// kind.
pub fn patch_schema_name(kind: ResourceKind) -> String {
    format!("{}Patch", kind.schema_name())
}

/// Returns true if the API patches tables of this kind. Sections read from the file only and tables
/// in lists are not patched.
const fn is_patched(kind: ResourceKind) -> bool {
    !matches!(
        kind,
        ResourceKind::File
            | ResourceKind::Host
            | ResourceKind::Api
            | ResourceKind::Console
            | ResourceKind::Lab
            | ResourceKind::Vf
    )
}

/// Returns the component of a table of this kind: the type's description, and the values that each
/// key permits. `schema` is the component that utoipa derived from the type.
fn table(kind: ResourceKind, schema: &RefOr<Schema>) -> RefOr<Schema> {
    let description = match schema {
        RefOr::T(Schema::Object(object)) => object.description.clone(),
        _ => None,
    };
    object(kind, description, |key| {
        let value = value(key, property(schema, key.name));
        let value = if key.permits_null() { nullable(value) } else { value };
        let default = if key.has_default { key_default(kind, key.name) } else { None };
        Described { value, default, is_required: key.required }
    })
}

/// Returns the component of a merge patch of a table of this kind: every key is optional, and null
/// removes an optional key.
fn patch(kind: ResourceKind, schema: &RefOr<Schema>) -> RefOr<Schema> {
    let description = format!(
        "Merge patch (RFC 7386) of `{}`: keys that are absent stay as they are, null removes a key.",
        kind.noun()
    );
    object(kind, Some(description), |key| {
        let value = match key.form {
            Form::Table(inner) => component_reference(&patch_schema_name(inner)),
            _ => value(key, property(schema, key.name)),
        };
        let value = if key.required { value } else { nullable(value) };
        Described { value, default: None, is_required: false }
    })
}

/// Property of a component: schema of its values, default, and whether it is required.
struct Described {
    value: RefOr<Schema>,
    default: Option<Value>,
    is_required: bool,
}

fn object(
    kind: ResourceKind,
    description: Option<String>,
    property: impl Fn(&Key) -> Described,
) -> RefOr<Schema> {
    let mut object: Object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(description)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .build();
    for key in kind.keys() {
        let Described { value, default, is_required } = property(key);
        let value = with_description(value, &description_of(kind, key), default);
        object.properties.insert(key.name.to_owned(), value);
        if is_required {
            object.required.push(key.name.to_owned());
        }
    }
    object.into()
}

/// Returns the meaning of a key and the effect of changing its value.
fn description_of(kind: ResourceKind, key: &Key) -> String {
    let meaning = key_meaning(kind, key.name).unwrap_or_default();
    match key.effect {
        ChangeEffect::Live => meaning,
        ChangeEffect::LiveOnTap => {
            format!(
                "{meaning} A change replaces a vhost-user NIC, and is live on a TAP or legacy NIC."
            )
        }
        ChangeEffect::Replace => format!("{meaning} A change replaces the resource."),
        ChangeEffect::NextVmStart => format!("{meaning} A change takes effect when a VM starts."),
        ChangeEffect::NextDaemonStart => {
            format!("{meaning} A change takes effect when the daemon starts.")
        }
        ChangeEffect::Identity => format!("{meaning} It cannot be changed."),
        ChangeEffect::AfterLeavingCluster => {
            format!("{meaning} It cannot be changed while the host is in the cluster.")
        }
    }
}

/// Returns the schema of a key's values. A key with keywords refers to the component of its type,
/// which `schema` names.
fn value(key: &Key, schema: Option<&RefOr<Schema>>) -> RefOr<Schema> {
    match key.form {
        Form::OneOfKeywords(_) => schema.and_then(reference).unwrap_or_else(|| key.form.schema()),
        _ => key.form.schema(),
    }
}

fn property<'a>(table: &'a RefOr<Schema>, name: &str) -> Option<&'a RefOr<Schema>> {
    match table {
        RefOr::T(Schema::Object(object)) => object.properties.get(name),
        _ => None,
    }
}

/// Returns the reference to another component in a property's schema, also if it is one of several
/// alternatives, such as null; `None` without a reference.
fn reference(property: &RefOr<Schema>) -> Option<RefOr<Schema>> {
    match property {
        RefOr::Ref(reference) => {
            let mut plain = reference.clone();
            plain.description = String::new();
            Some(RefOr::Ref(plain))
        }
        RefOr::T(Schema::OneOf(one_of)) => one_of.items.iter().find_map(reference),
        RefOr::T(Schema::AllOf(all_of)) => all_of.items.iter().find_map(reference),
        RefOr::T(_) => None,
    }
}

#[cfg(test)]
#[path = "key_schema_tests.rs"]
mod tests;
