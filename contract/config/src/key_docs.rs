//! Meanings of keys for help texts and reference pages, taken from the documentation comments of
//! the configuration types.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::key_defaults::key_default;
use crate::kind_type::with_type;
use crate::{ByteSize, Form, ResourceKind};

/// Meanings of the keys of one kind of table, by key.
type Meanings = BTreeMap<String, String>;

/// Returns the meaning of a key in one or more sentences on one line; `None` if the key does not
/// exist.
pub fn key_meaning(kind: ResourceKind, key: &str) -> Option<String> {
    // The meanings are cached: the command line reads those of every key at each start, and
    // generating a schema is slow.
    static MEANINGS: Mutex<BTreeMap<ResourceKind, Meanings>> = Mutex::new(BTreeMap::new());
    let mut meanings = MEANINGS.lock().unwrap_or_else(PoisonError::into_inner);
    meanings.entry(kind).or_insert_with(|| read_meanings(kind)).get(key).cloned()
}

/// Reads the meanings of all keys of a kind from its type's schema.
fn read_meanings(kind: ResourceKind) -> Meanings {
    let RefOr::T(Schema::Object(table)) = schema_of(kind) else { return Meanings::new() };
    let meaning = |property: &RefOr<Schema>| {
        let property = serde_json::to_value(property).ok()?;
        Some(description(&property)?.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let keys = table.properties.iter();
    keys.filter_map(|(key, property)| Some((key.clone(), meaning(property)?))).collect()
}

fn schema_of(kind: ResourceKind) -> RefOr<Schema> {
    with_type!(kind, Config => Config::schema())
}

/// Returns the description of a property. For an optional key of a named type it is part of one of
/// the alternatives.
fn description(property: &Value) -> Option<&str> {
    property.get("description").and_then(Value::as_str).or_else(|| {
        let alternatives = property.get("oneOf").or_else(|| property.get("allOf"))?.as_array()?;
        alternatives.iter().find_map(|alternative| alternative.get("description")?.as_str())
    })
}

/// Returns the text of a key's default for reference pages: "–" for an optional key without a
/// default, `None` for a required key.
pub fn default_text(kind: ResourceKind, key: &str) -> Option<String> {
    let definition = kind.key(key)?;
    if definition.required {
        return None;
    }
    Some(match key_default(kind, key) {
        None => "–".to_owned(),
        Some(value) if matches!(definition.form, Form::Bytes { .. }) => {
            ByteSize::new(value.as_u64()?).to_string()
        }
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::key_meaning;
    use crate::ResourceKind;

    #[test]
    fn every_key_has_a_meaning_and_it_ends_in_a_full_stop() {
        let tables = [
            ResourceKind::File,
            ResourceKind::Host,
            ResourceKind::Api,
            ResourceKind::Console,
            ResourceKind::Lab,
            ResourceKind::Power,
            ResourceKind::Cluster,
            ResourceKind::ClusterTls,
            ResourceKind::Offload,
            ResourceKind::Vmq,
            ResourceKind::DiskQos,
            ResourceKind::DiskVhostUser,
            ResourceKind::DiskNbd,
            ResourceKind::Vf,
        ];
        for kind in tables.into_iter().chain(ResourceKind::RESOURCES) {
            for key in kind.keys() {
                let meaning = key_meaning(kind, key.name).unwrap_or_default();
                assert!(meaning.ends_with('.'), "{kind:?} {}: `{meaning}`", key.name);
            }
        }
        assert_eq!(key_meaning(ResourceKind::Nic, "colour"), None);
    }
}
