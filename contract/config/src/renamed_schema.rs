//! Old names in the OpenAPI document: a property beside the one with the new name, marked as
//! deprecated.

use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::OneOfBuilder;
use utoipa::openapi::{Deprecated, RefOr, Schema};

use crate::form_schema::with_description;
use crate::key_schema::Components;
use crate::renames::{RENAMES, Rename, RenamedItem};

/// Adds the old names of renamed fields to the components that contain them.
pub fn describe_renames(components: &mut Components) {
    for rename in RENAMES {
        let RenamedItem::Field { schema } = rename.item else { continue };
        for component in [schema.to_owned(), format!("{schema}Patch")] {
            let Some(RefOr::T(Schema::Object(object))) = components.get_mut(&component) else {
                continue;
            };
            if let Some(property) = object.properties.get(rename.new).cloned() {
                object.properties.insert(rename.old.to_owned(), deprecated(property, rename));
            }
        }
    }
}

/// Returns the property with the old name.
fn deprecated(property: RefOr<Schema>, rename: &Rename) -> RefOr<Schema> {
    let description =
        format!("Use `{}`. Version {} removes this old name of it.", rename.new, rename.removed_in);
    // A reference has no place for the mark.
    let property = match property {
        reference @ RefOr::Ref(_) => {
            RefOr::T(Schema::OneOf(OneOfBuilder::new().item(reference).build()))
        }
        schema => schema,
    };
    // A default is stated at the new name only.
    let mut property = with_description(property, &description, None);
    let marks = || Some(Extensions::from_iter([("deprecated", true)]));
    if let RefOr::T(schema) = &mut property {
        match schema {
            Schema::Object(object) => object.deprecated = Some(Deprecated::True),
            Schema::Array(array) => array.deprecated = Some(Deprecated::True),
            Schema::OneOf(one_of) => one_of.extensions = marks(),
            Schema::AllOf(all_of) => all_of.extensions = marks(),
            Schema::AnyOf(any_of) => any_of.extensions = marks(),
            _ => {}
        }
    }
    property
}
